"""How lesions, and what looks like them, are drawn: sizes, brightness, and whether a rater sees them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lesioncount_reproduction.synthetic.blob import Blob
from lesioncount_reproduction.synthetic.lattice import REFERENCE_VOXEL_MM3

# Volumes are in voxels of 24 × 48 × 40, brightness in units of white matter in T1: median, spread, limits.
GAD_VOLUME = (15.0, 0.7, 3.0, 150.0)
GAD_AMPLITUDE = (0.78, 0.5, 0.15, 1.8)
_MIMIC_VOLUME = (5.0, 0.5, 2.0, 30.0)
_MIMIC_AMPLITUDE = (0.40, 0.45, 0.15, 1.8)
_CHRONIC_VOLUME = (15.0, 0.8, 3.0, 200.0)
_CHRONIC_AMPLITUDE = (0.45, 0.3, 0.15, 1.0)

_MIMICS_PER_SCAN = 0.2
_CHRONIC_PER_PATIENT, _CHRONIC_DISPERSION = 9.0, 2.0

# Shares of lesions that also shine in FLAIR, of chronic ones that are dark in T1, of large ones that enhance as a ring.
_GAD_IN_FLAIR, _MIMIC_IN_FLAIR = 0.92, 0.15
_HOLES = 0.3
_RINGS, _RING_FROM_VOXELS = 0.2, 25.0

# A rater sees what is bright; what is small must be brighter. Half of those of this brightness are seen.
_SEEN, _SEEN_WITHIN, _SEEN_VOXELS = 0.28, 0.05, 10.0


def gad_lesions(rng: np.random.Generator, n: int) -> list[Blob]:
    """Enhancing lesions, still without a place."""
    return [_gad_lesion(rng) for _ in range(n)]


def mimics(rng: np.random.Generator) -> list[Blob]:
    """Small blobs that enhance and are no lesions, still without a place."""
    return [
        _shaped(
            rng,
            volume=_log_normal(rng, *_MIMIC_VOLUME),
            amplitude=_log_normal(rng, *_MIMIC_AMPLITUDE),
            in_flair=bool(rng.random() < _MIMIC_IN_FLAIR),
        )
        for _ in range(rng.poisson(_MIMICS_PER_SCAN))
    ]


def chronic_lesions(rng: np.random.Generator) -> list[Blob]:
    """Old lesions, which do not enhance, still without a place."""
    p = _CHRONIC_DISPERSION / (_CHRONIC_DISPERSION + _CHRONIC_PER_PATIENT)
    return [
        _shaped(
            rng,
            volume=_log_normal(rng, *_CHRONIC_VOLUME),
            amplitude=_log_normal(rng, *_CHRONIC_AMPLITUDE),
            is_hole=bool(rng.random() < _HOLES),
        )
        for _ in range(rng.negative_binomial(_CHRONIC_DISPERSION, p))
    ]


def aged(blob: Blob, rng: np.random.Generator) -> Blob:
    """What is left of an enhancing lesion a year later."""
    return replace(
        blob,
        volume_mm3=blob.volume_mm3 * float(rng.uniform(0.5, 1.0)),
        amplitude=_log_normal(rng, *_CHRONIC_AMPLITUDE),
        is_ring=False,
        is_hole=bool(rng.random() < _HOLES),
    )


def probability_of_label(amplitude: float, n_voxels: float) -> float:
    """How likely the rater sees an enhancing lesion.

    Parameters
    ----------
    amplitude : float
        Its brightness, in units of white matter in T1.
    n_voxels : float
        Its volume in voxels of 24 × 48 × 40.

    Examples
    --------
    >>> [round(probability_of_label(amplitude, 10), 3) for amplitude in (0.15, 0.28, 0.5)]
    [0.069, 0.5, 0.988]
    """
    visible = amplitude * min(1.0, (n_voxels / _SEEN_VOXELS) ** 0.25)
    return float(1 / (1 + np.exp((_SEEN - visible) / _SEEN_WITHIN)))


def _gad_lesion(rng: np.random.Generator) -> Blob:
    volume, amplitude = _log_normal(rng, *GAD_VOLUME), _log_normal(rng, *GAD_AMPLITUDE)
    return _shaped(
        rng,
        volume=volume,
        amplitude=amplitude,
        in_flair=bool(rng.random() < _GAD_IN_FLAIR),
        is_ring=bool(rng.random() < _RINGS) and volume > _RING_FROM_VOXELS,
        labelled=bool(rng.random() < probability_of_label(amplitude, volume)),
    )


def _shaped(rng: np.random.Generator, *, volume: float, amplitude: float, **kind: bool) -> Blob:
    """A blob of some shape, at the centre of the head."""
    turn, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    stretch = rng.normal(0, 0.18, 3)
    squeeze = turn * np.exp(stretch - stretch.mean())[:, None]
    dent = rng.standard_normal(3)
    dent *= rng.uniform(0, 0.2) / np.linalg.norm(dent)
    return Blob(np.zeros(3), volume * REFERENCE_VOXEL_MM3, squeeze, dent, amplitude, **kind)


def _log_normal(rng: np.random.Generator, median: float, spread: float, low: float, high: float) -> float:
    return float(np.clip(median * np.exp(spread * rng.standard_normal()), low, high))

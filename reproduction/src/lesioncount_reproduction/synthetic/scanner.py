"""Tissues, lesions and vessels → the five images of a scan, with what a scanner adds: blur, bias, shift, noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lesioncount.learning.expected import z_scored
from lesioncount_reproduction.cohort_files import STEP
from lesioncount_reproduction.synthetic.anatomy import SmoothField, Tissues
from lesioncount_reproduction.synthetic.blob import Blob
from lesioncount_reproduction.synthetic.lattice import Lattice
from lesioncount_reproduction.synthetic.vessels import Tube

# Brightness of white matter, cortex, deep grey matter and fluid in T1, T2, FLAIR and PD; white matter in T1 is 1.
_T1 = (1.0, 0.72, 0.84, 0.30)
_T2 = (0.60, 0.80, 0.68, 1.60)
_FLAIR = (0.65, 0.82, 0.74, 0.22)
_PD = (0.70, 0.86, 0.80, 0.95)

# What a lesion adds to T2, FLAIR and PD per unit of its own brightness there, and what a hole takes from T1.
_LESION_T2, _LESION_FLAIR, _LESION_PD = 1.1, 1.0, 0.5
_HOLE_T1, _OLD_T1 = -0.30, -0.05

# An enhancing lesion is surrounded by oedema: in FLAIR it has this volume, at about this brightness.
_OEDEMA_GROWN, _OEDEMA = 1.6, 0.42

# Width of the point spread in voxels, and shift between sequences in mm (0.35 voxels of 3.5 mm).
_POINT_SPREAD = 0.55
_SHIFT_MM = 0.35 * 3.5

_NOISE = (0.02, 0.045)
_BIAS = 0.06
_BIAS_WAVES_MM = (110.0, 400.0)


@dataclass(frozen=True)
class Content:
    """All that a scan of a brain can show."""

    tissues: Tissues
    gad: Sequence[Blob]
    mimics: Sequence[Blob]
    chronic: Sequence[Blob]
    vessels: Sequence[Tube]


def acquired(content: Content, lattice: Lattice, rng: np.random.Generator) -> NDArray[np.float32]:
    """The images (5, z, y, x), with mean 0 and variance 1 inside the brain, and 0 outside."""
    brain = content.tissues.brain
    noise = np.float32(rng.uniform(*_NOISE))
    images = np.stack([_with_faults(image * brain, lattice, noise, rng) for image in _ideal(content, lattice)])
    return np.round(z_scored(images, brain) / np.float32(STEP)) * np.float32(STEP)


def _with_faults(
    image: NDArray[np.float32], lattice: Lattice, noise: np.float32, rng: np.random.Generator
) -> NDArray[np.float32]:
    shortest, longest = _BIAS_WAVES_MM
    bias = SmoothField.drawn(rng, shortest_mm=shortest, longest_mm=longest)
    shift = rng.uniform(-_SHIFT_MM, _SHIFT_MM, size=3) / lattice.spacing_mm
    biased = _blurred(image, shift) * (1 + np.float32(_BIAS) * bias.on(lattice))
    return np.asarray(biased + noise * rng.standard_normal(lattice.shape, dtype=np.float32))


def _ideal(content: Content, lattice: Lattice) -> list[NDArray[np.float32]]:
    """T1, T1 with gadolinium, T2, FLAIR and PD of a scanner without faults."""
    t1, t2, flair, pd = (_contrast(content.tissues, levels) for levels in (_T1, _T2, _FLAIR, _PD))
    t1 += _darkening(content, lattice)
    shine = _shine(content, lattice)
    t2 += np.float32(_LESION_T2) * shine
    flair += np.float32(_LESION_FLAIR) * shine
    pd += np.float32(_LESION_PD) * shine
    return [t1, t1 + _enhancement(content, lattice), t2, flair, pd]


def _contrast(tissues: Tissues, levels: tuple[float, float, float, float]) -> NDArray[np.float32]:
    white, cortex, deep_grey, fluid = map(np.float32, levels)
    return np.asarray(
        white
        + (cortex - white) * tissues.cortex
        + (deep_grey - white) * tissues.deep_grey
        + (fluid - white) * tissues.fluid
    )


def _darkening(content: Content, lattice: Lattice) -> NDArray[np.float32]:
    """What lesions take from T1."""
    dark = np.zeros(lattice.shape, np.float32)
    for blob in content.chronic:
        blob.paint(dark, lattice, _HOLE_T1 if blob.is_hole else _OLD_T1)
    for blob in content.gad:
        blob.paint(dark, lattice, _OLD_T1)
    return np.maximum(dark, np.float32(_HOLE_T1)) * (1 - content.tissues.fluid)


def _shine(content: Content, lattice: Lattice) -> NDArray[np.float32]:
    """What lesions, old and new, add to FLAIR. Lesions that overlap do not shine more than one."""
    shine = np.zeros(lattice.shape, np.float32)
    for blob in content.chronic:
        blob.paint(shine, lattice, blob.amplitude)
    for blob in (*content.gad, *content.mimics):
        if blob.in_flair:
            blob.paint(shine, lattice, _OEDEMA, grown=_OEDEMA_GROWN)
    return np.minimum(shine, np.float32(0.8)) * (1 - content.tissues.fluid)


def _enhancement(content: Content, lattice: Lattice) -> NDArray[np.float32]:
    """What gadolinium adds to T1."""
    lesions, vessels = np.zeros(lattice.shape, np.float32), np.zeros(lattice.shape, np.float32)
    for blob in (*content.gad, *content.mimics):
        blob.paint(lesions, lattice, blob.amplitude)
    for tube in content.vessels:
        tube.paint(vessels, lattice)
    return np.maximum(lesions, vessels)


def _blurred(image: NDArray[np.float32], shift: NDArray[np.float64]) -> NDArray[np.float32]:
    """Convolved with a Gaussian whose centre is shifted by some voxels: point spread and misregistration in one."""
    for axis, by in enumerate(shift):
        reach = int(np.ceil(3 * _POINT_SPREAD + abs(by)))
        weights = np.exp(-0.5 * ((np.arange(-reach, reach + 1) - by) / _POINT_SPREAD) ** 2)
        image = _convolved(image, weights / weights.sum(), axis, reach)
    return image


def _convolved(image: NDArray[np.float32], weights: NDArray[np.float64], axis: int, reach: int) -> NDArray[np.float32]:
    n = image.shape[axis]
    widths = [(reach, reach) if a == axis else (0, 0) for a in range(image.ndim)]
    padded = np.pad(image, widths, mode="edge")
    total = np.zeros_like(image)
    for i, weight in enumerate(weights):
        total += np.float32(weight) * padded[(slice(None),) * axis + (slice(i, i + n),)]
    return total

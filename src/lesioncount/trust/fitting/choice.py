"""Known counts → regions, peaks or both, and the calibration that goes with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.errors import CalibrationError
from lesioncount.protocol import CountingProtocol
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting.evidence import (
    N_FOLDS,
    CalibrationFit,
    HeldOut,
    conformal_fit,
    fitted_or_none,
    held_out_scores,
    kept_reading,
    pool_of_readers,
    remembered,
)
from lesioncount.trust.fitting.fit import fit_calibration
from lesioncount.trust.fitting.known_truth import KnownTruth
from lesioncount.trust.scores.predictions import Predictions

Kind = Literal["regions", "peaks", "mixture"]

_WORDS: Mapping[Kind, str] = {"regions": "Regions", "peaks": "Peaks", "mixture": "Both together"}


@dataclass(frozen=True, eq=False)
class Choice:
    """What known counts have taught: how to count, and how to correct it.

    Attributes
    ----------
    fit : CalibrationFit
        Of all scans. Its protocol says whether regions or peaks are counted; of a mixture, peaks.
    kind : {"regions", "peaks", "mixture"}
    folds : tuple of Calibration
        The same, each fitted without the scans of one fold: they correct what is known already.
    fold_of : tuple of int
        The fold of each scan.
    held_out : HeldOut
        Scores of the scans, each corrected without its own fold.
    """

    fit: CalibrationFit
    kind: Kind
    folds: tuple[Calibration, ...]
    fold_of: tuple[int, ...]
    held_out: HeldOut

    @property
    def in_words(self) -> str:
        """What is counted."""
        protocol = self.fit.calibration.protocol
        return "Detections" if protocol is not None and protocol.has_detections else _WORDS[self.kind]

    @property
    def verdict(self) -> str:
        """How well it counts held-out scans, in one sentence."""
        before, after = self.held_out.before, self.held_out.after
        off, share = (f"{after[name].value:{how}}" for name, how in (("mae", ".3g"), ("coverage90", ".0%")))
        return (
            f"{self.in_words}, calibrated on {self.held_out.n_scans} known counts, are off by {off} (as they are: "
            f"{before['mae'].value:.3g}), and 90 % intervals hold {share} of the true counts (as they are: "
            f"{before['coverage90'].value:.0%}), held out."
        )


def choose(
    truth: KnownTruth,
    /,
    *,
    protocol: CountingProtocol | None = None,
    kinds: Sequence[Kind] = ("regions", "peaks"),
    seed: int = 0,
    reading: Mapping[str, Any] | None = None,
    intervals: bool = True,
) -> Choice:
    """Calibrate regions and peaks, and take what counts held-out scans better.

    Parameters
    ----------
    truth : KnownTruth
        With peaks as candidates. Regions are the peaks that join no higher one.
    protocol : CountingProtocol, optional
        What counts as one lesion, but for the choice between regions and peaks.
    kinds : sequence of {"regions", "peaks"}
        What to choose from.
    seed : int, default 0
        Of the folds and halves.
    reading : mapping of str to object, optional
        How the maps were read: ``channel``, ``scale`` and ``logits``.
    intervals : bool, default True
        Fit guaranteed intervals, too, which takes most of the time; an ensemble has none.

    Notes
    -----
    With d_i the difference of the ranked probability scores (RPS) of scan i, counted by peaks and by regions, both
    calibrated without its fold: if the mean of d is at least one standard error from 0, the better one is taken; else
    the even mixture of both, for such counts do not tell them apart. RPS is convex, so that a mixture is never worse
    than the mean of both. On leaves, platelets and nuclei it lost 1 to 2 % against the better one, where "regions
    unless peaks are clearly better" lost up to 12 %.
    """
    if len(set(truth.groups)) < 2:
        raise CalibrationError(
            f"All {len(truth)} scans with a known count are of one group, so that none can be held out. Count scans of "
            "other patients, too; or leave the groups out (--group-by), if these are not patients."
        )
    own = protocol or CountingProtocol()
    truths = {"peaks": truth, "regions": truth.of_regions}
    fits: dict[str, Calibration] = {}
    problem: CalibrationError | None = None
    for kind in kinds:
        try:
            fits[kind] = fit_calibration(truths[kind], protocol=_protocol(own, kind))
        except CalibrationError as error:  # one of them may be out of reach of the truth
            problem = error
    if not fits:
        raise problem or CalibrationError("Expected regions, peaks or both to choose from.")
    parts = truth.parts(N_FOLDS, seed=seed)
    folds = {kind: _folds(truths[kind], fit, parts) for kind, fit in fits.items()}
    held = {kind: _distributions(truths[kind], of, parts) for kind, of in folds.items()}
    kind = _better({one: Predictions.of_distributions(of, truth.counts).rps for one, of in held.items()})
    if kind == "mixture":
        fitted, of_folds = mixture(**fits), tuple(map(mixture, folds["peaks"], folds["regions"]))
        calibrated = _distributions(truth, of_folds, parts)
    else:
        fitted, of_folds, calibrated = fits[kind], folds[kind], held[kind]
    judged = truths["regions" if kind == "regions" else "peaks"]

    def refit(rows: Sequence[int], averaged: bool) -> Calibration:
        if kind != "mixture":
            return fitted_or_none(judged[rows], None, averaged=averaged)
        return mixture(*(fitted_or_none(truths[one][rows], None, averaged=averaged) for one in ("peaks", "regions")))

    wanted = intervals and truth.members is None
    guaranteed = conformal_fit(judged, fitted, refit, seed=seed) if wanted else None
    scores = held_out_scores(judged, calibrated, seed)
    scans, pool = remembered(judged, calibrated), pool_of_readers(truth, calibrated)
    fold_of = {row: fold for fold, part in enumerate(parts) for row in part}
    return Choice(
        CalibrationFit(fitted, scores, guaranteed, kept_reading(reading), scans, pool=pool),
        kind,
        of_folds,
        tuple(fold_of[row] for row in range(len(truth))),
        scores,
    )


def mixture(peaks: Calibration, regions: Calibration) -> Calibration:
    """The even mixture of two calibrations.

    Lesions without a candidate vary from scan to scan by m²/r in each, with mean m and shape r; the mixture has one
    shape, by which this is the same in both together for as many lesions as are typical.
    """
    expected = [one.extra_rate + one.extra_share * one.typical_count for one in (peaks, regions)]
    squares = sum(mean**2 for mean in expected)
    ratio = sum(mean**2 / one.extra_shape for mean, one in zip(expected, (peaks, regions), strict=True))
    shape = squares / ratio if ratio > 0 else peaks.extra_shape
    of_regions = replace(regions, extra_shape=shape, protocol=None, origin="")
    return replace(peaks, extra_shape=shape, of_regions=of_regions)


def _protocol(own: CountingProtocol, kind: str) -> CountingProtocol:
    """That of peaks or regions; detections are what they are."""
    if own.has_detections:
        return own
    return (
        replace(own, candidates="peaks") if kind == "peaks" else replace(own, candidates="regions", min_persistence=0.0)
    )


def _folds(truth: KnownTruth, near: Calibration, parts: Sequence[Sequence[int]]) -> tuple[Calibration, ...]:
    """A calibration without each of some parts."""
    rests = (sorted(set(range(len(truth))) - set(part)) for part in parts)
    return tuple(fitted_or_none(truth[rest], near.protocol, near) for rest in rests)


def _distributions(
    truth: KnownTruth, folds: Sequence[Calibration], parts: Sequence[Sequence[int]]
) -> list[CountDistribution]:
    """The count of each scan, after the calibration without its part."""
    found: dict[int, CountDistribution] = {}
    for part, calibration in zip(parts, folds, strict=True):
        found |= dict(zip(part, truth[part].distributions(calibration), strict=True))
    return [found[row] for row in range(len(truth))]


def _better(rps: Mapping[str, NDArray[np.float64]]) -> Kind:
    """What counts better; both, if that cannot be told."""
    if len(rps) == 1:
        return "peaks" if "peaks" in rps else "regions"
    d = rps["peaks"] - rps["regions"]
    error = d.std(ddof=1) / np.sqrt(len(d))
    if d.any() and abs(d.mean()) < error:
        return "mixture"
    return "peaks" if d.mean() < 0 else "regions"

"""Counts of a scan → the part of its record that is about the count: raw, calibrated, and of an ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.mixture import MixtureOfCounts
from lesioncount.runs.count_file import ScanCount
from lesioncount.runs.tables import calibrated_columns, distribution_columns, lesion_rows, map_columns

if TYPE_CHECKING:
    from lesioncount.trust.fitting import CalibrationFit

_CONFIDENCE = 0.9


def count_content(counts: Sequence[ScanCount], fit: CalibrationFit | None, *, conformal: bool) -> dict[str, Any]:
    """Numbers, distributions and candidates of one map, or of several members that are combined.

    Parameters
    ----------
    counts : sequence of ScanCount
        One, or one per member of an ensemble.
    fit : CalibrationFit, optional
        Adds what it makes of them, beside what was counted.
    conformal : bool
        Whether to add its guaranteed interval, which ensembles do not have.
    """
    raw = [count.result.distribution for count in counts]
    together = combined(raw)
    content: dict[str, Any] = {
        "count": {**map_columns(counts), **distribution_columns(together)},
        "n_dropped": sum(count.result.candidates.n_dropped for count in counts),
        "pmf": together.pmf().tolist(),
        "lesions": _lesions(counts, fit),
    }
    if isinstance(together, MixtureOfCounts):
        content["members"] = [
            {"member": number, "path": str(count.source.path), **map_columns([count]), **distribution_columns(one)}
            for number, (count, one) in enumerate(zip(counts, raw, strict=True), start=1)
        ]
        content["count"] |= {
            "n_members": len(counts),
            "variance_within": together.within_variance,
            "variance_between": together.between_variance,
        }
    if fit is not None:
        calibrated = combined([fit.calibration.distribution(count.result.existence) for count in counts])
        content["count"] |= calibrated_columns(calibrated) | {"calibration": fit.fingerprint}
        content["pmf_calibrated"] = calibrated.pmf().tolist()
    if fit is not None and conformal and fit.conformal is not None:
        low, high = fit.conformal.interval(counts[0].result.existence, _CONFIDENCE)
        content["count"] |= {"interval90_low_conformal": low, "interval90_high_conformal": high}
    return content


def combined(distributions: Sequence[CountDistribution]) -> CountDistribution:
    """The distribution of one map, or the mixture of several members'."""
    return distributions[0] if len(distributions) == 1 else MixtureOfCounts(distributions)


def _lesions(counts: Sequence[ScanCount], fit: CalibrationFit | None) -> list[dict[str, Any]]:
    """Rows of all candidates; of several members, each with the number of its member."""
    rows = []
    for number, count in enumerate(counts, start=1):
        corrected = None if fit is None else fit.calibration.existence(count.result.existence)
        for i, row in enumerate(lesion_rows(count)):
            also: dict[str, Any] = {} if corrected is None else {"existence_calibrated": float(corrected[i])}
            rows.append(row | also | ({"member": number} if len(counts) > 1 else {}))
    return rows

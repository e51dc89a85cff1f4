"""What a reader of a summary must know, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lesioncount.assess.groups.group_row import GroupRow
from lesioncount.assess.groups.grouping import Grouped
from lesioncount.results.counts_of import CountsOf
from lesioncount.trust.groups.rate_ratios import RateRatios

# What may fail, of changes and of counts.
_FAILED = ("comparing", "counting")

# Groups of fewer patients have intervals that are rough.
_FEW = 10


def notes_on(
    counts: CountsOf, grouped: Grouped, groups: Sequence[GroupRow], ratios: RateRatios | None, n_imputations: int
) -> tuple[str, ...]:
    """All notes that apply."""
    return (
        *_left_out(counts, grouped),
        *_uncalibrated(counts),
        *_whose(grouped, groups),
        *_few(groups),
        *_model(ratios, n_imputations),
    )


def _left_out(counts: CountsOf, grouped: Grouped) -> Iterator[str]:
    is_count = counts.of == "lesions"
    if counts.failed:
        yield f"{_were(len(counts.failed), 'scan' if is_count else 'patient')} left out: {_FAILED[is_count]} failed."
    if grouped.n_skipped:
        yield f"{_were(grouped.n_skipped, 'scan' if is_count else 'pair')} left out: no group or exposure is known."


def _were(n: int, what: str) -> str:
    return f"1 {what} was" if n == 1 else f"{n} {what}s were"


def _uncalibrated(counts: CountsOf) -> Iterator[str]:
    if counts.calibration is None:
        yield (
            "Counts are those of the maps as they are, without calibration. Intervals are right if these are honest in "
            "each group: lesioncount evaluate can tell."
        )


def _whose(grouped: Grouped, groups: Sequence[GroupRow]) -> Iterator[str]:
    n = grouped.n_nobodys
    if n:
        yield f"Of {n} scan{'' if n == 1 else 's'} it is not known whose: each counts as a patient of its own."
    n_shared = sum(group.n_patients for group in groups) - len(set(grouped.patients))
    if n_shared:
        yield (
            "Some patients have scans in several groups. Ratios allow for what these share; the intervals of means "
            "are those of each group by itself."
        )


def _few(groups: Sequence[GroupRow]) -> Iterator[str]:
    few = [group.name for group in groups if group.n_patients < _FEW]
    if few:
        yield f"Intervals are rough where there are fewer than {_FEW} patients: {', '.join(few)}."


def _model(ratios: RateRatios | None, n_imputations: int) -> Iterator[str]:
    if ratios is not None and ratios.n_poisson:
        yield (
            f"In {ratios.n_poisson} of {n_imputations} imputations, counts vary no more than Poisson: there, the "
            "negative binomial model is the Poisson model."
        )

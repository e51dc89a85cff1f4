"""Results and groups → totals, means and rate ratios: whether the treated arm had fewer lesions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lesioncount.assess.evaluation.notes import doubts_about
from lesioncount.assess.groups.group_row import GroupRow, RatioRow
from lesioncount.assess.groups.grouping import Grouped, GroupOptions, grouped
from lesioncount.assess.groups.trial_summary import TrialSummary, check_folder, write_summary
from lesioncount.errors import GroupError, MissingExtraError
from lesioncount.folder.output import OutputFolder
from lesioncount.results.counts_of import CountsOf
from lesioncount.results.results import read_countable
from lesioncount.trust.candidate_table import Counted
from lesioncount.trust.groups.imputation import N_IMPUTATIONS, drawn_counts
from lesioncount.trust.groups.rate_ratios import RateRatios, rate_ratios

# More imputations change nothing in any digit, and make a table that no program opens.
_MOST_IMPUTATIONS = 10_000


def summarize(  # noqa: PLR0913 - as many as a summary has options
    results: str | Path,
    out: str | Path | None = None,
    /,
    *,
    by: str | Sequence[str],
    of: Counted | None = None,
    participants: str | Path | None = None,
    exposure: str | None = None,
    reference: str | Sequence[str] | None = None,
    skip_missing: bool = False,
    n_imputations: int = N_IMPUTATIONS,
    seed: int = 0,
    overwrite: bool = False,
) -> TrialSummary:
    """Total, mean and rate ratios of groups of patients, with the doubt about each count in them.

    Parameters
    ----------
    results : path
        Folder that `count_batch` or `compare_batch` wrote. Counts are the calibrated ones where it was given a
        calibration. Of a comparison, a pair of sessions takes the place of a scan.
    out : path, optional
        Folder for ``summary.json``, ``groups.tsv``, ``ratios.tsv`` and ``imputations.tsv``; made if it is not there.
        Default: nothing is written.
    by : str or sequence of str
        Column of the table that makes the groups, such as "arm"; of several columns, their combinations do.
        ``session_id`` need not be in the table where names of scans say it.
    of : {"new", "gone", "persisting"}, optional
        Of a comparison: which lesions. Default: new ones.
    participants : path, optional
        Table with a row per patient (column ``participant_id``), per scan (column ``scan``) or per pair (``pair``).
        Default: the only ``participants.tsv`` in or above the folders of the maps.
    exposure : str, optional
        Column of what rates are per, such as years of follow-up. Default: rates are per scan.
    reference : str or sequence of str, optional
        The group that others are divided by. Default: the first in alphabetical order.
    skip_missing : bool, default False
        Leave out scans without a group or an exposure. Otherwise they are an error.
    n_imputations : int, default 20
        Complete data sets that are drawn from the distributions.
    seed : int, default 0
        Of these.
    overwrite : bool, default False
        Replace a summary that is there.

    Returns
    -------
    TrialSummary
        The content of ``summary.json``. Without statsmodels (the extra "stats"), its ratios say that they are missing.
    """
    options = GroupOptions(
        _several(by),
        None if participants is None else Path(participants),
        exposure,
        None if reference is None else _several(reference),
        skip_missing,
    )
    folder = None if out is None else OutputFolder(out)
    if folder is not None:
        check_folder(folder, overwrite=overwrite)
    counts = read_countable(Path(results), of)
    summary = summarize_counts(counts, options, n_imputations=n_imputations, seed=seed)
    if folder is not None:
        write_summary(summary, folder)
    return summary


def summarize_counts(
    counts: CountsOf, options: GroupOptions, /, *, n_imputations: int = N_IMPUTATIONS, seed: int = 0
) -> TrialSummary:
    """The same of what `Results.of` gives, such as the new lesions of pairs of scans."""
    if not 2 <= n_imputations <= _MOST_IMPUTATIONS:
        raise GroupError(f"Expected from 2 to {_MOST_IMPUTATIONS} imputations, but got {n_imputations}.")
    found = grouped(counts.subjects, options)
    groups = tuple(GroupRow.of(found, place) for place in range(len(found.levels)))
    imputations = drawn_counts([one.members for one in found.subjects], n_imputations=n_imputations, seed=seed)
    ratios: RateRatios | None
    try:
        ratios = rate_ratios(imputations, found.group, found.patients, found.exposure)
        rows = tuple(RatioRow.of(ratio, found.levels) for ratio in ratios.ratios)
    except MissingExtraError as error:
        ratios, rows = None, _without(found, str(error))
    return TrialSummary(
        results=str(counts.out),
        of=counts.of,
        by=options.by,
        exposure=options.exposure,
        protocol=counts.protocol,
        is_calibrated=counts.calibration is not None,
        seed=seed,
        groups=groups,
        ratios=rows,
        grouped=found,
        imputations=imputations,
        notes=notes_on(counts, found, groups, ratios, n_imputations),
    )


def _without(found: Grouped, why: str) -> tuple[RatioRow, ...]:
    return tuple(RatioRow(level, found.levels[0], why_unknown=why) for level in found.levels[1:])


def _several(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


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
        *doubts_about(counts),
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

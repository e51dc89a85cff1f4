"""Maps, and counts that are known for some of them → a calibration, and with it the counts of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lesioncount.assess.beside_truth import TruthOptions, groups_of
from lesioncount.assess.truth import TruthTable, middle_of
from lesioncount.cohort.item import FileFacts, ScanFiles
from lesioncount.cohort.scans import Selection
from lesioncount.cohort.table_names import names_in_tables
from lesioncount.errors import CalibrationError, TruthError, listed
from lesioncount.files.remote_path import to_path
from lesioncount.folder.output import OutputFolder
from lesioncount.results.count_warnings import is_joined
from lesioncount.results.counts_of import table_names
from lesioncount.results.earlier import earlier_run
from lesioncount.results.record import Entry, Record
from lesioncount.results.recorded import Recorded
from lesioncount.results.results import Results, read_results
from lesioncount.results.settings import KnownFolds, Settings, counts_fingerprint
from lesioncount.runs.count import Counting, count_batch
from lesioncount.runs.count_table import records_of
from lesioncount.runs.engine import check_maps
from lesioncount.trust.fitting.choice import Choice, choose
from lesioncount.trust.fitting.choice import Kind as Candidates
from lesioncount.trust.fitting.evidence import CalibrationFit
from lesioncount.trust.fitting.known_truth import KnownTruth
from lesioncount.trust.fitting.stated import Stated, calibration_from
from lesioncount.trust.likeness import CalibrationScans

# What is tried, unless a protocol says that it is peaks.
BOTH: tuple[Candidates, ...] = ("regions", "peaks")


@dataclass(frozen=True, eq=False)
class Learned:
    """What known counts have taught.

    Attributes
    ----------
    choice : Choice
    counts : mapping of str to int
        The known counts, by the names of scans.
    settings : Settings
        With its calibration, and what corrects scans whose count is known.
    notes : tuple of str
        Where counts were found, and what was left out.
    """

    choice: Choice
    counts: Mapping[str, int]
    settings: Settings
    notes: tuple[str, ...]


def count_known(
    inputs: Sequence[str | Path],
    out: str | Path,
    known: TruthOptions,
    /,
    *,
    settings: Settings | None = None,
    kinds: Sequence[Candidates] | None = None,
    seed: int = 0,
    **how: Any,
) -> tuple[Results, Learned]:
    """Count all maps as `count_batch` does, corrected by what the known counts of some of them have taught.

    Scans whose count is known are corrected by a calibration that does not know it: each by that of the other folds.

    Parameters
    ----------
    inputs, out, settings
        As in `count_batch`. The calibration of the settings is what is learned.
    known : TruthOptions
        Where counts are known.
    kinds : sequence of {"regions", "peaks"}, optional
        What to choose from. Default: both, or peaks if the protocol counts peaks.
    seed : int, default 0
        Of the folds.
    **how
        Further options of `count_batch`.
    """
    if settings is not None and settings.listed is not None:
        replace(settings, conformal=False).check(members=False)  # counts do not tell which candidates are lesions
    may_be = bool(how.get("resume") or how.get("overwrite"))
    earlier_run(OutputFolder(out), Counting.command, of_changes=False, may_be=may_be)
    given = {name: how.get(name) for name in ("selection", "mask", "members", "jobs")}
    learned = learn(inputs, known, settings=settings, kinds=kinds, seed=seed, out=Path(out), **_without_none(given))
    return count_batch(inputs, out, settings=learned.settings, **how), learned


def learn(  # noqa: PLR0913 - what a count is told, and what a fit is
    inputs: Sequence[str | Path],
    known: TruthOptions,
    /,
    *,
    settings: Settings | None = None,
    kinds: Sequence[Candidates] | None = None,
    seed: int = 0,
    selection: Selection | None = None,
    mask: str | Path | None = None,
    members: bool = False,
    jobs: int = 1,
    out: Path | None = None,
    intervals: bool = True,
) -> Learned:
    """Count the maps whose count is known, and choose and fit what corrects them best (`fitting.choose`).

    Parameters
    ----------
    inputs, settings, selection, mask, members, jobs, out
        As in `count_batch`; nothing is written.
    known : TruthOptions
        Where counts are known.
    kinds, seed, intervals
        As in `fitting.choose`.
    """
    how = settings or Settings()
    kinds = kinds or (("peaks",) if how.protocol.has_peaks else BOTH)
    is_table = how.protocol.has_detections
    if is_table:  # what a detector gives is one candidate each
        kinds = ("regions",)
    peaks = how.protocol if is_table else replace(how.protocol, candidates="peaks")
    finding: dict[str, Any] = {"selection": selection, "mask": mask, "members": members, "jobs": jobs, "out": out}
    truth, readings, notes = truth_of_maps(inputs, known, replace(how, protocol=peaks), **finding)
    choice = choose(truth, protocol=peaks, kinds=kinds, seed=seed, reading=how.reading, intervals=intervals)
    counts = {name: middle_of(of) for name, of in readings.items()}
    folds = KnownFolds(
        counts_fingerprint(readings), choice.fit, choice.folds, dict(zip(counts, choice.fold_of, strict=True))
    )
    protocol = choice.fit.calibration.protocol or how.protocol
    return Learned(choice, counts, replace(how, protocol=protocol, calibration=choice.fit, known=folds), notes)


def truth_of_maps(
    inputs: Sequence[str | Path],
    known: TruthOptions,
    how: Settings,
    /,
    *,
    selection: Selection | None = None,
    mask: str | Path | None = None,
    members: bool = False,
    jobs: int = 1,
    out: Path | None = None,
) -> tuple[KnownTruth, dict[str, tuple[int, ...]], tuple[str, ...]]:
    """Count the maps whose count is known: with their counts, what each reader counted by scan, and notes.

    Parameters are those of `learn`. Candidates have the features that a calibration of the settings needs.
    """
    finding: dict[str, Any] = {"mask": None if mask is None else to_path(mask), "members": members}
    found = _KnownScans.of((selection or Selection()).find(inputs, out, **finding), known)
    plain = _plainly(how)
    good, notes = _counted(found.scans, plain, jobs)
    counted = [record.summary for record in good]
    readings = {scan.name: found.counts_of(scan, plain) for scan in counted}
    features = () if how.calibration is None else how.calibration.features
    of_maps = [record.candidate_tables(*features) for record in good]
    tables: list[Any] = [one if members else one[0] for one in of_maps]
    groups = _groups(counted, known, found.table)
    truth = KnownTruth.of(tables, [*map(middle_of, readings.values())], groups=groups, features=features)
    return truth.read_by([*readings.values()]), readings, (*found.notes, *notes)


def _plainly(how: Settings) -> Settings:
    """How maps are read, and nothing that is made of counts."""
    return Settings(how.protocol, how.channel, how.scale, how.logits, level=how.level, spacing_mm=how.spacing_mm)


def _counted(scans: Sequence[ScanFiles], how: Settings, jobs: int) -> tuple[list[Record], tuple[str, ...]]:
    """Scans that were counted in memory, and notes on those that could not be."""
    check_maps(Counting(how), scans)
    records = [record for _, record in sorted(records_of(scans, Counting(how), jobs=jobs).items())]
    good = [record for record in records if record.is_ok]
    failed = listed(f"{record.name}: {record.error}" for record in records if not record.is_ok)
    if not good:
        raise TruthError(f"None of the {len(records)} maps could be counted: {failed}.")
    return good, (f"Left out: {failed}.",) if failed else ()


@dataclass(frozen=True)
class _KnownScans:
    """The scans whose count is known, from a table or masks."""

    scans: list[ScanFiles]
    options: TruthOptions
    table: TruthTable | None
    masks: Mapping[str, Mapping[str, Path]] | None
    notes: tuple[str, ...]

    @classmethod
    def of(cls, scans: Sequence[ScanFiles], options: TruthOptions) -> _KnownScans:
        """Those of some scans; an error if there are none."""
        names = {scan.name: names_of_scan(scan) for scan in scans}
        table = options.read_table(names.values())
        masks = options.masks_of({scan.name: FileFacts.unread(scan) for scan in scans})
        known = [
            scan
            for scan in scans
            if (table is None or table.knows(*names[scan.name])) and (masks is None or scan.name in masks)
        ]
        if not known:
            shown = listed(names_of[1] for names_of in names.values())
            raise TruthError(f"{options.where} has a known count for none of the {len(scans)} scans ({shown}).")
        if table is not None:
            table.check_each_has_its_own(names[scan.name] for scan in known)
        notes = () if table is None or not table.note else (table.note,)
        return cls(known, options, table, masks, notes)

    def counts_of(self, scan: Entry, settings: Settings) -> tuple[int, ...]:
        """The known count of a scan, by each of its readers."""
        if self.table is not None:
            return self.table.counts_of(*table_names(scan))
        masks = (self.masks or {})[scan.name].values()
        protocol = replace(settings.protocol, candidates="regions", min_persistence=0.0)
        return tuple(len(self.options.lesions_in(mask, scan, protocol)) for mask in masks)


def names_of_scan(scan: ScanFiles) -> tuple[str, ...]:
    """What a scan may be called in a table."""
    relative = None if scan.relative is None else scan.relative.as_posix()
    ids = [one for one in (scan.whose.participant, scan.whose.session) if one is not None]
    return names_in_tables(scan.name, scan.path, relative, ids)


def _groups(scans: Sequence[Entry], known: TruthOptions, table: TruthTable | None) -> Sequence[str]:
    """Who belongs together, as asked for; else the scans of one participant, where all say whose they are."""
    participant = "participant_id"
    if known.group_by is None and all(participant in scan.whose for scan in scans):
        return [scan.whose[participant] for scan in scans]
    return groups_of(scans, known.group_by, table)


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def learn_stated(results: Path, stated: Stated, /, *, seed: int = 0) -> CalibrationFit:
    """A calibration from a mean or a prevalence that is stated of the scans of a folder of results."""
    found = read_results(results)
    if found.run.is_of_changes:
        raise CalibrationError(f"{results} holds changes: a mean or a prevalence is stated of the lesions of scans.")
    return _of_stated(found.counted, stated, found.run.settings, seed)


def learn_stated_of_maps(
    inputs: Sequence[str | Path],
    stated: Stated,
    how: Settings,
    /,
    *,
    selection: Selection | None = None,
    mask: str | Path | None = None,
    members: bool = False,
    jobs: int = 1,
    seed: int = 0,
) -> tuple[CalibrationFit, tuple[str, ...]]:
    """The same of maps or tables of detections, which are counted in memory; and notes on those that could not be."""
    finding: dict[str, Any] = {"mask": None if mask is None else to_path(mask), "members": members}
    good, notes = _counted((selection or Selection()).find(inputs, **finding), _plainly(how), jobs)
    return _of_stated([record.summary for record in good], stated, how, seed), notes


def _of_stated(scans: Sequence[Entry], stated: Stated, how: Settings | Recorded, seed: int) -> CalibrationFit:
    """Of an ensemble, each member is taken as a scan of its own: their mean is that of the mixture."""
    tables = [table for scan in scans for table in scan.tables]
    joined = sum(any(map(is_joined, scan.warnings)) for scan in scans) / max(len(scans), 1)
    calibration = calibration_from(stated, tables, protocol=how.protocol, joined=joined, seed=seed)
    return CalibrationFit(calibration, reading=how.reading, scans=CalibrationScans.of(tables))

"""Changes of patients as counts of scans: what is evaluated and calibrated as any other count."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lesioncount.errors import MapFileError
from lesioncount.results.course_record import CourseRecord, PairRecord
from lesioncount.results.course_results import ChangeResults, find_change_run, read_changes
from lesioncount.results.record import ScanSummary
from lesioncount.results.record_files import check_records
from lesioncount.results.results import RunResults, read_counted
from lesioncount.results.run_file import Run
from lesioncount.results.settings import CountedWith
from lesioncount.trust.candidate_table import Counted

# What is meant where nobody says which changes.
_DEFAULT: Counted = "new"


def read_countable(out: Path, of: Counted | None = None, *, features: Sequence[str] = ()) -> RunResults:
    """The counts in a folder of results: of lesions, or of new, gone or persisting ones if it is of a comparison."""
    found = find_changes(out, of)
    return read_counted(out, features=features) if found is None else counts_of(*found, features)


def find_changes(out: Path, of: Counted | None = None) -> tuple[ChangeResults, Counted] | None:
    """The comparison in a folder, and which changes are meant; None if it holds counts, and these are."""
    if find_change_run(out) is None:
        if of not in (None, "lesions"):
            raise MapFileError(
                f"{out} holds no comparison, so that there are no {of} lesions in it. Compare first: lesioncount "
                f"compare BASELINE FOLLOWUP -o {out}"
            )
        return None
    if of == "lesions":
        raise MapFileError(f"{out} holds changes: ask for new, gone or persisting lesions (--of).")
    results = read_changes(out)
    check_records(out, results.run.compared, (course.name for course in results.compared))
    if not results.compared:
        raise MapFileError(f"There is no patient in {out} that was compared.")
    return results, _DEFAULT if of is None else of


def counts_of(results: ChangeResults, kind: Counted, features: Sequence[str] = (), /) -> RunResults:
    """The number of new, gone or persisting lesions, with a pair of sessions in the place of a scan."""
    settings = results.run.compared_with
    calibration = settings.calibrations.get(kind)
    features = (*(() if calibration is None else calibration.weights), *features)
    counted_with = CountedWith(
        settings.protocol,
        settings.reading,
        conformal=settings.conformal,
        calibration=calibration,
        fingerprint=settings.fingerprints.get(kind),
    )
    run = Run(counted_with, results.run.jobs, None, results.run.status, results.run.versions, results.run.started)
    scans = [_summary(record, pair, kind, features) for record in results.records() for pair in record.pairs]
    usual = {pair.name: pair.counts[kind].component_counts for course in results.compared for pair in course.pairs}
    failed = [ScanSummary(course.name, error=course.error) for course in results.failed]
    return RunResults(results.out, run, (*scans, *failed), of=kind, coupling=settings.coupling, component_counts=usual)


def _summary(record: CourseRecord, pair: PairRecord, kind: Counted, features: Sequence[str]) -> ScanSummary:
    session = record.sessions[pair.before if kind == "gone" else pair.after]
    return ScanSummary(
        pair.name,
        files=session.files,
        map=session.map,
        numbers=pair.counts[kind].numbers,
        tables=(record.table(pair, kind, *features),),
        warnings=session.warnings,
        n_dropped=session.n_dropped,
    )

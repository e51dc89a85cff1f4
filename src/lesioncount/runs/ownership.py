"""Whose files are in a folder of results: only what a run has written may be replaced or removed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lesioncount.errors import MapFileError
from lesioncount.runs.records import read_record, record_path
from lesioncount.runs.run_file import find_run, run_path
from lesioncount.runs.scan_counting import label_path

# What a run writes beside the records of its scans.
TABLES = ("counts.tsv", "lesions.tsv", "members.tsv")


def check_nothing_foreign(out: Path, names: Iterable[str], *, labels: bool) -> None:
    """Raise if a run would write over a file that is no result of an earlier run."""
    run = find_run(out)
    ours = set() if run is None else {scan.name for scan in run.scans}
    foreign = [path for path in (run_path(out), *(out / name for name in TABLES)) if run is None and path.exists()]
    for name in names:
        has_record = read_record(out, name) is not None
        if record_path(out, name).exists() and not (has_record or name in ours):
            foreign.append(record_path(out, name))
        if labels and label_path(out, name).exists() and not (has_record or name in ours):
            foreign.append(label_path(out, name))
    if foreign:
        raise MapFileError(
            f"{foreign[0]} is not a result of an earlier run, and would be written over. Choose another folder."
        )


def remove_results(out: Path) -> None:
    """Remove the records and label maps of an earlier run, so that none of them outlives the next one."""
    for path in out.glob("*.json"):
        if read_record(out, path.stem) is not None:
            label_path(out, path.stem).unlink(missing_ok=True)
            path.unlink()

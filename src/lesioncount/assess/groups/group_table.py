"""Where the groups are written: a table of patients or scans, named or found beside the maps, as BIDS has it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from lesioncount.assess.groups.subjects import CountedSubject
from lesioncount.cohort.tables import ScanTable, read_cells
from lesioncount.errors import GroupError, LesionCountError

# The column that a table need not have: names of scans may say it.
_SESSION = "session_id"

# Columns that make each row that of a scan, or of a pair.
_OF_SCANS = ("scan", "pair")

# The table of a BIDS dataset.
_NAME = "participants.tsv"


class GroupTable(ScanTable):
    """A table with a row per scan (column ``scan``), per pair (``pair``) or per patient (``participant_id``)."""

    complaint: ClassVar[type[LesionCountError]] = GroupError

    @property
    def is_of_scans(self) -> bool:
        """Whether each row is a scan or a pair of them, and not a patient."""
        return self.scan_column in _OF_SCANS

    def value(self, column: str, subject: CountedSubject) -> str | None:
        """What it says of a scan, or of its patient."""
        names = subject.names if self.is_of_scans else (*subject.participant_names, *subject.names)
        return self.cell(column, *names)


def group_table(
    subjects: Sequence[CountedSubject], asked: Sequence[str], participants: Path | None
) -> GroupTable | None:
    """The table that the columns are in; none is needed to group by sessions, which names of scans say."""
    from_names = {_SESSION} if all(subject.session for subject in subjects) else set()
    if participants is None and set(asked) <= from_names:
        return None
    path = participants or _find(subjects)
    columns, _ = read_cells(path)
    key = next((name for name in (*_OF_SCANS, "participant_id") if name in columns), None)
    if key is None:
        raise GroupError(
            f"Expected a column 'scan', 'pair' or 'participant_id' in {path}, but its columns are "
            f"{', '.join(columns) or 'none'}."
        )
    needed = [column for column in asked if column in columns or column not in from_names]
    advice = "Name columns of this table (--by, --exposure), or another table (--participants)."
    table = GroupTable.read(path, scan_column=key, needed=needed, advice=advice)
    if table.is_of_scans:
        table.check_each_has_its_own(subject.names for subject in subjects)
    return table


def _find(subjects: Iterable[CountedSubject]) -> Path:
    """The only ``participants.tsv`` in or above the folders of the maps; an error if there is none, or several."""
    folders = {subject.folder for subject in subjects if subject.folder is not None}
    around = {above for folder in folders for above in (folder, *folder.parents)}
    found = sorted(folder / _NAME for folder in around if (folder / _NAME).is_file())
    if len(found) == 1:
        return found[0]
    what = (
        "are several: " + ", ".join(map(str, found)) if found else f"is no {_NAME} in or above the folders of the maps"
    )
    raise GroupError(
        f"Where are the groups? There {what}. Name the table, which has a column participant_id or scan: "
        "--participants FILE."
    )

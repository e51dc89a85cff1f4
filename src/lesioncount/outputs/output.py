"""What every optional output is: the files it writes of an item and of a run, and when they go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

from lesioncount.errors import MapFileError
from lesioncount.files import MapSource
from lesioncount.folder.output import OutputFolder
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record import Record
from lesioncount.results.results import Results


class Keep(NamedTuple):
    """What is kept of a map that was counted: the runs of its candidates, and its shades."""

    runs: bool = False
    shades: bool = False

    @classmethod
    def for_all(cls, outputs: Iterable[Output]) -> Self:
        """What some outputs need together."""
        needed = [one.keep for one in outputs]
        return cls(any(one.runs for one in needed), any(one.shades for one in needed))


@dataclass(frozen=True)
class Output:
    """Files that a run may write beside its records and tables. Other processes get it by pickle.

    It is asked also if it is not wanted: what it wrote at another time goes if it is not written again.

    Attributes
    ----------
    setting : object
        What was asked for; None or False if it is not wanted.
    """

    setting: Any = None

    endings: ClassVar[tuple[str, ...]] = ()  # of its files of an item, after the name of the item
    keep: ClassVar[Keep] = Keep()

    @property
    def is_wanted(self) -> bool:
        """Whether it is written."""
        return self.setting is not None and self.setting is not False

    @property
    def of_run(self) -> tuple[str, ...]:
        """The files that `finish` may write."""
        return ()

    def checked(self, items: Sequence[Any]) -> Sequence[Any]:
        """Items, with what is needed of each to write it; raise if something is missing, before anything is written."""
        return items

    def names(self, item: Any) -> tuple[str, ...]:
        """All files that it may write of an item."""
        return tuple(f"{item.name}{ending}" for ending in self.endings)

    def expected(self, item: Any, record: Record) -> tuple[str, ...]:  # noqa: ARG002 - for those that depend on it
        """Those that must be there of an item with this record."""
        return self.names(item)

    def write(self, folder: OutputFolder, item: Any, record: Record, found: Any) -> None:
        """Write the files of an item while its maps are at hand, before its record is written."""

    def show(self, folder: OutputFolder, item: Any, record: Record, found: Any) -> None:
        """Write what refers to the record of an item, when that is there. What goes wrong is its own affair."""

    def finish(self, folder: OutputFolder, results: Results, written: Collection[str]) -> None:
        """Write what a run has once; ``written`` are the tables that are new."""

    def withdraw(self, folder: OutputFolder, *, all_parts: bool = False) -> None:
        """Remove what shows results that are no longer so; all parts of it, if these are replaced."""

    def remove(self, folder: OutputFolder, item: Any, *, but: Collection[str] = ()) -> None:
        """Remove the files of an item that were made at any time, as far as they are ours, but for some."""
        for name in self.names(item):
            if name not in but:
                folder.remove(name)

    def remove_stale(self, folder: OutputFolder, made: Collection[str]) -> None:
        """Remove the files of all items, but for those that may have been made by this run."""
        for name in folder.names() if self.endings else ():
            if name.endswith(self.endings) and name not in made:
                folder.remove(name)


def check_not_large(source: MapSource, option: str) -> None:
    """Raise if a map is never held as a whole: an option that writes one cannot be had."""
    if source.volume is not None and source.volume.is_large:
        raise MapFileError(
            f"{source.path} has too many voxels for {option}, which writes a map as a whole. Leave it out; "
            "--write labels writes zarr, chunk by chunk."
        )


def lesions_of(record: Record) -> list[LesionRow]:
    """The candidates of the map that outputs are made of; of an ensemble, of its first member."""
    return [lesion for lesion in record.lesions if lesion.is_of_first_member]

"""The page that shows a run, as an output: its files, and when they go. What is on it is drawn by `report/`.

A run that writes no page removes one that shows what is no longer so; so the names are known here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from lesioncount.folder.output import OutputFolder
from lesioncount.outputs.output import Keep, Output
from lesioncount.results.record import Record
from lesioncount.results.record_files import shard_of

# Shows an item that has just been worked on, while its maps are at hand: given the folder, the item, its record, and
# what was found. What goes wrong with it is its own affair.
Show = Callable[[OutputFolder, Any, Record, Any], None]

# The page of each command, without its ending: its parts are in a folder of this name.
PAGES = {"count": "report", "compare": "changes"}


@dataclass(frozen=True)
class Page(Output):
    """The page of a run, and the files that it loads.

    Attributes
    ----------
    setting : callable or None
        Draws the section of an item.
    command : str
        Whose page it is.
    """

    command: str = "count"

    keep = Keep(runs=True, shades=True)

    def sections(self, name: str) -> tuple[str, str]:
        """The file of the section of an item, and the same where records are in folders."""
        return f"{PAGES[self.command]}/{name}.js", f"{PAGES[self.command]}/{shard_of(name)}/{name}.js"

    def show(self, folder: OutputFolder, item: Any, record: Record, found: Any) -> None:
        """Draw the section of an item."""
        self.setting(folder, item, record, found)

    def withdraw(self, folder: OutputFolder, *, all_parts: bool = False) -> None:
        """Remove the page; sections are right as long as their records are there."""
        parts = PAGES[self.command]
        folder.remove(f"{parts}.html")
        if all_parts:
            for path in (*folder.path.glob(f"{parts}/*.js"), *folder.path.glob(f"{parts}/*/*.js")):
                folder.remove(path.relative_to(folder.path).as_posix())
            folder.remove_empty(parts)

    def remove(self, folder: OutputFolder, item: Any, *, but: Collection[str] = ()) -> None:
        """Remove the section of an item."""
        del but  # it is made when the record is there
        for name in self.sections(item.name):
            folder.remove(name)

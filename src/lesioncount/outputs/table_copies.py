"""Tables once more, in the format of somebody else: what such outputs have in common, and CSV as Excel opens it."""

from __future__ import annotations

import csv
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from lesioncount.folder.output import OutputFolder
from lesioncount.outputs.output import Output
from lesioncount.results.results import Results


@dataclass(frozen=True)
class TableCopies(Output):
    """Each table in another format beside it.

    Attributes
    ----------
    setting : object
    tables : tuple of str
        All that a run may have.
    """

    tables: tuple[str, ...] = ()

    ending: ClassVar[str]

    @property
    def of_run(self) -> tuple[str, ...]:
        """The files beside the tables."""
        return tuple(map(self.name_of, self.tables))

    @classmethod
    def name_of(cls, table: str) -> str:
        """The file beside a table."""
        return f"{table.removesuffix('.tsv')}{cls.ending}"

    def finish(self, folder: OutputFolder, results: Results, written: Collection[str]) -> None:
        """Copy tables that are new or have no copy; remove what is no longer that of its table."""
        del results  # tables are read back
        for table, name in zip(self.tables, self.of_run, strict=True):
            is_there = (folder.path / table).exists()
            if not is_there or (table in written and not self.is_wanted):
                folder.remove(name)
            elif self.is_wanted and (table in written or not (folder.path / name).exists()):
                self.copy(folder, table)

    def copy(self, folder: OutputFolder, table: str) -> None:
        """Write a table that is there once more."""
        raise NotImplementedError


@dataclass(frozen=True)
class ExcelTables(TableCopies):
    """As CSV that Excel opens by a double click: with the mark of UTF-8, and separators as the country has them.

    Where a semicolon separates cells, a comma separates decimals. The setting is "comma" or "semicolon".
    """

    ending = ".csv"

    def copy(self, folder: OutputFolder, table: str) -> None:
        """Write a table that is there as CSV, row by row, with empty cells for what is unknown."""
        from lesioncount.outputs.parquet import kind_of

        has_commas = self.setting == "semicolon"
        with (
            (folder.path / table).open(encoding="utf-8", errors="replace") as lines,
            folder.replacing(self.name_of(table)) as temporary,
            temporary.open("w", encoding="utf-8-sig", newline="") as file,
        ):
            writer = csv.writer(file, delimiter=";" if has_commas else ",")
            columns = lines.readline().rstrip("\n").split("\t")
            writer.writerow(columns)
            is_decimal = [has_commas and kind_of(column) == "float" for column in columns]
            for line in lines:
                cells = ("" if cell == "n/a" else cell for cell in line.rstrip("\n").split("\t"))
                pairs = zip(cells, is_decimal, strict=True)
                writer.writerow([cell.replace(".", ",") if decimal else cell for cell, decimal in pairs])

"""Tables once more, in the format of somebody else: CSV as Excel opens it, and Parquet with types of columns."""

from __future__ import annotations

import csv
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from msgspec import Struct

from lesioncount.folder.output import OutputFolder
from lesioncount.optional import optional
from lesioncount.outputs.output import Output
from lesioncount.results.answers import Answer
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.recorded import KINDS
from lesioncount.results.region_numbers import RegionalNumbers
from lesioncount.results.results import Results
from lesioncount.results.scan_numbers import CandidateNumbers, CountNumbers, EnsembleNumbers


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


# Bytes of text that are read at once, from which a block of rows is made.
_BLOCK = 1 << 24

# What tables write for what is unknown.
_UNKNOWN = "n/a"

# Whose fields are columns of numbers. All others are text, whatever is in them: a participant called 01 stays 01.
_NUMBERS: tuple[type[Struct], ...] = (
    CandidateNumbers,
    CountNumbers,
    EnsembleNumbers,
    RegionalNumbers,
    LesionRow,
    Answer,
)

# Those that only tables have; of changes, after what they are of: new_mean.
_FURTHER = {
    "member": "int", "mode": "int", "median": "int", "mean": "float", "sd": "float", "p_any": "float",
    "components": "int", "n_candidates_before": "int", "n_candidates_after": "int", "tolerance_mm": "float",
    "expected": "float", "count": "int", "from": "int", "to": "int",
}  # fmt: skip


class Parquet(TableCopies):
    """As Parquet."""

    ending = ".parquet"

    def checked(self, items: Sequence[Any]) -> Sequence[Any]:
        """Raise a `MissingExtraError` unless tables can be written as Parquet: before anything is counted."""
        optional("pyarrow", "parquet", "Writing Parquet")
        return items

    def copy(self, folder: OutputFolder, table: str) -> None:
        """Write a table that is there as Parquet beside it."""
        write_parquet(folder, table)


def write_parquet(folder: OutputFolder, table: str) -> None:
    """Write a table that is there as Parquet beside it, with null for what is unknown."""
    csv = optional("pyarrow.csv", "parquet", "Writing Parquet")
    parquet = optional("pyarrow.parquet", "parquet", "Writing Parquet")
    path = folder.path / table
    with path.open(encoding="utf-8") as file:
        columns = file.readline().rstrip("\n").split("\t")
    with folder.replacing(Parquet.name_of(table)) as temporary:
        schema = _schema(columns)
        with (
            csv.open_csv(
                str(path),
                read_options=csv.ReadOptions(block_size=_BLOCK),
                parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
                convert_options=csv.ConvertOptions(
                    column_types=schema, null_values=[_UNKNOWN], strings_can_be_null=True
                ),
            ) as blocks,
            parquet.ParquetWriter(str(temporary), schema) as writer,
        ):
            for block in blocks:
                writer.write_batch(block)


def _schema(columns: list[str]) -> Any:
    arrow = optional("pyarrow", "parquet", "Writing Parquet")
    kinds = {"int": arrow.int64(), "float": arrow.float64()}
    return arrow.schema([(name, kinds.get(kind_of(name), arrow.string())) for name in columns])


def kind_of(column: str) -> str:
    """The type of a column: int, float, or something else, which is text."""
    plain = column.removesuffix("_calibrated").removesuffix("_conformal")
    of, _, rest = plain.partition("_")
    return _kinds().get(plain) or (_kinds().get(rest, "str") if of in KINDS else "str")


@cache
def _kinds() -> dict[str, str]:
    named = {name: of for kind in _NUMBERS for name, of in kind.__annotations__.items()} | _FURTHER
    return {name: kind.removesuffix(" | None") for name, kind in named.items()}

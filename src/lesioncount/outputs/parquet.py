"""A table as text → the same as Parquet, for those who read millions of rows: a block of rows after the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from lesioncount.folder.output import OutputFolder
from lesioncount.optional import optional
from lesioncount.outputs.table_copies import TableCopies
from lesioncount.results.answers import Answer
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.recorded import KINDS
from lesioncount.results.region_numbers import RegionalNumbers
from lesioncount.results.scan_numbers import CandidateNumbers, CountNumbers, EnsembleNumbers

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

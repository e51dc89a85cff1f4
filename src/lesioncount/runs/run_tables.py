"""The tables of a run, written row by row: of however many scans, no more than one record is at hand."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from lesioncount.files.output import OutputFolder
from lesioncount.runs.answers import ANSWER_COLUMNS, OPTIONAL_ANSWER_COLUMNS
from lesioncount.runs.lesion_rows import LESION_COLUMNS, OPTIONAL_LESION_COLUMNS
from lesioncount.runs.parquet import parquet_name, write_parquet
from lesioncount.runs.region_numbers import OPTIONAL_REGION_COLUMNS, REGION_COLUMNS
from lesioncount.runs.results import RunResults
from lesioncount.runs.scan_numbers import COUNT_COLUMNS, MEMBER_COLUMNS, OPTIONAL_COUNT_COLUMNS, WHOSE_COLUMNS
from lesioncount.runs.tables import Rows, write_tsv


@dataclass(frozen=True)
class RunTable:
    """A table of a run.

    Attributes
    ----------
    name : str
        Of its file.
    columns, optional : tuple of str
        All its columns, and those that are left out unless a row fills them.
    rows : callable
        Gives its rows, whenever it is called.
    may_be_empty : bool
        Whether it is written without any row, too.
    """

    name: str
    columns: tuple[str, ...]
    optional: tuple[str, ...]
    rows: Rows
    may_be_empty: bool = False


def tables_of(results: RunResults) -> tuple[RunTable, ...]:
    """The tables that a run may have."""
    lesion_columns = ("scan", *WHOSE_COLUMNS, *LESION_COLUMNS[1:])
    return (
        RunTable("counts.tsv", COUNT_COLUMNS, OPTIONAL_COUNT_COLUMNS, lambda: _counts(results), may_be_empty=True),
        RunTable(
            "lesions.tsv",
            lesion_columns,
            (*WHOSE_COLUMNS, *OPTIONAL_LESION_COLUMNS),
            lambda: _lesions(results),
            may_be_empty=True,
        ),
        RunTable("members.tsv", MEMBER_COLUMNS, WHOSE_COLUMNS, lambda: _members(results)),
        RunTable("regions.tsv", REGION_COLUMNS, OPTIONAL_REGION_COLUMNS, lambda: _regions(results)),
        RunTable("answers.tsv", ANSWER_COLUMNS, OPTIONAL_ANSWER_COLUMNS, lambda: _answers(results)),
    )


# What a run writes beside the records of its scans.
TABLES = ("counts.tsv", "lesions.tsv", "members.tsv", "regions.tsv", "answers.tsv")


def table_names(*, parquet: bool) -> tuple[str, ...]:
    """The files of all tables that a run may write."""
    return (*TABLES, *(map(parquet_name, TABLES) if parquet else ()))


def are_there(results: RunResults, listed: Collection[str], *, parquet: bool) -> bool:
    """Whether all tables that a run has are among the files that are there and as we wrote them."""
    names = [table.name for table in tables_of(results) if _has_rows(table)]
    return all(name in listed and (not parquet or parquet_name(name) in listed) for name in names)


def write_tables(folder: OutputFolder, results: RunResults, *, parquet: bool = False) -> None:
    """Write the tables of a run; remove those of an earlier one that this one does not have."""
    for table in tables_of(results):
        is_written = _write(folder, table)
        if is_written and parquet:
            write_parquet(folder, table.name)
        else:
            folder.remove(parquet_name(table.name))


def _write(folder: OutputFolder, table: RunTable) -> bool:
    """Write a table, or remove it if it has no rows."""
    if not _has_rows(table):
        folder.remove(table.name)
        return False
    with (
        folder.replacing(table.name) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file,
    ):
        write_tsv(file, table.columns, table.rows, optional=table.optional)
    return True


def _has_rows(table: RunTable) -> bool:
    return table.may_be_empty or next(iter(table.rows()), None) is not None


def _counts(results: RunResults) -> Iterator[dict[str, Any]]:
    return (scan.row() for scan in results.scans)


def _lesions(results: RunResults) -> Iterator[dict[str, Any]]:
    for record in results.records():
        whose = {"scan": record.name, **record.summary.whose}
        for row in record.lesions:
            yield {**whose, **row.row()}


def _members(results: RunResults) -> Iterator[dict[str, Any]]:
    return ({"scan": one.name, **one.whose, **member.row()} for one in results.counted for member in one.members)


def _regions(results: RunResults) -> Iterator[dict[str, Any]]:
    return (row for one in results.counted for row in one.region_rows())


def _answers(results: RunResults) -> Iterator[dict[str, Any]]:
    return (row for one in results.counted for row in one.answer_rows())

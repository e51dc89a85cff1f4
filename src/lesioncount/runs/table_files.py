"""The tables of a run, written row by row as text, and as Parquet where that is asked for."""

from __future__ import annotations

from collections.abc import Collection

from lesioncount.folder.output import OutputFolder
from lesioncount.folder.tables import write_tsv
from lesioncount.outputs.parquet import parquet_name, write_parquet
from lesioncount.results.results import RunResults
from lesioncount.results.tables import TABLES, RunTable, tables_of


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

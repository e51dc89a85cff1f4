"""The tables of a run and their rows: of however many scans, no more than one record is at hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lesioncount.folder.tables import Rows
from lesioncount.results.answers import ANSWER_COLUMNS, OPTIONAL_ANSWER_COLUMNS
from lesioncount.results.lesion_rows import LESION_COLUMNS, OPTIONAL_LESION_COLUMNS
from lesioncount.results.region_numbers import OPTIONAL_REGION_COLUMNS, REGION_COLUMNS
from lesioncount.results.results import RunResults
from lesioncount.results.scan_numbers import COUNT_COLUMNS, MEMBER_COLUMNS, OPTIONAL_COUNT_COLUMNS, WHOSE_COLUMNS


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

    @property
    def is_written(self) -> bool:
        """Whether it has rows, or is written without."""
        return self.may_be_empty or next(iter(self.rows()), None) is not None


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

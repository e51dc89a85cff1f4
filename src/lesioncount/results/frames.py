"""Tables of scans, candidates and regions as ``pandas.DataFrame``, with the columns of the tables that are written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lesioncount.folder.tables import filled_columns
from lesioncount.optional import optional
from lesioncount.results.lesion_rows import LESION_COLUMNS, OPTIONAL_LESION_COLUMNS
from lesioncount.results.record import ScanRecord, ScanSummary
from lesioncount.results.region_numbers import OPTIONAL_REGION_COLUMNS, REGION_COLUMNS
from lesioncount.results.scan_numbers import COUNT_COLUMNS, OPTIONAL_COUNT_COLUMNS, WHOSE_COLUMNS

if TYPE_CHECKING:
    import pandas as pd


def counts_frame(scans: Iterable[ScanSummary]) -> pd.DataFrame:
    """A row for each scan; those that failed say why."""
    rows = [scan.row() for scan in scans]
    return _frame(rows, filled_columns(COUNT_COLUMNS, rows, optional=OPTIONAL_COUNT_COLUMNS))


def lesions_frame(records: Iterable[ScanRecord]) -> pd.DataFrame:
    """A row for each candidate of each scan."""
    rows = [{"scan": one.name, **one.summary.whose, **lesion.row()} for one in records for lesion in one.lesions]
    columns = ("scan", *WHOSE_COLUMNS, *LESION_COLUMNS[1:])
    return _frame(rows, filled_columns(columns, rows, optional=(*WHOSE_COLUMNS, *OPTIONAL_LESION_COLUMNS)))


def regions_frame(scans: Iterable[ScanSummary]) -> pd.DataFrame:
    """A row for each region of each scan."""
    rows = [row for scan in scans for row in scan.region_rows()]
    return _frame(rows, filled_columns(REGION_COLUMNS, rows, optional=OPTIONAL_REGION_COLUMNS))


def _frame(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """As pandas reads the tables that are written: NaN for what is unknown."""
    rows = [{name: math.nan if value is None else value for name, value in row.items()} for row in rows]
    frame: pd.DataFrame = optional("pandas", "notebook", "to_dataframe()").DataFrame(rows, columns=list(columns))
    return frame

"""Optional files of a run: label maps, BIDS, DICOM, OME-Zarr, Parquet, CSV."""

from __future__ import annotations

from importlib import import_module

from lesioncount.outputs.output import Output
from lesioncount.outputs.page import Page, Show
from lesioncount.outputs.table_copies import ExcelTables, Parquet
from lesioncount.results.settings import ChangeSettings, Settings
from lesioncount.results.tables import RunTable


def outputs_of(
    settings: Settings | ChangeSettings,
    *,
    command: str,
    tables: tuple[RunTable, ...],
    parquet: bool = False,
    csv: str | None = None,
    show: Show | None = None,
) -> tuple[Output, ...]:
    """All outputs that a run may have, wanted or not.

    Parameters
    ----------
    settings : Settings or ChangeSettings
        Whose ``outputs`` say what writes that which each setting asks for.
    command : str
        That makes such runs: ``count`` or ``compare``.
    tables : tuple of RunTable
        All that the run may have.
    parquet : bool
        Whether each of them is written as Parquet, too.
    csv : {"comma", "semicolon"}, optional
        What separates the cells of each as CSV, if that is written.
    show : callable, optional
        Draws the section of an item on the page of the run.
    """
    found = []
    for name, where in settings.outputs.items():
        module, _, output = where.partition(":")
        found.append(getattr(import_module(f"{__name__}.{module}"), output)(getattr(settings, name)))
    names = tuple(table.name for table in tables)
    return (*found, Parquet(parquet, names), ExcelTables(csv, names), Page(show, command))

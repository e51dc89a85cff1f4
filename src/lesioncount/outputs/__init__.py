"""Optional files of a run: label maps, BIDS, DICOM, OME-Zarr, Parquet."""

from __future__ import annotations

from importlib import import_module

from lesioncount.outputs.output import Output
from lesioncount.outputs.page import Page, Show
from lesioncount.outputs.parquet import Parquet
from lesioncount.results.settings import ChangeSettings, Settings
from lesioncount.results.tables import RunTable


def outputs_of(
    settings: Settings | ChangeSettings,
    *,
    command: str,
    tables: tuple[RunTable, ...],
    parquet: bool = False,
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
    show : callable, optional
        Draws the section of an item on the page of the run.
    """
    found = []
    for name, where in settings.outputs.items():
        module, _, output = where.partition(":")
        found.append(getattr(import_module(f"{__name__}.{module}"), output)(getattr(settings, name)))
    return (*found, Parquet(parquet, tuple(table.name for table in tables)), Page(show, command))

"""What readers have counted → the settings of a count that also says what another reader would count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lesioncount.assess.known_counts import names_of_scan
from lesioncount.assess.truth import read_truth_table
from lesioncount.cohort.scans import Selection
from lesioncount.errors import TruthError
from lesioncount.results.settings import Settings


def with_reads(
    settings: Settings,
    reads: Path,
    inputs: Sequence[str | Path],
    out: Path,
    /,
    *,
    selection: Selection | None = None,
    members: bool = False,
    **columns: Any,
) -> Settings:
    """Settings that also say what another reader would count, in each scan that was read, see `ReaderPool`.

    Parameters
    ----------
    settings : Settings
    reads : Path
        Table of what one or several readers have counted, as for ``--truth-counts``.
    inputs, out, selection, members
        As in `count_batch`.
    **columns
        ``scan_column``, ``count_column`` and ``suffix`` as in `read_truth_table`.
    """
    scans = (selection or Selection()).find(inputs, out, members=members)
    names = {scan.name: names_of_scan(scan) for scan in scans}
    table = read_truth_table(reads, list(names.values()), **columns)
    read = {scan: of for scan, of in names.items() if table.knows(*of)}
    if not read:
        raise TruthError(f"{reads} has a count for none of the {len(scans)} scans.")
    table.check_each_has_its_own(read.values())
    return replace(settings, reads={scan: table.counts_of(*of) for scan, of in read.items()})

"""The table of very many scans: its rows as files beside the page, which reads them after its first screen is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from lesioncount.folder.output import OutputFolder
from lesioncount.outputs.label_maps import REPORT
from lesioncount.report.templates import template
from lesioncount.results.record_files import is_sharded, shard_of
from lesioncount.results.results import Results

# The folder of the rows of the table of a page.
_TABLE = f"{REPORT}/table"

# Rows of the table that are laid out at first: a few screens. The others are there, to be searched and sorted.
ROWS_AT_ONCE = 100

# Up to so many scans, all rows are part of the page: some megabytes, which a browser shows within a second.
PAGED_FROM = 2000

# Rows of a part: a megabyte of text.
_ROWS_OF_PART = 2000


def n_parts(n_scans: int) -> int:
    """In how many parts the rows come; 0 if they are part of the page."""
    return -(-n_scans // _ROWS_OF_PART) if n_scans > PAGED_FROM else 0


def has_rows(out: Path, n_scans: int) -> bool:
    """Whether all parts are there that the page of so many scans reads."""
    return all((out / part_name(part)).is_file() for part in range(n_parts(n_scans)))


def part_name(part: int) -> str:
    """The file of a part of the table."""
    return f"{_TABLE}/{part}.js"


def write_rows(folder: OutputFolder, results: Results, anchors: Mapping[str, str]) -> None:
    """Write the rows of the table, if they are not part of the page, and remove those of an earlier page."""
    names = set()
    if n_parts(len(results.scans)):
        for part, script in enumerate(_scripts(results, anchors)):
            folder.write_together({part_name(part): script})
            names.add(part_name(part))
    for path in (folder.path / _TABLE).glob("*.js"):
        name = path.relative_to(folder.path).as_posix()
        if name not in names:
            folder.remove(name)


def _scripts(results: Results, anchors: Mapping[str, str]) -> Iterator[bytes]:
    """The parts as scripts, the only kind of file that a page which was opened from disk may load."""
    row = template("scan_row.html.j2").module.scan_row
    kinds = ["raw"] if results.calibration is None else ["raw", "calibrated"]
    has_shards, is_guaranteed = is_sharded(results.out), results.is_guaranteed
    for begin in range(0, len(results.scans), _ROWS_OF_PART):
        scans = results.scans[begin : begin + _ROWS_OF_PART]
        shards = [shard_of(one.name) if has_shards else "" for one in scans]
        rows = (
            row(one, anchors[one.name], shard, kinds, is_guaranteed) for one, shard in zip(scans, shards, strict=True)
        )
        texts = [str(one).strip() for one in rows]
        yield f"lesioncountRows({json.dumps(texts)});\n".encode()

"""Given instances, such as cells in a label image → tables of candidates: with scores, or the highest of a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lesioncount.cohort.item import FileFacts, ScanFiles
from lesioncount.cohort.pairing import pair
from lesioncount.cohort.tables import Table, TableRow
from lesioncount.errors import LesionCountError, MapFileError, listed
from lesioncount.files.detections.rows import AXES, SIDES, probabilities_of
from lesioncount.files.formats import open_map, scan_name
from lesioncount.files.geometry import check_same_grid
from lesioncount.files.masks import LabelMap, read_label_map
from lesioncount.trust.candidate_table import CandidateTable

_LABELS, _SCORES = ("label", "id", "instance"), ("score", "probability", "prob", "confidence")


def scored_instances(scans: Sequence[ScanFiles], scores: Path) -> list[ScanFiles]:
    """Label images as scans whose candidates are their labels, with the scores that a table has of them."""
    table = Table.read(scores, MapFileError, lower=True)
    label, score = (next((name for name in names if name in table.columns), names[0]) for names in (_LABELS, _SCORES))
    table.check(label, score, advice="It has a row for each label: label and score, and of several images also scan.")
    of_scan: dict[str, dict[int, float]] = {}
    for row in table.rows:
        scan = row.get("scan") or row.get("image") or ""
        known = of_scan.setdefault(scan_name(Path(scan)) if scan else "", {})
        number = row.whole_number(label, "an instance") or 0
        if number in known:
            raise row.wrong(f"label {number} has more than one row.")
        known[number] = _number(row, score)
    return [_scored(scan, of_scan, scores, n_scans=len(scans)) for scan in scans]


def instances_on_maps(scans: Sequence[ScanFiles], masks: Path, *, logits: bool, scale: float | None) -> list[ScanFiles]:
    """Maps whose candidates are given instances: the existence of each is the highest value of the map in it."""
    found = pair({scan.name: FileFacts.unread(scan) for scan in scans}, masks, role="mask")
    made = []
    for scan in scans:
        try:
            made.append(_on_map(scan, found.get(scan.name), logits=logits, scale=scale))
        except (LesionCountError, OSError) as error:
            made.append(replace(scan, tables=(_NOTHING,), problem=str(error)))
    return made


def _on_map(scan: ScanFiles, instances: Path | None, *, logits: bool, scale: float | None) -> ScanFiles:
    if instances is None:
        raise MapFileError("There is no label image of this scan (--instances).")
    source, label_map = open_map(scan.path, scale=scale, logits=logits), read_label_map(instances)
    source.check_scale()
    check_same_grid(source.grid, label_map.grid, "the label image")
    numbers = np.array(sorted(label_map.present), dtype=np.int64)
    inside = np.nonzero(label_map.labels)
    highest = np.zeros(len(numbers))
    rows = np.searchsorted(numbers, label_map.labels[inside])
    np.maximum.at(highest, rows, source.probabilities()[inside].astype(np.float64))
    return _with_table(scan, label_map, dict(zip(numbers.tolist(), highest.tolist(), strict=True)))


_NOTHING = CandidateTable(("peak",), (np.empty(0),))


def _scored(scan: ScanFiles, of_scan: Mapping[str, Mapping[int, float]], path: Path, *, n_scans: int) -> ScanFiles:
    scores = of_scan.get(scan_name(scan.path), of_scan.get("") if n_scans == 1 else None)
    label_map = read_label_map(scan.path)
    missing = sorted(set(label_map.present) ^ set(scores or ()))
    if missing:
        raise MapFileError(
            f"Expected a score in {path} for each label of {scan.path}, and no others, but {listed(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} in one of them only. Of several images, the column scan says "
            "whose."
        )
    return _with_table(scan, label_map, scores or {})


def _with_table(scan: ScanFiles, label_map: LabelMap, scores: Mapping[int, float]) -> ScanFiles:
    table = _table(label_map.labels, scores)
    return replace(scan, tables=(table,), image=label_map.grid.path, is_listed=True)


def _table(labels: NDArray[np.int64], scores: Mapping[int, float]) -> CandidateTable:
    """Where each label lies, from its box; in pictures, x is the column and y the row."""
    numbers = np.array(sorted(scores), dtype=np.int64)
    index = np.stack(np.nonzero(labels), axis=1)
    rows = np.searchsorted(numbers, labels[tuple(index.T)])
    low, high = np.full((len(numbers), labels.ndim), np.iinfo(np.int64).max), np.full((len(numbers), labels.ndim), -1)
    np.minimum.at(low, rows, index)
    np.maximum.at(high, rows, index)
    middle, sides = (low + high) / 2, (high - low + 1).astype(np.float64)
    if labels.ndim == 2:
        middle, sides = middle[:, ::-1], sides[:, ::-1]
    peak = probabilities_of(np.array([scores[int(one)] for one in numbers], dtype=np.float64))
    columns = {f"{name}_px": column.copy() for name, column in zip(AXES, middle.T, strict=False)}
    columns |= {f"{name}_px": column.copy() for name, column in zip(SIDES, sides.T, strict=False)}
    return CandidateTable.of(peak, **columns)


def _number(row: TableRow, column: str) -> float:
    text = row.needed(column)
    try:
        return float(text)
    except ValueError:
        raise row.wrong(f"expected a score, but got {text!r:.60}.") from None

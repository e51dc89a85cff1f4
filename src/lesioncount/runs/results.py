"""A folder of results → what was counted in each scan, as it was and calibrated."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.errors import MapFileError
from lesioncount.protocol import CountingProtocol
from lesioncount.runs.count_content import combined
from lesioncount.runs.records import read_record
from lesioncount.trust.calibration import Calibration


@dataclass(frozen=True, eq=False)
class StoredGrid:
    """Where the voxels of a map lie, as its record says."""

    path: Path
    shape: tuple[int, ...]
    affine: NDArray[np.float64] | None
    spacing_mm: tuple[float, ...] | None


@dataclass(frozen=True, eq=False)
class ScanResult:
    """What was counted in one scan.

    Attributes
    ----------
    name : str
    existence : tuple of array
        Existence probabilities as counted: one array, or one per member of an ensemble.
    cc_count : int
        Connected components above 0.5.
    grid : StoredGrid
        Of the map, or of the first member's.
    within : Path or None
        The mask that was counted inside of.
    settings : dict
        What it was counted with.
    conformal : tuple of int or None
        The guaranteed 90 % interval, where there is one.
    """

    name: str
    existence: tuple[NDArray[np.float64], ...]
    cc_count: int
    grid: StoredGrid
    within: Path | None
    settings: dict[str, Any]
    conformal: tuple[int, int] | None = None

    def distribution(self, calibration: Calibration) -> CountDistribution:
        """The distribution of the count."""
        return combined([calibration.distribution(p) for p in self.existence])


@dataclass(frozen=True, eq=False)
class Results:
    """All scans of a run that were counted, and how many were not."""

    out: Path
    protocol: CountingProtocol
    calibration: Calibration | None
    scans: tuple[ScanResult, ...]
    n_failed: int

    @property
    def has_members(self) -> bool:
        """Whether scans were counted by the members of an ensemble."""
        return any(len(scan.existence) > 1 for scan in self.scans)


def read_results(out: Path) -> Results:
    """Read what a run has left in its folder."""
    run = read_run(out)
    applied = {key: value for key, value in (run["settings"].get("calibration") or {}).items() if key != "fingerprint"}
    counted = [_scan_result(out, item["scan"]) for item in run["inputs"] if item["status"] == "ok"]
    if not counted:
        raise MapFileError(f"There is no scan in {out} that was counted.")
    return Results(
        out,
        CountingProtocol.from_dict(run["settings"]["protocol"]),
        Calibration.from_dict(applied) if applied else None,
        tuple(counted),
        len(run["inputs"]) - len(counted),
    )


def read_run(out: Path) -> dict[str, Any]:
    """What ``run.json`` in a folder of results says: settings, and a scan, status and error for each input."""
    try:
        run = json.loads((out / "run.json").read_text("utf-8"))
        CountingProtocol.from_dict(run["settings"]["protocol"])
        is_run = all({"scan", "status"} <= set(item) for item in run["inputs"])
    except (OSError, ValueError, KeyError, TypeError):
        is_run = False
    if not is_run:
        raise MapFileError(
            f"Expected the results of a run in {out}, but its run.json is not there or cannot be read. Count first: "
            f"lesioncount count MAPS -o {out}"
        )
    return dict(run)


def _scan_result(out: Path, name: str) -> ScanResult:
    record = read_record(out, name) or {}
    try:
        affine = record["map"]["affine"]
        spacing = record["map"]["spacing_mm"]
        return ScanResult(
            name,
            existence_by_member(record),
            int(record["count"]["cc_count"]),
            StoredGrid(
                Path(record["input"]["path"]),
                tuple(record["map"]["shape"]),
                None if affine is None else np.array(affine, dtype=np.float64),
                None if spacing is None else tuple(spacing),
            ),
            Path(record["input"]["mask"]) if "mask" in record["input"] else None,
            record["settings"],
            _conformal(record["count"]),
        )
    except (KeyError, TypeError, ValueError):
        raise MapFileError(f"The record {out / name}.json is not there, or is not one. Count again.") from None


def existence_by_member(record: dict[str, Any]) -> tuple[NDArray[np.float64], ...]:
    """Existence probabilities in a record, one array per member of an ensemble."""
    n_members = len(record.get("members", ())) or 1
    by_member: list[list[float]] = [[] for _ in range(n_members)]
    for row in record["lesions"]:
        by_member[row.get("member", 1) - 1].append(row["existence"])
    return tuple(np.array(values, dtype=np.float64) for values in by_member)


def _conformal(count: dict[str, Any]) -> tuple[int, int] | None:
    low, high = (count.get(f"interval90_{end}_conformal") for end in ("low", "high"))
    return None if low is None or high is None else (int(low), int(high))

"""A folder of results → what is known of all its scans together."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.io.records import read_record
from lesioncount.poisson_binomial import PoissonBinomial
from lesioncount.protocol import CountingProtocol


@dataclass(frozen=True, eq=False)
class ScanSummary:
    """The count of one scan without its candidates, which are read again when they are shown.

    Attributes
    ----------
    name : str
    anchor : str
        Where its section is on the page.
    count : dict or None
        The columns of ``counts.tsv``; None when counting failed.
    existence : ndarray
        One probability per candidate.
    warnings : tuple of str
    error : str or None
        Why counting failed.
    """

    name: str
    anchor: str
    count: dict[str, Any] | None
    existence: NDArray[np.float64]
    warnings: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, eq=False)
class Cohort:
    """All scans of a run, in its order."""

    out: Path
    run: dict[str, Any]
    scans: tuple[ScanSummary, ...]

    @cached_property
    def counted(self) -> tuple[ScanSummary, ...]:
        """The scans that have a count, the most uncertain first; those that are equally so in the order of the run."""
        counted = [scan for scan in self.scans if scan.count is not None]
        return tuple(sorted(counted, key=lambda scan: -_spread(scan)))

    @property
    def failed(self) -> tuple[ScanSummary, ...]:
        """The scans that could not be counted."""
        return tuple(scan for scan in self.scans if scan.count is None)

    @cached_property
    def total(self) -> PoissonBinomial:
        """The number of lesions in all scans: counts of different scans are independent, so their candidates add up."""
        return PoissonBinomial(np.concatenate([np.empty(0), *(scan.existence for scan in self.counted)]))

    @property
    def protocol(self) -> CountingProtocol:
        """What was counted as one lesion."""
        return CountingProtocol.from_dict(self.run["settings"]["protocol"])

    @property
    def warnings(self) -> dict[str, list[str]]:
        """The names of the scans that each warning is about."""
        about: dict[str, list[str]] = {}
        for scan in self.scans:
            for warning in scan.warnings:
                about.setdefault(warning, []).append(scan.name)
        return about


def read_cohort(out: Path) -> Cohort:
    """Read what a run has left in its folder."""
    try:
        run = json.loads((out / "run.json").read_text("utf-8"))
        inputs = [(str(item["scan"]), item.get("error")) for item in run["inputs"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise MapFileError(
            f"Expected the results of a run in {out}, but its run.json is not there or cannot be read. Count first: "
            f"lesioncount count MAPS -o {out}"
        ) from None
    return Cohort(out, run, tuple(_summaries(out, inputs)))


def _summaries(out: Path, inputs: Iterable[tuple[str, str | None]]) -> Iterable[ScanSummary]:
    for number, (name, error) in enumerate(inputs, start=1):
        anchor = f"scan-{number}"
        record = read_record(out, name) or {"error": "its record is not there; counts.tsv says what happened"}
        if error or record.get("status") != "ok":  # the run knows of scans that died before they had a record
            yield ScanSummary(name, anchor, None, np.empty(0), error=str(error or record.get("error")))
            continue
        existence = np.array([row["existence"] for row in record["lesions"]], dtype=np.float64)
        yield ScanSummary(name, anchor, record["count"], existence, tuple(record["warnings"]))


def _spread(scan: ScanSummary) -> float:
    return float((scan.existence * (1 - scan.existence)).sum())

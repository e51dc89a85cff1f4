"""Rows of a detector's table, as they are read → one table of candidates per scan."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapError, MapFileError, listed
from lesioncount.sweep.voxels import sigmoid
from lesioncount.trust.candidate_table import CandidateTable

# The columns of a table of candidates that say where one lies and how far it reaches: these, and a unit.
AXES, SIDES = ("x", "y", "z"), ("dx", "dy", "dz")

# What a table may say its coordinates are.
COORDINATES = ("ras", "lps", "pixels")

# Of classes that are no text.
_NO_CLASS = ""

# Classes that a message names.
_SHOWN = 10


@dataclass(frozen=True)
class Reading:
    """What a user knows of a table of detections.

    Attributes
    ----------
    format : str or None
        Its format, where its content does not tell it.
    columns : mapping of str to str
        What columns are called: ``{"scan": "seriesuid", "score": "probability"}``.
    classes : tuple of str
        Which are counted. None: there is only one.
    coordinates : str or None
        ``"ras"``, ``"lps"`` (both in millimetres) or ``"pixels"``.
    scale : float or None
        What one unit of the scores is worth.
    logits : bool
        Whether scores are logits.
    """

    format: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    coordinates: str | None = None
    scale: float | None = None
    logits: bool = False


class DetectionRows:
    """All rows of a file, column by column: 8 bytes for each number.

    Parameters
    ----------
    path : Path
    unit : {"mm", "px", "fraction"}
        Of places and sizes.
    """

    def __init__(self, path: Path, unit: str = "px") -> None:
        self.path, self.unit = path, unit
        self.scores = array("d")
        self.places: list[array[float]] = []
        self.sides: list[array[float]] = []
        self._scan_of, self._class_of = array("q"), array("q")
        self._scans: dict[str, int] = {}
        self._classes: dict[str, int] = {}

    def add(
        self,
        scores: Iterable[float],
        places: Sequence[Iterable[float]] = (),
        sides: Sequence[Iterable[float]] = (),
        *,
        scans: Iterable[str],
        classes: Iterable[str] = (),
    ) -> None:
        """Add rows: their scores, the columns of their places and sizes, as many each time, and whose they are."""
        if not len(self.scores):
            self.places, self.sides = [array("d") for _ in places], [array("d") for _ in sides]
        if (len(places), len(sides)) != (len(self.places), len(self.sides)):
            raise MapFileError(f"{self.path}: some detections have another number of coordinates than others.")
        self.scores.extend(scores)
        for column, values in zip((*self.places, *self.sides), (*places, *sides), strict=True):
            column.extend(values)
        self._scan_of.extend(self._scans.setdefault(one, len(self._scans)) for one in scans)
        self._class_of.extend(self._classes.setdefault(one, len(self._classes)) for one in classes)

    def add_one(
        self, scan: str, score: float, place: Sequence[float], sides: Sequence[float] = (), name: str = _NO_CLASS
    ) -> None:
        """Add a row."""
        self.add((score,), [(one,) for one in place], [(one,) for one in sides], scans=(scan,), classes=(name,))

    def add_scan(self, scan: str) -> None:
        """Add a scan that may have no row."""
        self._scans.setdefault(scan, len(self._scans))

    def tables(self, how: Reading) -> dict[str, CandidateTable]:
        """The table of each scan, of the classes that are counted; scans in the order of the file."""
        columns = self._checked_columns(how)
        scan_of = np.array(self._scan_of, dtype=np.int64)
        kept = self._of_classes(how.classes)
        if kept is not None:
            columns, scan_of = {name: column[kept] for name, column in columns.items()}, scan_of[kept]
        order = np.argsort(scan_of, kind="stable")
        ends = np.cumsum(np.bincount(scan_of, minlength=len(self._scans)))
        columns = {name: column[order] for name, column in columns.items()}
        begin, found = 0, {}
        for scan, end in zip(self._scans, ends.tolist(), strict=True):
            found[scan] = CandidateTable(tuple(columns), tuple(_own(one[begin:end]) for one in columns.values()))
            begin = end
        return found

    def _checked_columns(self, how: Reading) -> dict[str, NDArray[np.float64]]:
        """The numbers of all rows by their names; raise if they cannot be what they stand for."""
        try:
            peak = probabilities_of(np.array(self.scores), how.scale, logits=how.logits)
        except MapError as error:
            raise MapFileError(f"{self.path}: {error}") from None
        places, sides = ([np.array(one) for one in columns] for columns in (self.places, self.sides))
        unit, flip = ("mm", how.coordinates == "lps") if self.unit == "mm" else (self.unit, False)
        if not all(np.isfinite(one).all() for one in (*places, *sides)) or any((one < 0).any() for one in sides):
            raise MapFileError(f"{self.path}: a place or a size is not a number, infinite, or negative.")
        if flip:  # of DICOM and ITK, x and y point to the left and to the back
            places[:2] = [-one for one in places[:2]]
        named = {f"{name}_{unit}": one for name, one in zip(AXES, places, strict=False)}
        return {"peak": peak} | named | {f"{name}_{unit}": one for name, one in zip(SIDES, sides, strict=False)}

    def _of_classes(self, wanted: Sequence[str]) -> NDArray[np.bool_] | None:
        """Which rows are of the classes that are counted; None for all."""
        known = [name for name in self._classes if name != _NO_CLASS]
        if not wanted:
            if len(self._classes) > 1:
                raise MapFileError(
                    f"{self.path} holds {len(self._classes)} classes: {listed(map(repr, self._classes), _SHOWN)}. "
                    "Choose those to count: --class NAME (from Python: classes=)."
                )
            return None
        missing = [name for name in wanted if name not in self._classes]
        if missing and len(self.scores):
            has = listed(map(repr, known), _SHOWN) if known else "none"
            raise MapFileError(f"{self.path} has no class {missing[0]!r} (--class). It has {has}.")
        numbers = [self._classes[name] for name in wanted if name in self._classes]
        return np.isin(np.array(self._class_of, dtype=np.int64), numbers)


def probabilities_of(
    scores: NDArray[np.float64], scale: float | None = None, *, logits: bool = False
) -> NDArray[np.float64]:
    """Scores as probabilities; raise if they are none."""
    values = np.asarray(sigmoid(scores) if logits else scores if scale is None else scores * scale)
    is_wrong = ~((values >= 0) & (values <= 1))
    if is_wrong.any():
        wrong = values[is_wrong]
        raise MapError(
            f"Expected scores in [0, 1], but {len(wrong)} of {len(values)} are not, such as {wrong[0]:.6g}. If these "
            "are logits, pass --logits (from Python: logits=True); if percent, --scale 0.01."
        )
    return values


def _own(values: NDArray[np.float64]) -> NDArray[np.float64]:
    values = values.copy()  # a scan alone does not keep the numbers of all others
    values.flags.writeable = False
    return values

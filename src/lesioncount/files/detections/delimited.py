"""Detections in CSV and TSV files with a header, such as those of LUNA16 and QuPath; and YOLO's, which have none."""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from isal import igzip

from lesioncount.errors import MapFileError, listed, reason_of
from lesioncount.files.byte_streams import check_regular
from lesioncount.files.detections.rows import AXES, COORDINATES, DetectionRows, Reading

# Names of columns without anything but letters and digits, the best first.
SCAN = (
    "scan", "seriesuid", "seriesinstanceuid", "scanid", "image", "imageid", "imagename", "filename", "file", "case",
    "caseid", "study", "studyuid", "subject", "participantid", "patient", "patientid",
)  # fmt: skip
SCORE = ("score", "probability", "confidence", "prob", "conf", "detectionprobability")
_CLASS = ("class", "classname", "category", "categoryname", "classification", "classid", "categoryid")
_PLACE = re.compile(r"(coord|world|peak|cent(?:er|re)|centroid|position)?([xyz])(mm|um|px|pixels?)?")
_EDGE = re.compile(r"([xyz])(min|max|[12])(mm|um|px|pixels?)?")
_SIDE = re.compile(r"(width|height|depth|[whd]|d[xyz])(mm|um|px|pixels?)?")
_DIAMETER = re.compile(r"(?:equivalent)?(?:diameter|size)(mm|um|px|pixels?)?")
_PREFIXES = (None, "coord", "world", "peak", "center", "centre", "position", "centroid")

# What columns may be named for (--columns).
ROLES = ("scan", "score", "class", "x", "y", "z", "xmin", "ymin", "zmin", "xmax", "ymax", "zmax",
         "width", "height", "depth", "diameter")  # fmt: skip

# Millimetres, by the unit in a name.
_MM = {"mm": 1.0, "um": 1e-3}

# Rows that are read together.
_AT_ONCE = 1 << 15

# Letters of a header, and of a cell, that a message shows.
_LONGEST, _LONGEST_CELL = 300, 60

# Cells of a line of YOLO: class, box, and with save_conf=True the confidence.
_YOLO_CELLS = 6


@dataclass(frozen=True)
class Layout:
    """Which columns hold what.

    Attributes
    ----------
    scan, score, label : int or None
        By their numbers; the score is always there.
    places, low, sides : tuple of int
        Coordinates of the middle; or of the first corner, with the other one in ``sides``; or sizes.
    unit : {"mm", "px"}
    factor : float
        To that unit.
    is_lps : bool
        Whether names say that coordinates are those of DICOM and ITK.
    """

    score: int
    scan: int | None = None
    label: int | None = None
    places: tuple[int, ...] = ()
    high: tuple[int, ...] = ()
    sides: tuple[int, ...] = ()
    unit: str = "mm"
    factor: float = 1.0
    is_lps: bool = False


def read_delimited(path: Path, how: Reading) -> tuple[DetectionRows, Reading]:
    """The rows of a table with a header; scans are called "" if it has no column for them."""
    with opened_text(path) as stream:
        header = _header(path, stream)
        delimiter = next((one for one in "\t;" if one in re.sub(r'"[^"]*"', "", header)), ",")
        names = [cell.strip() for cell in next(csv.reader([header], delimiter=delimiter))]
        layout = _layout(path, names, how)
        rows = DetectionRows(path, layout.unit)
        lines = csv.reader(stream, delimiter=delimiter)
        _read_all(path, lines, len(names), layout, rows)
    is_lps = layout.is_lps and how.coordinates is None
    return rows, Reading(**{**vars(how), "coordinates": "lps" if is_lps else how.coordinates})


def _read_all(path: Path, lines: Iterator[list[str]], n: int, layout: Layout, rows: DetectionRows) -> None:
    first = 2
    while chunk := _next(path, lines):
        cells = [row for row in chunk if row]
        if not {len(row) for row in cells} <= {n}:
            place = next(place for place, row in enumerate(chunk) if row and len(row) != n)
            raise MapFileError(
                f"{path}, about line {first + place}: expected {n} cells, as in the header, but got "
                f"{len(chunk[place])}."
            )
        columns = list(zip(*cells, strict=True)) if cells else []
        if columns:
            _add(path, columns, layout, rows, first)
        first += len(chunk)


def _next(path: Path, lines: Iterator[list[str]]) -> list[list[str]]:
    try:
        return list(islice(lines, _AT_ONCE))
    except (csv.Error, UnicodeDecodeError, OSError, EOFError) as error:
        raise MapFileError(f"The table {path} cannot be read: {reason_of(error)}.") from None


def _add(path: Path, columns: Sequence[tuple[str, ...]], layout: Layout, rows: DetectionRows, first: int) -> None:
    def numbers(place: int) -> array[float]:
        return _numbers(path, columns[place], first)

    n = len(columns[0])
    scans = ("",) * n if layout.scan is None else [one.strip() for one in columns[layout.scan]]
    if layout.scan is not None and not all(scans):
        raise MapFileError(f"{path}, about line {first + scans.index('')}: the row does not say of which scan it is.")
    classes = () if layout.label is None else [one.strip() for one in columns[layout.label]]
    places, sides = [numbers(place) for place in layout.places], [numbers(place) for place in layout.sides]
    if layout.high:
        ends = [numbers(place) for place in layout.high]
        pairs = list(zip(places, ends, strict=True))
        half = 0.5 if layout.unit == "px" else 0.0  # the middle of the first pixel has the index 0, and its edge -0.5
        places = [array("d", ((a + b) / 2 - half for a, b in zip(*pair, strict=True))) for pair in pairs]
        sides = [array("d", (b - a for a, b in zip(*pair, strict=True))) for pair in pairs]
    if len(sides) == 1:
        sides *= len(places) or 3
    if layout.factor != 1.0:
        places, sides = ([array("d", (one * layout.factor for one in of)) for of in both] for both in (places, sides))
    rows.add(numbers(layout.score), places, sides, scans=scans, classes=classes)


def _numbers(path: Path, cells: Sequence[str], first: int) -> array[float]:
    try:
        values = array("d", map(float, cells))
        if "_" not in "".join(cells):  # which Python takes for numbers, and nobody else
            return values
    except ValueError:
        pass
    for place, cell in enumerate(cells):
        if not _is_number(cell):
            advice = " Decimal commas must be points." if "," in cell else ""
            raise MapFileError(
                f"{path}, about line {first + place}: expected a number, but got {cell[:_LONGEST_CELL]!r}.{advice}"
            )
    return array("d", map(float, cells))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _header(path: Path, stream: IO[str]) -> str:
    try:
        header = next((line for line in stream if line.strip()), "")
    except (UnicodeDecodeError, OSError, EOFError) as error:
        raise MapFileError(f"The table {path} cannot be read: {reason_of(error)}.") from None
    if not header:
        raise MapFileError(f"The table {path} is empty: it has no names of columns.")
    return header


def _layout(path: Path, names: Sequence[str], how: Reading) -> Layout:
    plain = [re.sub(r"[^a-z0-9]", "", name.lower().replace("µ", "u").replace("μ", "u")) for name in names]
    given = _given(path, names, how.columns)
    score = given.get("score", _only(path, names, plain, SCORE))
    if score is None:
        raise MapFileError(
            f"Expected a column with the score of each candidate in {path}, but its columns are "
            f"{', '.join(names)[:_LONGEST]}. Name it: --columns score=NAME (from Python: columns=)."
        )
    scan = given.get("scan", _first(plain, SCAN))
    label = given.get("class", _first(plain, (*_CLASS, *(["label"] if how.classes else []))))
    places, high, unit, is_lps = _places(path, plain, given)
    sides = () if high else _sides(plain, given, len(places))
    kind, factor = _unit(unit, how.coordinates)
    if places and kind is None:
        shown = ", ".join(names[place] for place in places)
        raise MapFileError(
            f"{path}: in which units are {shown}? Say so: --coordinates ras or lps (both in millimetres) or pixels."
        )
    return Layout(score, scan, label, places, high, sides, kind or "mm", factor, is_lps)


def _given(path: Path, names: Sequence[str], columns: Mapping[str, str]) -> dict[str, int]:
    for role, name in columns.items():
        if role not in ROLES:
            raise MapFileError(f"Columns are named for {', '.join(ROLES)}, not for {role!r} (--columns).")
        if list(names).count(name) != 1:
            raise MapFileError(
                f"Expected one column {name!r} in {path} (--columns {role}={name}), but its columns are "
                f"{', '.join(names)[:_LONGEST]}."
            )
    return {role: list(names).index(name) for role, name in columns.items()}


def _first(plain: Sequence[str], known: Sequence[str]) -> int | None:
    return next((plain.index(name) for name in known if name in plain), None)


def _only(path: Path, names: Sequence[str], plain: Sequence[str], known: Sequence[str]) -> int | None:
    found = [place for place, name in enumerate(plain) if name in known]
    if len(found) > 1:
        several = listed(repr(names[place]) for place in found)
        raise MapFileError(
            f"{path} has several columns that may be the score: {several}. Say which: --columns score=NAME."
        )
    return found[0] if found else None


def _places(
    path: Path, plain: Sequence[str], given: Mapping[str, int]
) -> tuple[tuple[int, ...], tuple[int, ...], str | None, bool]:
    """Columns of the middle of each candidate, or of two corners; their unit; and whether they are those of LUNA16."""
    if "x" in given or "y" in given:
        named = tuple(given[axis] for axis in AXES if axis in given)
        if "y" not in given or "x" not in given:
            raise MapFileError(f"{path}: a place has the columns x and y, and in volumes z (--columns x=…,y=…).")
        return named, (), _unit_in(plain[named[0]]), plain[named[0]].startswith("coord")
    corners = {place: (found[1], found[2]) for place, name in enumerate(plain) if (found := _EDGE.fullmatch(name))}
    corners |= {place: (role[0], role[1:]) for role, place in given.items() if role[1:] in ("min", "max")}
    low, high = (
        {axis: place for place, (axis, end) in corners.items() if end in ends} for ends in (("min", "1"), ("max", "2"))
    )
    if "x" in low and "y" in low and low.keys() == high.keys():
        axes = [axis for axis in AXES if axis in low]
        return tuple(low[one] for one in axes), tuple(high[one] for one in axes), _unit_in(plain[low["x"]]), False
    middles = {place: match for place, name in enumerate(plain) if (match := _PLACE.fullmatch(name))}
    for prefix in _PREFIXES:
        own = {match[2]: place for place, match in middles.items() if match[1] == prefix}
        if "x" in own and "y" in own:
            middle = tuple(own[axis] for axis in AXES if axis in own)
            return middle, (), _unit_in(plain[own["x"]]), prefix == "coord"
    return (), (), None, False


def _sides(plain: Sequence[str], given: Mapping[str, int], n_axes: int) -> tuple[int, ...]:
    named = [given[role] for role in ("width", "height", "depth") if role in given]
    if named or "diameter" in given:
        return tuple(named) or (given["diameter"],)
    found = {match[1]: place for place, name in enumerate(plain) if (match := _SIDE.fullmatch(name))}
    for names in (("dx", "dy", "dz"), ("width", "height", "depth"), ("w", "h", "d")):
        own = [found[name] for name in names if name in found]
        if own and len(own) == n_axes:
            return tuple(own)
    return tuple(place for place, name in enumerate(plain) if _DIAMETER.fullmatch(name))[:1] if n_axes else ()


def _unit_in(name: str) -> str | None:
    if name.startswith("coord"):
        return "mm"
    found = re.search(r"(mm|um|px|pixels?)$", name)
    return None if found is None else found[1]


def _unit(named: str | None, coordinates: str | None) -> tuple[str | None, float]:
    if coordinates is not None and coordinates not in COORDINATES:
        raise MapFileError(f"Expected coordinates to be one of {', '.join(COORDINATES)}, but got {coordinates!r}.")
    if named in _MM and coordinates != "pixels":
        return "mm", _MM[named]
    if coordinates is not None:
        return ("px", 1.0) if coordinates == "pixels" else ("mm", 1.0)
    return (None, 1.0) if named is None else ("px", 1.0)


@contextmanager
def opened_text(path: Path) -> Iterator[IO[str]]:
    """A file of text, decompressed if it ends in .gz."""
    check_regular(path)
    try:
        with path.open("rb") as raw, igzip.open(raw) if path.name.lower().endswith(".gz") else raw as file:
            yield io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    except OSError as error:
        if isinstance(error, MapFileError):
            raise
        raise MapFileError(f"{path} cannot be read: {reason_of(error)}.") from None


def read_yolo(path: Path, how: Reading) -> tuple[DetectionRows, Reading]:
    """The rows of one picture: ``class x y width height conf``, in parts of the picture."""
    rows = DetectionRows(path, "fraction")
    rows.add_scan("")
    with opened_text(path) as stream:
        try:
            lines = [line.split() for line in stream]
        except (UnicodeDecodeError, EOFError) as error:
            raise MapFileError(f"{path} cannot be read: {reason_of(error)}.") from None
    for number, cells in enumerate(lines, start=1):
        if not cells:
            continue
        if len(cells) != _YOLO_CELLS:
            advice = (
                " Predict with save_conf=True, so that confidences are written." if len(cells) < _YOLO_CELLS else ""
            )
            raise MapFileError(
                f"{path}, line {number}: expected class, x, y, width, height and conf, but got {len(cells)} cells."
                f"{advice}"
            )
        x, y, width, height, score = _numbers(path, cells[1:], number)
        rows.add_one("", score, (x, y), (width, height), cells[0])
    if any(one > 1 or one < 0 for column in rows.places for one in column):
        raise MapFileError(f"{path}: expected places as parts of the picture, from 0 to 1, as YOLO writes them.")
    return rows, how

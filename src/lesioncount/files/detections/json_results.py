"""Detections in JSON: COCO results, MONAI, nnDetection's boxes, and QuPath's GeoJSON, told apart by what they hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec
from isal import igzip
from msgspec import Raw, Struct

from lesioncount.errors import MapFileError, reason_of
from lesioncount.files.byte_streams import check_regular
from lesioncount.files.detections.delimited import SCORE
from lesioncount.files.detections.rows import DetectionRows, Reading

# More bytes than a table of ten million detections has.
_MOST_BYTES = 1 << 31

_READ_AT_ONCE = 1 << 24

Kind = TypeVar("Kind")


class _CocoRow(Struct, frozen=True, gc=False):
    """One entry of COCO results, or an annotation with a score."""

    image_id: int | str
    score: float
    bbox: list[float]
    category_id: int | str | None = None


class _Named(Struct, frozen=True):
    """An image or a category of a COCO data set."""

    id: int | str
    file_name: str = ""
    name: str = ""


class _CocoSet(Struct, frozen=True):
    """COCO results that say which images and categories there are."""

    annotations: list[Raw]
    images: list[_Named] = []
    categories: list[_Named] = []


class _MonaiScan(Struct, frozen=True):
    """What MONAI's detectors write of one scan."""

    image: str
    box: list[list[float]]
    score: list[float] | None = None
    label_scores: list[float] | None = None
    label: list[int | str] | None = None


class _NnBox(Struct, frozen=True):
    """A box as nnDetection exports it: first and last index along the axes of the array, z and y, then x."""

    score: float
    box: list[float]
    label: int | str | None = None


class _Measurement(Struct, frozen=True):
    name: str
    value: float | None = None


class _Class(Struct, frozen=True):
    name: str | None = None
    names: list[str] | None = None


class _Properties(Struct, frozen=True):
    measurements: dict[str, Any] | list[_Measurement] = {}
    classification: _Class | None = None
    objectType: str = ""  # noqa: N815 - as QuPath writes it


class _Geometry(Struct, frozen=True):
    type: str
    coordinates: list[Any]


class _Feature(Struct, frozen=True):
    """An object of QuPath."""

    geometry: _Geometry
    properties: _Properties


def read_json_results(path: Path, how: Reading) -> tuple[DetectionRows, Reading]:
    """The rows of a JSON file of a known format; scans are called "" if it is of one scan."""
    content = _bytes(path)
    top = _decoded(path, content, dict[str, Raw] | list[Raw])
    kind = how.format or _kind_of(path, top)
    return _READERS[kind](path, content, top, how)


def _kind_of(path: Path, top: dict[str, Raw] | list[Raw]) -> str:
    if isinstance(top, list):
        keys = _keys(top[0]) if top else {"image_id"}
        return (
            "coco"
            if "image_id" in keys
            else "monai"
            if "box" in keys
            else "geojson"
            if "geometry" in keys
            else _unknown(path)
        )
    if "features" in top:
        return "geojson"
    if "annotations" in top and "images" in top:
        return "coco"
    values = list(top.values())
    if values and all({"box", "score"} <= _keys(one) for one in values):
        return "nndetection"
    lists = [one for one in values if _is_list(one)]
    if lists and any("box" in _keys(first) for first in map(_first_of, lists)):
        return "monai"
    return _unknown(path)


def _unknown(path: Path) -> NoReturn:
    raise MapFileError(
        f"{path} is JSON, but not of a kind that is known: COCO results, MONAI, nnDetection's boxes or QuPath's "
        "GeoJSON. Say which it is (--format coco, monai, nndetection or geojson)."
    )


def _keys(one: Raw) -> set[str]:
    """The keys of an object; none of anything else."""
    try:
        return set(msgspec.json.decode(one, type=dict[str, Raw]))
    except (ValueError, RecursionError):
        return set()


def _is_list(one: Raw) -> bool:
    return bytes(memoryview(one)[:1]) == b"["


def _first_of(one: Raw) -> Raw:
    found = msgspec.json.decode(one, type=list[Raw])
    return found[0] if found else Raw(b"{}")


def _coco(path: Path, content: bytes, top: Any, how: Reading) -> tuple[DetectionRows, Reading]:
    rows, images, categories = DetectionRows(path), {}, {}
    entries = top
    if isinstance(top, dict):
        whole = _decoded(path, content, _CocoSet)
        entries = whole.annotations
        images = {one.id: one.file_name or str(one.id) for one in whole.images}
        categories = {one.id: one.name for one in whole.categories if one.name}
        for name in images.values():
            rows.add_scan(name)
    decoder = msgspec.json.Decoder(_CocoRow)
    for place, entry in enumerate(entries):
        one = _entry(path, place, decoder.decode, entry)
        if len(one.bbox) not in (4, 6):
            raise MapFileError(
                f"{path}, entry {place}: expected a bbox of x, y, width and height, but got {len(one.bbox)} numbers."
            )
        n = len(one.bbox) // 2
        place_of = tuple(low + side / 2 - 0.5 for low, side in zip(one.bbox[:n], one.bbox[n:], strict=True))
        name = "" if one.category_id is None else str(categories.get(one.category_id, one.category_id))
        rows.add_one(str(images.get(one.image_id, one.image_id)), one.score, place_of, one.bbox[n:], name)
    return rows, how


def _monai(path: Path, _content: bytes, top: Any, how: Reading) -> tuple[DetectionRows, Reading]:
    """Boxes in world coordinates, which are those of ITK: the middle and the sides."""
    rows = DetectionRows(path, "px" if how.coordinates == "pixels" else "mm")
    several = (
        [top] if isinstance(top, list) else [_decoded(path, one, list[Raw]) for one in top.values() if _is_list(one)]
    )
    for place, entry in enumerate(one for entries in several for one in entries):
        scan = _entry(path, place, msgspec.json.Decoder(_MonaiScan).decode, entry)
        scores = scan.score if scan.score is not None else scan.label_scores
        labels = ["" for _ in scan.box] if scan.label is None else [str(one) for one in scan.label]
        if scores is None or not len(scores) == len(scan.box) == len(labels):
            raise MapFileError(
                f"{path}, scan {scan.image}: expected a score and a label for each of {len(scan.box)} boxes."
            )
        rows.add_scan(scan.image)
        for score, box, label in zip(scores, scan.box, labels, strict=True):
            if len(box) not in (4, 6):
                raise MapFileError(f"{path}, scan {scan.image}: expected boxes of 4 or 6 numbers, but got {len(box)}.")
            n = len(box) // 2
            rows.add_one(scan.image, score, box[:n], box[n:], label)
    return rows, how if how.coordinates else Reading(**{**vars(how), "coordinates": "lps"})


def _nndetection(path: Path, content: bytes, _top: Any, how: Reading) -> tuple[DetectionRows, Reading]:
    rows = DetectionRows(path)
    rows.add_scan("")
    for name, one in _decoded(path, content, dict[str, _NnBox]).items():
        if len(one.box) not in (4, 6):
            raise MapFileError(f"{path}, box {name}: expected 4 or 6 numbers, but got {len(one.box)}.")
        pairs = [(one.box[0], one.box[2]), (one.box[1], one.box[3]), *([one.box[4:]] if len(one.box) == 6 else [])]
        pairs.reverse()  # arrays of ITK have the axes z, y and x
        label = "" if one.label is None else str(one.label)
        rows.add_one("", one.score, [(a + b) / 2 for a, b in pairs], [b - a for a, b in pairs], label)
    return rows, how


def _geojson(path: Path, content: bytes, top: Any, how: Reading) -> tuple[DetectionRows, Reading]:
    rows = DetectionRows(path)
    rows.add_scan("")
    entries = top if isinstance(top, list) else _decoded(path, content, _Collection).features
    wanted = how.columns.get("score")
    decoder = msgspec.json.Decoder(_Feature)
    for place, entry in enumerate(entries):
        one = _entry(path, place, decoder.decode, entry)
        if one.properties.objectType in ("annotation", "root", "tma_core", "tmacore"):
            continue  # drawn by people, or a part of the slide
        score = _score(one.properties, wanted)
        if score is None:
            raise MapFileError(
                f"{path}, object {place}: it has no measurement {wanted or 'such as Detection probability'!r}. Name "
                "the one that is the score: --columns 'score=NAME'."
            )
        low, high = _box(path, place, one.geometry)
        middle = [(a + b) / 2 - 0.5 for a, b in zip(low, high, strict=True)]
        rows.add_one("", score, middle, [b - a for a, b in zip(low, high, strict=True)], _class_of(one.properties))
    return rows, how


class _Collection(Struct, frozen=True):
    features: list[Raw]


def _score(properties: _Properties, wanted: str | None) -> float | None:
    found = properties.measurements
    named = found if isinstance(found, dict) else {one.name: one.value for one in found}
    for name, value in named.items():
        is_it = name == wanted if wanted else re.sub(r"[^a-z0-9]", "", name.lower()) in SCORE
        if is_it and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def _class_of(properties: _Properties) -> str:
    of = properties.classification
    return "" if of is None else of.name or ": ".join(of.names or ())


def _box(path: Path, place: int, geometry: _Geometry) -> tuple[list[float], list[float]]:
    points = list(_points(geometry.coordinates))
    if not points:
        raise MapFileError(f"{path}, object {place}: its geometry has no points.")
    columns = list(zip(*points, strict=True))
    return [min(one) for one in columns], [max(one) for one in columns]


def _points(nested: Sequence[Any]) -> Iterable[tuple[float, float]]:
    """All points of a geometry, however deep its lists are."""
    if len(nested) >= 2 and all(isinstance(one, int | float) for one in nested):
        yield float(nested[0]), float(nested[1])
        return
    for one in nested:
        if isinstance(one, list):
            yield from _points(one)


def _entry(path: Path, place: int, decode: Callable[[Raw], Kind], entry: Raw) -> Kind:
    try:
        return decode(entry)
    except (ValueError, RecursionError) as error:
        raise MapFileError(f"{path}, entry {place}: {reason_of(error)}.") from None


def _decoded(path: Path, content: bytes | Raw, kind: Any) -> Any:
    try:
        return msgspec.json.decode(content, type=kind)
    except (ValueError, RecursionError) as error:
        raise MapFileError(f"{path} cannot be read as a table of detections: {reason_of(error)}.") from None


def _bytes(path: Path) -> bytes:
    check_regular(path)
    parts: list[bytes] = []
    try:
        with path.open("rb") as raw, igzip.open(raw) if path.name.lower().endswith(".gz") else raw as file:
            while part := file.read(_READ_AT_ONCE):
                parts.append(part)
                if sum(map(len, parts)) > _MOST_BYTES:
                    raise MapFileError(f"{path} holds more than {_MOST_BYTES >> 30} GB. Write one file per scan.")
    except (OSError, EOFError) as error:
        if isinstance(error, MapFileError):
            raise
        raise MapFileError(f"{path} cannot be read: {reason_of(error)}.") from None
    return b"".join(parts).removeprefix(b"\xef\xbb\xbf")


_READERS = {"coco": _coco, "monai": _monai, "nndetection": _nndetection, "geojson": _geojson}

"""Tables of detectors → one table of candidates per scan: CSV, COCO, YOLO, MONAI, nnDetection, QuPath."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lesioncount.errors import MapFileError, listed
from lesioncount.files.detections.delimited import read_delimited, read_yolo
from lesioncount.files.detections.json_results import read_json_results
from lesioncount.files.detections.rows import COORDINATES, DetectionRows, Reading
from lesioncount.files.remote_path import RemotePath, to_path
from lesioncount.trust.candidate_table import CandidateTable

__all__ = [
    "COORDINATES",
    "FORMATS",
    "Reading",
    "is_table",
    "read_candidates",
    "refuse_pickles",
    "table_name",
    "tables_in",
]

_DELIMITED, _YOLO, _JSON = (".csv", ".tsv"), (".txt",), (".json", ".geojson")
_ENDINGS = tuple(f"{ending}{zipped}" for ending in (*_DELIMITED, *_YOLO, *_JSON) for zipped in ("", ".gz"))
_PICKLES = (".pkl", ".pickle", "_seg.npy")

# What a table may be said to be.
FORMATS = ("csv", "luna16", "coco", "monai", "nndetection", "geojson", "yolo")

# What nnDetection adds to the name of a case.
_OF_CASE = "_boxes"


def read_candidates(
    path: str | os.PathLike[str],
    /,
    *,
    format: str | None = None,  # noqa: A002 - what everybody calls it
    columns: Mapping[str, str] | None = None,
    classes: str | Sequence[str] = (),
    coordinates: str | None = None,
    scale: float | None = None,
    logits: bool = False,
) -> dict[str, CandidateTable]:
    """Read what a detector has found: one table of candidates for each scan, in the order of the file.

    Parameters
    ----------
    path : path
        A table with a header (``.csv``, ``.tsv``, such as LUNA16's), COCO results, MONAI's or nnDetection's boxes
        (``.json``), objects of QuPath (``.geojson``), or boxes of YOLO (``.txt``); each may be compressed (``.gz``).
    format : str, optional
        ``"csv"``, ``"luna16"``, ``"coco"``, ``"monai"``, ``"nndetection"``, ``"geojson"`` or ``"yolo"``. Default: what
        the file says itself.
    columns : mapping of str to str, optional
        What columns are called, by what they hold: ``{"scan": "seriesuid", "score": "probability", "x": "coordX"}``.
    classes : str, or sequence of str, optional
        Which classes are counted, where there are several.
    coordinates : {"ras", "lps", "pixels"}, optional
        What places are, where the file does not say it: millimetres to the right, front and top; to the left, back and
        top, as ITK has them; or pixels.
    scale : float, optional
        What one unit of the scores is worth, such as ``0.01`` for percent.
    logits : bool, default False
        Whether scores are logits.

    Returns
    -------
    dict of str to CandidateTable
        By scan. Columns are ``peak``, the score, and what is known of places and sizes: ``x_mm``, ``dx_mm``, or
        ``x_px``. **A scan without a detection may not be in it**: only a list of scans can tell.
    """
    given = (classes,) if isinstance(classes, str) else tuple(classes)
    how = Reading(format, dict(columns or {}), given, coordinates, scale, logits)
    file = to_path(path)
    return {scan or table_name(file): table for scan, table in tables_in(file, how).items()}


def tables_in(path: Path, how: Reading) -> dict[str, CandidateTable]:
    """The same with what a user knows of the file; a scan is called "" in files that are of one scan."""
    refuse_pickles(path)
    _check(path, how)
    rows, known = _reader(path, how)(path, how)
    return rows.tables(known)


def is_table(path: Path) -> bool:
    """Whether a file may be a table of detections, by its name."""
    return path.name.lower().endswith(_ENDINGS)


def table_name(path: Path) -> str:
    """The name of the scan that a file is of."""
    name = path.name
    ending = next((one for one in sorted(_ENDINGS, key=len, reverse=True) if name.lower().endswith(one)), "")
    name = name[: len(name) - len(ending)] if ending else name
    return name.removesuffix(_OF_CASE) or name


def refuse_pickles(path: Path) -> None:
    """Raise for files that run code when they are opened, with the lines that export what is in them."""
    if not path.name.lower().endswith(_PICKLES):
        return
    if path.name.lower().endswith(".npy"):
        lines = (
            "    from cellpose import io, utils; import numpy, tifffile\n"
            f'    found = numpy.load("{path.name}", allow_pickle=True).item()\n'
            '    tifffile.imwrite("masks.tif", found["masks"]); print(found.keys())\n'
            "and count the label image with a score for each label (--instances-scores)."
        )
    else:
        lines = (
            "    import json, pickle\n"
            f'    found = pickle.load(open("{path.name}", "rb"))\n'
            '    rows = zip(found["pred_boxes"], found["pred_scores"], found["pred_labels"])\n'
            '    boxes = {n: {"score": float(s), "label": int(k), "box": b.tolist()}\n'
            "             for n, (b, s, k) in enumerate(rows)}\n"
            f'    json.dump(boxes, open("{path.with_suffix(".json").name}", "w"))'
        )
    raise MapFileError(
        f"{path} is a pickle, which runs code when it is opened: it is never read. Export it where you trust it:\n"
        f"{lines}"
    )


def _check(path: Path, how: Reading) -> None:
    if isinstance(path, RemotePath):
        raise MapFileError(f"{path}: tables of detections are read from this machine. Copy it first.")
    if how.format is not None and how.format not in FORMATS:
        raise MapFileError(f"There is no format {how.format!r} of detections. Known are {', '.join(FORMATS)}.")
    if how.coordinates is not None and how.coordinates not in COORDINATES:
        raise MapFileError(f"Expected coordinates to be {', '.join(COORDINATES)}, but got {how.coordinates!r}.")


def _reader(path: Path, how: Reading) -> Callable[[Path, Reading], tuple[DetectionRows, Reading]]:
    name = path.name.lower().removesuffix(".gz")
    kind = how.format
    if kind in ("csv", "luna16") or (kind is None and name.endswith(_DELIMITED)):
        return read_delimited
    if kind == "yolo" or (kind is None and name.endswith(_YOLO)):
        return read_yolo
    if kind is not None or name.endswith(_JSON):
        return read_json_results
    raise MapFileError(
        f"{path} is not a table of detections by its name: {listed(_ENDINGS, 99)}. Say what it is: --format."
    )

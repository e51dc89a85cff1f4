"""napari: a reader that shows a map, its candidates and their peaks in one step. Found by ``napari.yaml`` (npe2)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lesioncount.assess.shown import ShownScan, can_be_shown, shown_scans

# Scans of a folder of results that are opened at once, the first of them visible.
MOST_SCANS = 10

Paths = str | Sequence[str]
LayerData = tuple[Any, dict[str, Any], str]


def get_reader(path: Paths) -> Callable[[Paths], list[LayerData]] | None:
    """The reader of maps, folders of results and records of scans; None for other files."""
    paths = _paths(path)
    return read_layers if paths and all(map(can_be_shown, paths)) else None


def read_layers(path: Paths) -> list[LayerData]:
    """Three layers for each scan: probabilities, candidates as labels with their table, and their peaks as points."""
    scans = [scan for one in _paths(path) for scan in shown_scans(one, most=MOST_SCANS + 1)]
    if len(scans) > MOST_SCANS:
        warnings.warn(
            f"Only the first {MOST_SCANS} scans are shown. To see another, open its record, such as "
            f"{scans[MOST_SCANS].name}.json.",
            stacklevel=2,
        )
    shown = scans[:MOST_SCANS]
    return [layer for number, scan in enumerate(shown) for layer in _layers(scan, visible=number == 0)]


def _layers(scan: ShownScan, *, visible: bool) -> list[LayerData]:
    place: dict[str, Any] = {"scale": scan.step_mm, "visible": visible}
    features = scan.features()
    existence = [lesion.best_existence for lesion in scan.lesions]
    peaks = {
        "size": 2.0,
        "symbol": "cross",
        "face_color": "existence" if existence else "white",
        "face_colormap": "turbo",
        "face_contrast_limits": (0.0, 1.0),
        "features": features | {"existence": existence},
        "text": {"string": "{existence:.2f}", "color": "white", "anchor": "upper_left"} if existence else None,
    }
    return [
        (
            scan.probabilities,
            {"name": scan.name, "colormap": "gray", "contrast_limits": (0.0, 1.0), **place},
            "image",
        ),
        (
            scan.labels,
            {"name": f"{scan.name} candidates", "features": {"index": features.get("label", []), **features}, **place},
            "labels",
        ),
        (scan.peaks, {"name": f"{scan.name} peaks", **peaks, **place}, "points"),
    ]


def _paths(path: Paths) -> list[Path]:
    return [Path(path)] if isinstance(path, str) else [Path(one) for one in path]

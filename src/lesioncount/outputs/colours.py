"""Candidates → tables of colours for the programs that show label maps: the more probable, the redder."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from typing import Any

from lesioncount.cohort.item import ScanFiles
from lesioncount.folder.output import OutputFolder
from lesioncount.outputs.output import Output, lesions_of
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.results.record import Record

# From doubtful to certain: blue, yellow, red, which remain apart for the colour-blind.
_STOPS = ((0.0, (69, 117, 180)), (0.25, (145, 191, 219)), (0.5, (254, 224, 144)), (0.75, (252, 141, 89)), (1.0, (215, 48, 39)))  # fmt: skip  # noqa: E501

Colour = tuple[int, int, int]


def colour_of(existence: float) -> Colour:
    """Red, green and blue, 0 to 255, of a candidate that exists with a probability.

    Examples
    --------
    >>> colour_of(0.5), colour_of(1.0)
    ((254, 224, 144), (215, 48, 39))
    """
    place = min(max(bisect([at for at, _ in _STOPS], existence), 1), len(_STOPS) - 1)
    (low, begin), (high, end) = _STOPS[place - 1], _STOPS[place]
    part = (existence - low) / (high - low)
    red, green, blue = (round(a + part * (b - a)) for a, b in zip(begin, end, strict=True))
    return red, green, blue


def itksnap_table(lesions: Sequence[LesionRow]) -> str:
    """Label descriptions of ITK-SNAP: index, colour, opacity, whether it is shown and has a mesh, name in quotes."""
    rows = [(0, (0, 0, 0), 0, 0, 0, "Clear Label")]
    rows += [(one.label, colour_of(one.best_existence), 1, 1, 1, _title(one)) for one in lesions]
    lines = [
        f'{label:5d} {red:5d} {green:4d} {blue:4d} {opacity:8d} {shown:2d} {mesh:2d}    "{name}"'
        for label, (red, green, blue), opacity, shown, mesh, name in rows
    ]
    return "\n".join(["# ITK-SnAP Label Description File", "# IDX  -R-  -G-  -B-  -A--  VIS MSH  LABEL", *lines, ""])


def slicer_table(lesions: Sequence[LesionRow]) -> str:
    """A colour table of 3D Slicer: index, name without blanks, colour, opacity."""
    rows = ["0 Background 0 0 0 0"]
    for one in lesions:
        red, green, blue = colour_of(one.best_existence)
        rows.append(f"{one.label} {_title(one).replace(' ', '_')} {red} {green} {blue} 255")
    return "\n".join(["# Color table file", f"# {len(rows)} values", *rows, ""])


def fsleyes_table(lesions: Sequence[LesionRow]) -> str:
    """A lookup table of FSLeyes: index, colour between 0 and 1, name."""
    rows = []
    for one in lesions:
        red, green, blue = (part / 255 for part in colour_of(one.best_existence))
        rows.append(f"{one.label} {red:.5f} {green:.5f} {blue:.5f} {_title(one)}")
    return "\n".join(rows) + "\n"


# By the ending that each program looks for beside the label map.
_TABLES: dict[str, Callable[[Sequence[LesionRow]], str]] = {
    "_lesions.label": itksnap_table,
    "_lesions.ctbl": slicer_table,
    "_lesions.lut": fsleyes_table,
}


class Colours(Output):
    """Tables of colours for the label map of a scan."""

    endings = tuple(_TABLES)

    def write(self, folder: OutputFolder, item: ScanFiles, record: Record, found: Any) -> None:
        """Write a table for each program."""
        del found
        lesions = lesions_of(record)
        for ending, table in _TABLES.items():
            folder.write_text(f"{item.name}{ending}", table(lesions))


def _title(lesion: LesionRow) -> str:
    return f"lesion {lesion.label} ({lesion.best_existence:.2f})"

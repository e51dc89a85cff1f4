"""The templates of pages, and how they write numbers."""

from __future__ import annotations

from typing import Any

from lesioncount.optional import optional
from lesioncount.runs.lesion_rows import LesionRow


def template(name: str) -> Any:
    """A template of this folder, ready to be rendered."""
    jinja2 = optional("jinja2", "report", "Writing the report")
    # Names of files and messages of errors may hold anything: everything is escaped unless it is our own markup.
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("lesioncount.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"size": _size, "mm": _mm, "probability": _probability, "percent": percent, "s": plural}
    return environment.get_template(name)


def _size(volume_mm3: float | None) -> str:
    if volume_mm3 is None:
        return "–"
    return f"{volume_mm3:,.0f} mm³".replace(",", "\u202f") if volume_mm3 >= 100 else f"{volume_mm3:.3g} mm³"


def _mm(row: LesionRow) -> str:
    place = [row.peak_x_mm, row.peak_y_mm, row.peak_z_mm]
    return "–" if None in place else ", ".join(f"{value:.1f}" for value in place).replace("-", "\u2212")


def _probability(value: float) -> str:
    """Three digits, but 0 and 1 only where it is certain."""
    if 0 < value < 0.0005:
        return "< 0.001"
    return "> 0.999" if 0.9995 <= value < 1 else f"{value:.3f}"


def percent(share: float) -> str:
    """A share, with a digit more where it is small."""
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.1f} %" if 0 < share < 0.0995 else f"{100 * share:.0f} %"


def plural(number: int, word: str) -> str:
    """A number of things."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"

"""A folder of results → ``report.html``, one file that needs nothing else."""

from __future__ import annotations

from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from lesioncount.io.atomic import write_text
from lesioncount.io.optional import optional
from lesioncount.report.cohort import Cohort, read_cohort
from lesioncount.report.figures import histogram, overview
from lesioncount.report.sections import PICTURES_PER_SCAN, section_of
from lesioncount.version import __version__

# Scans with pictures, the most uncertain ones: with more, browsers take long to open the page.
_SCANS_WITH_PICTURES = 60

# Rows of the overview that fit on a screen.
_SCANS_IN_OVERVIEW = 40

# From so many scans on, sections are closed until they are asked for, but for the first ones.
_MANY_SCANS, _OPEN_OF_MANY = 12, 3


def write_report(out: Path, *, images: Path | None = None) -> Path:
    """Write a page that shows the results in a folder: the cohort, each scan, and each candidate in its place.

    Parameters
    ----------
    out : path
        Folder with the results of a run: ``run.json`` and a record per scan. The maps are read again for pictures.
    images : path, optional
        What to show behind the candidates: a folder with an image of the same name for each map, or one image for all.
        It must lie on the grid of the map. Default: the map itself.

    Returns
    -------
    Path
        Of the page, ``report.html`` in the folder.
    """
    for module in ("matplotlib", "jinja2"):
        optional(module, "report", "Writing the report")
    out = Path(out)
    page = out / "report.html"
    write_text(page, _rendered(read_cohort(out), None if images is None else Path(images)))
    return page


def _rendered(cohort: Cohort, images: Path | None) -> str:
    sections = [
        section_of(scan, cohort.out, images=images, has_pictures=number < _SCANS_WITH_PICTURES)
        for number, scan in enumerate(cohort.counted)
    ]
    in_overview = cohort.counted[:_SCANS_IN_OVERVIEW]
    is_cut = len(in_overview) < len(cohort.counted)
    text: str = _template().render(
        cohort=cohort,
        sections=sections,
        overview=overview(in_overview, "overview") if in_overview else "",
        histogram=histogram(cohort.counted, "histogram") if is_cut else "",
        n_in_overview=len(in_overview),
        n_open=len(sections) if len(sections) <= _MANY_SCANS else _OPEN_OF_MANY,
        pictures_per_scan=PICTURES_PER_SCAN,
        scans_with_pictures=_SCANS_WITH_PICTURES,
        total_interval=cohort.total.interval(0.9),
        version=__version__,
        written=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
    )
    return text


def _template() -> Any:
    jinja2 = optional("jinja2", "report", "Writing the report")
    # Names of files and messages of errors may hold anything: everything is escaped unless it is our own markup.
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"size": _size, "mm": _mm, "probability": _probability, "percent": _percent, "s": _plural}
    return environment.from_string(files("lesioncount.report").joinpath("page.html.j2").read_text("utf-8"))


def _size(volume_mm3: float | None) -> str:
    if volume_mm3 is None:
        return "–"
    return f"{volume_mm3:,.0f} mm³".replace(",", "\u202f") if volume_mm3 >= 100 else f"{volume_mm3:.3g} mm³"


def _mm(row: dict[str, Any]) -> str:
    place = [row[f"peak_{axis}_mm"] for axis in "xyz"]
    return "–" if None in place else ", ".join(f"{value:.1f}" for value in place).replace("-", "\u2212")


def _probability(value: float) -> str:
    """Three digits, but 0 and 1 only where it is certain."""
    if 0 < value < 0.0005:
        return "< 0.001"
    return "> 0.999" if 0.9995 <= value < 1 else f"{value:.3f}"


def _percent(share: float) -> str:
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.1f} %" if 0 < share < 0.0995 else f"{100 * share:.0f} %"


def _plural(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"

"""The templates of pages, and how they write numbers."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from lesioncount.cohort.names import shown_name
from lesioncount.optional import optional
from lesioncount.report.pictures import picture
from lesioncount.results.count_warnings import headline, in_general, in_short
from lesioncount.results.lesion_rows import LesionRow
from lesioncount.trust.calibration import NOT_CHECKED
from lesioncount.version import __version__


def check_can_report() -> None:
    """Raise a `MissingExtraError` unless all packages are there that pages need: before the work that they show."""
    for module in ("matplotlib", "jinja2"):
        optional(module, "report", "Writing the report")


def template(name: str, package: str = "lesioncount.report") -> Any:
    """A template of a package, ready to be rendered; it may include the templates of this one."""
    return _environment(package).get_template(name)


def rendered(name: str, **content: Any) -> str:
    """A page: a template filled with its content, by this version, now."""
    written = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M")
    text: str = template(name).render(version=__version__, written=written, **content)
    return text


@cache
def looks(*names: str) -> str:
    """A hash of templates, of all of them by default: what a page looks like."""
    folder = files("lesioncount.report")
    chosen = names or sorted(file.name for file in folder.iterdir() if file.name.endswith(".j2"))
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in chosen)).hexdigest()


def _remarks(warnings: Iterable[str]) -> list[str]:
    """What is said of a scan in the table: not what is so of all scans, which the page says once."""
    return [headline(warning) for warning in warnings if NOT_CHECKED not in warning]


@cache
def _environment(package: str) -> Any:
    jinja2 = optional("jinja2", "report", "Writing the report")
    # Names of files and messages of errors may hold anything: everything is escaped unless it is our own markup.
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(one, ".") for one in dict.fromkeys((package, "lesioncount.report"))]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    safe = environment.filters["safe"]
    environment.filters |= {"size": size, "mm": _mm, "probability": _probability, "percent": percent, "s": plural}
    environment.filters |= {
        "as_written": shown_name,
        "headline": headline,
        "in_general": in_general,
        "remarks": _remarks,
        "in_short": in_short,
    }
    environment.filters["picture"] = lambda plane, what, planes: safe(picture(plane, what, planes))
    environment.globals["zip"] = zip
    environment.globals["content_policy"] = lambda *scripts, may_load=False: safe(
        _content_policy([environment.get_template(script).render() for script in scripts], may_load=may_load)
    )
    return environment


def _content_policy(scripts: Iterable[str], *, may_load: bool) -> str:
    """What a browser lets a page do: show pictures and styles that are in it, and run these scripts of ours.

    With ``may_load``, these scripts may load others, which they look for beside the page only; no markup may. Nothing
    is loaded from elsewhere and nothing is sent, whatever a name or a message in the page says. Styles are not held to
    their hashes, because elements have some of their own: the width of a bar, the colour of a dot.
    """
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{one}'" for one in hashes) or "'none'"
    allowed += " 'strict-dynamic'" if may_load else ""
    return (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}; base-uri 'none'; "
        "form-action 'none'"
    )


def size(volume_mm3: float | None) -> str:
    """A volume."""
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

"""A figure, drawn by matplotlib → SVG, as part of a page that takes its colours, or as a file of its own."""

from __future__ import annotations

import html
import re
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lesioncount.folder.output import OutputFolder
from lesioncount.optional import optional

T = TypeVar("T")

# Okabe and Ito's palette, which people with any colour vision tell apart.
OURS, MARK, USUAL = "#0072b2", "#d55e00", "#8c8c8c"

# How a method looks in all figures. Shapes and dashes tell the same as colours, for prints in black.
COLOURS = {"raw": OURS, "calibrated": MARK, "cc": USUAL, "cc_tuned": "#cc79a7", "all_zero": "#e69f00"}
MARKERS = {"raw": "o", "calibrated": "s", "cc": "x", "cc_tuned": "+", "all_zero": "|"}
DASHES: dict[str, Any] = {"raw": "-", "calibrated": (0, (5, 2)), "cc": (0, (1, 1.5))}

# Of a line at what is right, or no difference.
DOTTED: dict[str, Any] = {"color": USUAL, "linewidth": 1, "linestyle": (0, (2, 2))}

# Stands for the colour of the text around the figure, which is light on dark pages.
INK = "#010203"

# Of the text in a file of its own, which is mostly put on paper or slides.
_BLACK = "#000000"

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",  # text stays text: searchable, read aloud, and in the font of the page
    "svg.hashsalt": "lesioncount",  # the same figure has the same bytes
    "text.parse_math": False,  # a $ in a name is a $
    "font.size": 10, "axes.labelsize": 10, "xtick.labelsize": 9, "ytick.labelsize": 9, "legend.fontsize": 9,
    "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6,
}  # fmt: skip

# Narrow, so that letters keep a readable size when the figure is as wide as a phone.
WIDTH_INCH = 5.0

# Of an axis of ratios: ticks, and the largest logarithm whose ratio is a number.
_MOST_TICKS, _LARGEST_LOG = 9, 700.0

# Letters that fit beside a line of the legend.
_LONGEST_LINE = 40


@dataclass(frozen=True)
class Figure:
    """A figure: the name of its file, what it shows in words, and the drawing."""

    name: str
    label: str
    document: str

    @property
    def element(self) -> str:
        """As a part of the page: without a style of its own, with names that no other figure has."""
        body = self.document[self.document.index("<svg") :]
        box = re.search(r'viewBox="([^"]+)"', body)
        body = body[body.index("</defs>") + len("</defs>") :]
        body = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", body).replace(INK, "currentColor")
        defined = set(re.findall(r' id="([^"]+)"', body))
        used = {name for name in re.findall(r'(?:url\(|href=")#([^")]+)', body) if name in defined}
        own = {name: f"{self.name}-{name}" for name in used}
        body = re.sub(r' id="([^"]+)"', lambda m: f' id="{own[m[1]]}"' if m[1] in own else "", body)
        body = re.sub(r'(url\(|href=")#([^")]+)', lambda m: f"{m[1]}#{own.get(m[2], m[2])}", body)
        start = (
            f'<svg class="figure" viewBox="{box[1] if box else ""}" role="img" aria-label="{html.escape(self.label)}">'
        )
        return start + re.sub(r"\s*\n\s*", " ", body).rstrip()

    @property
    def file(self) -> str:
        """As a file, for papers and slides."""
        return self.document.replace(INK, _BLACK)


def write_with_figures(folder: Path, page: str, text: str, figures: Mapping[str, Figure]) -> Path:
    """Write a page, and its figures as files in ``figures`` beside it, for papers and slides."""
    files = {f"figures/{name}.svg": figure.file for name, figure in figures.items()} | {page: text}
    ours = OutputFolder(folder)
    ours.check(list(files))
    for name, content in files.items():
        ours.write_text(name, content)
    return Path(folder) / page


def whole_numbers(*axis: Any) -> None:
    """Ticks at whole numbers only, on these axes."""
    ticker = optional("matplotlib.ticker", "report", "Writing the report")
    for one in axis:
        one.set_major_locator(ticker.MaxNLocator(integer=True, min_n_ticks=1, steps=(1, 2, 5, 10)))


def count_axis(axes: Any, name: str, *, is_log: bool) -> None:
    """Counts on an axis, "x" or "y": as they are, or by log(count + 1), which has room for 0 and for hundreds."""
    axis = getattr(axes, f"{name}axis")
    if not is_log:
        whole_numbers(axis)
        return
    last = float(axis.get_view_interval()[1])
    getattr(axes, f"set_{name}scale")("function", functions=(lambda one: np.log1p(np.maximum(one, -0.9)), np.expm1))
    ticks = [0, *(float(f"{digit}e{power}") for power in range(16) for digit in (1, 3))]
    axis.set_ticks([tick for tick in ticks if tick <= last])
    axis.set_major_formatter(lambda value, _: f"{value:g}")


def ratio_axis(axis: Any) -> None:
    """Logarithms of ratios on an axis, named by the ratios: powers of 2, or of 10 where they span many."""
    low, high = (float(end) for end in axis.get_view_interval())
    step = np.log(2) if high - low < np.log(200) else np.log(10)
    step *= max(1, np.ceil((high - low) / step / _MOST_TICKS))
    axis.set_ticks(np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step)
    axis.set_major_formatter(lambda value, _: f"×{np.exp(min(value, _LARGEST_LOG)):.3g}")


def name_rows(axes: Any, names: Sequence[str]) -> None:
    """Names beside the rows of a figure, the first at the top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def some_of(points: Sequence[T], most: int) -> Sequence[T]:
    """All points or, of very many, some from all over the list."""
    if len(points) <= most:
        return points
    return [points[i] for i in np.linspace(0, len(points) - 1, most).astype(int)]


def legend(figure: Any) -> None:
    """A legend above the axes, one line per entry, because names may be long."""
    handles, names = figure.axes[0].get_legend_handles_labels()
    folded = [textwrap.fill(name, _LONGEST_LINE) for name in names]
    figure.legend(handles, folded, loc="outside upper left", frameon=False, handlelength=2.2, labelspacing=0.3)


def in_percent(*axis: Any) -> None:
    """Show shares as percentages on these axes."""
    for one in axis:
        one.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")


def figure_of(
    name: str, label: str, draw: Callable[[Any], None], *, height_inch: float, width_inch: float = WIDTH_INCH
) -> Figure:
    """A figure of one pair of axes, which ``draw`` is given."""
    document = svg(lambda figure: draw(figure.add_subplot()), height_inch=height_inch, width_inch=width_inch)
    return Figure(name, label, document)


def svg(draw: Callable[[Any], None], *, height_inch: float, width_inch: float = WIDTH_INCH) -> str:
    """An SVG document in our style; ``draw`` is given the empty figure.

    Parameters
    ----------
    draw : callable
        Puts axes and everything else on the figure.
    height_inch, width_inch : float
    """
    matplotlib = optional("matplotlib", "report", "Writing the report")
    figures = optional("matplotlib.figure", "report", "Writing the report")
    text = StringIO()
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # The browser has letters that the font of matplotlib, used to measure them only, has not.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = figures.Figure(figsize=(width_inch, height_inch), layout="constrained")
        draw(figure)
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(text, format="svg", transparent=True, metadata=nothing)
    return text.getvalue()

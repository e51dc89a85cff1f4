"""Numbers → bar charts as SVG, without a drawing library: a page of two thousand scans has one for each."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

# In points, as the other figures of the page have it: 5 by 2.3 inches, with letters of the same sizes.
_WIDTH, _HEIGHT = 360.0, 166.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 47.0, 353.0, 20.0, 131.0
_LABEL_PX, _TICK_PX = 10, 9

# Width of a letter and of a sample of colour in the legend.
_LETTER, _SAMPLE = 5.2, 20.0

_MOST_TICKS = 8


@dataclass(frozen=True)
class Bars:
    """Bars of one colour: where each begins and ends, how high it is, and what the legend says."""

    colour: str
    spans: Sequence[tuple[float, float, float]]
    name: str | None = None
    opacity: float = 1.0
    is_outline: bool = False


@dataclass(frozen=True)
class BarChart:
    """A chart of bars, with a dashed line where something else is.

    Attributes
    ----------
    label : str
        What it shows, for those who do not see it.
    bars : list of Bars
    x_range : tuple of float
    x_name, y_name : str
    line : tuple of float, str and str, or None
        Place, colour and name of the dashed line.
    is_whole : bool
        Whether heights are whole numbers.
    """

    label: str
    bars: list[Bars]
    x_range: tuple[float, float]
    x_name: str
    y_name: str
    line: tuple[float, str, str] | None = None
    is_whole: bool = False

    @cached_property
    def highest(self) -> float:
        """A little above the highest bar."""
        heights = [height for bars in self.bars for *_, height in bars.spans]
        return 1.05 * max(heights, default=1.0) or 1.0

    def svg(self) -> str:
        """As an element of the page."""
        drawn = [self._path(bars) for bars in self.bars]
        if self.line is not None:
            at, colour, _ = self.line
            x = self._x(at)
            drawn.append(
                f'<path d="M{x:.1f} {_BOTTOM}V{_TOP}" fill="none" stroke="{colour}" stroke-width="2" '
                'stroke-dasharray="6 4"/>'
            )
        axes = f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" fill="none" stroke="currentColor" stroke-width=".6"/>'
        return (
            f'<svg class="figure" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" '
            f'aria-label="{html.escape(self.label)}">{"".join(drawn)}{axes}'
            f'<g fill="currentColor" font-size="{_TICK_PX}">{"".join(self._ticks())}{"".join(self._legend())}</g>'
            f'<g fill="currentColor" font-size="{_LABEL_PX}" text-anchor="middle">'
            f'<text x="{(_LEFT + _RIGHT) / 2:g}" y="{_HEIGHT - 6:g}">{html.escape(self.x_name)}</text>'
            f'<text transform="translate(11 {(_TOP + _BOTTOM) / 2:g})rotate(-90)">{html.escape(self.y_name)}</text>'
            "</g></svg>"
        )

    def _x(self, value: float) -> float:
        low, high = self.x_range
        return _LEFT + (value - low) / (high - low) * (_RIGHT - _LEFT)

    def _y(self, value: float) -> float:
        return _BOTTOM - value / self.highest * (_BOTTOM - _TOP)

    def _path(self, bars: Bars) -> str:
        d = "".join(
            f"M{self._x(left):.1f} {_BOTTOM}V{self._y(height):.1f}H{self._x(right):.1f}V{_BOTTOM}z"
            for left, right, height in bars.spans
        )
        if bars.is_outline:
            return f'<path d="{d}" fill="none" stroke="{bars.colour}" stroke-width="1.5"/>'
        opacity = "" if bars.opacity == 1 else f' fill-opacity="{bars.opacity:g}"'
        return f'<path d="{d}" fill="{bars.colour}"{opacity}/>'

    def _ticks(self) -> Iterable[str]:
        for value in ticks(*self.x_range, is_whole=True):
            x = self._x(value)
            yield f'<path d="M{x:.1f} {_BOTTOM}v3.5" stroke="currentColor" stroke-width=".6"/>'
            yield f'<text x="{x:.1f}" y="{_BOTTOM + 13}" text-anchor="middle">{value:g}</text>'
        for value in ticks(0, self.highest, is_whole=self.is_whole, most=5):
            y = self._y(value)
            yield f'<path d="M{_LEFT} {y:.1f}h-3.5" stroke="currentColor" stroke-width=".6"/>'
            yield f'<text x="{_LEFT - 6}" y="{y + 3:.1f}" text-anchor="end">{value:.6g}</text>'

    def _legend(self) -> Iterable[str]:
        x = _LEFT
        named = [(bars.name, self._sample(bars)) for bars in self.bars if bars.name is not None]
        if self.line is not None:
            dashed = f'<path d="M0 9h14" stroke="{self.line[1]}" stroke-width="2" stroke-dasharray="6 2"/>'
            named.append((self.line[2], dashed))
        for name, sample in named:
            words = f'<text x="{_SAMPLE - 2}" y="12">{html.escape(name)}</text>'
            yield f'<g transform="translate({x:.1f} 2)">{sample}{words}</g>'
            x += _SAMPLE + _LETTER * len(name) + 8

    @staticmethod
    def _sample(bars: Bars) -> str:
        if bars.is_outline:
            return f'<rect x="1" y="5" width="12" height="7" fill="none" stroke="{bars.colour}" stroke-width="1.5"/>'
        return f'<rect y="5" width="14" height="8" fill="{bars.colour}" fill-opacity="{bars.opacity:g}"/>'


def ticks(low: float, high: float, *, is_whole: bool, most: int = _MOST_TICKS) -> list[float]:
    """Round numbers between two ends: multiples of 1, 2 or 5 times a power of ten.

    Examples
    --------
    >>> ticks(-0.7, 12.7, is_whole=True)
    [0, 2, 4, 6, 8, 10, 12]
    """
    rough = max((high - low) / most, 1e-12)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= rough * 0.999)
    step = max(round(step), 1) if is_whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]

"""A count as a notebook shows it: a line, a small picture of the distribution, and the strongest candidates.

Everything is drawn in the colour that text has where it is shown, so that it can be read on dark pages too. There are
no scripts, no styles but those of single elements, and nothing is loaded from anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from lesioncount.candidates import Candidates
from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.plotting import grouped
from lesioncount.existence import existence_probabilities
from lesioncount.sweep.candidate import Candidate

# How many candidates are listed.
_LISTED = 5

# Of the picture, in pixels: the whole, what is below the bars and above them, and the widest bar.
_WIDTH, _HEIGHT, _AXIS, _ABOVE, _WIDEST = 340, 102, 18, 6, 40

# More bars than this are put together: each would be thinner than a few pixels.
_MOST_BARS = 60

# Labels below the axis.
_MOST_LABELS = 8

_CELL = 'style="text-align:right;padding:0 0.6em"'

# Opacity of bars inside and outside of the interval.
_FULL, _PALE = 0.85, 0.35


def html_of_count(headline: str, distribution: CountDistribution, candidates: Candidates) -> str:
    """A count as HTML."""
    known = candidates.spacing_mm is not None
    strongest = np.argsort(-existence_probabilities(candidates), kind="stable")[:_LISTED]
    rows = [_row(candidates[int(i)], known=known) for i in strongest]
    more = len(candidates) - len(rows)
    parts = [
        f"<strong>{escape(headline)}</strong>",
        picture(distribution),
        table_of(["#", "existence", "voxels", *(["mm³"] if known else []), "peak at"], rows) if rows else "",
        f"… and {more} weaker candidate{'' if more == 1 else 's'}<br>" if more else "",
        f"<small>from {escape(str(candidates))}</small>",
    ]
    if candidates.warning is not None:
        parts.append(f"<br><small>⚠ {escape(str(candidates.warning))}</small>")
    return f"<div>{''.join(parts)}</div>"


def picture(distribution: CountDistribution) -> str:
    """The probabilities of counts as bars, those outside of the 90 % interval paler: an inline SVG."""
    edges, probabilities = grouped(distribution, _MOST_BARS)
    low, high = distribution.interval(0.9)
    step = min(_WIDEST, _WIDTH / len(probabilities))
    width, bottom = step * len(probabilities), _HEIGHT - _AXIS
    top = max(float(probabilities.max()), 1e-300)
    parts = []
    for place, (first, p) in enumerate(zip(edges[:-1].tolist(), probabilities.tolist(), strict=True)):
        end = int(edges[place + 1]) - 1
        height = (bottom - _ABOVE) * max(p, 0.0) / top
        name = str(first) if end == first else f"{first} to {end}"
        parts.append(
            f'<rect x="{place * step + step * 0.08:.1f}" y="{bottom - height:.1f}" width="{step * 0.84:.1f}" '
            f'height="{height:.1f}" fill="currentColor" fill-opacity="{_FULL if low <= first <= high else _PALE}">'
            f"<title>P({name}) = {p:.3g}</title></rect>"
        )
        if place % -(-len(probabilities) // _MOST_LABELS) == 0:
            # At the left end of the picture, half of a long number would be cut off.
            anchor, x = ("start", 0.0) if place == 0 and step < _WIDEST / 2 else ("middle", (place + 0.5) * step)
            parts.append(
                f'<text x="{x:.1f}" y="{_HEIGHT - 5}" text-anchor="{anchor}" font-size="11" fill="currentColor">'
                f"{first}</text>"
            )
    line = f'<path d="M0 {bottom}H{width:.0f}" stroke="currentColor" stroke-opacity="0.5"/>'
    return (
        '<br><svg role="img" aria-label="Probability of each number of lesions" xmlns="http://www.w3.org/2000/svg" '
        f'width="{width:.0f}" height="{_HEIGHT}" viewBox="0 0 {width:.0f} {_HEIGHT}">{"".join(parts)}{line}</svg><br>'
    )


def table_of(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts, which may be anything."""
    head = "".join(f"<th {_CELL}>{escape(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(f"<td {_CELL}>{escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f'<table style="color:inherit"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _row(candidate: Candidate, *, known: bool) -> list[str]:
    volume = [f"{candidate.volume_mm3:.4g}"] if known else []
    place = ", ".join(map(str, candidate.peak_index))
    return [str(candidate.label), f"{candidate.existence:.4f}", str(candidate.n_voxels), *volume, f"({place})"]

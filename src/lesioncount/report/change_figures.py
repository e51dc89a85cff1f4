"""Small figures: how many lesions are new, gone and persisting, and one lesion through time."""

from __future__ import annotations

import html
from collections.abc import Sequence

from lesioncount.report.figures import distribution_of
from lesioncount.results.course_record import ChangeCount
from lesioncount.trust.candidate_table import Counted

# In pixels: height of the drawing, width of a bar with the gap after it, and the gap.
_HEIGHT, _STEP, _GAP = 22.0, 12.0, 3.0

# Of a bar that stands for 0, so that its session is seen to be there.
_LEAST = 1.0


def chart(kind: Counted, count: ChangeCount) -> str:
    """The distribution of the number of new, gone or persisting lesions."""
    return distribution_of(count.numbers, count.pmf, count.pmf_calibrated, f"number of {kind} lesions")


def through_time(values: Sequence[float], words: Sequence[str], what: str, highest: float | None = None) -> str:
    """A bar for each session, as a drawing that fits into a line.

    Parameters
    ----------
    values : sequence of float
    words : sequence of str
        The same, for those who do not see it.
    what : str
        What they are.
    highest : float, optional
        What fills the height. Default: the largest of them.
    """
    full = highest or max(values) or 1.0
    heights = [max(_LEAST, value / full * _HEIGHT) for value in values]
    bars = "".join(
        f"M{place * _STEP:g} {_HEIGHT:g}v-{height:.1f}h{_STEP - _GAP:g}V{_HEIGHT:g}z"
        for place, height in enumerate(heights)
    )
    width = len(values) * _STEP - _GAP
    label = html.escape(f"{what}: {', '.join(words)}")
    return (
        f'<svg class="through" viewBox="0 0 {width:g} {_HEIGHT:g}" width="{width:g}" height="{_HEIGHT:g}" role="img" '
        f'aria-label="{label}"><path d="{bars}"/></svg>'
    )

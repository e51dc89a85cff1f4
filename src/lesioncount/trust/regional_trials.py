"""The count of a scan by region → what questions are asked of."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lesioncount.questions import ExtraLesions, Trials
from lesioncount.regions import OUTSIDE
from lesioncount.trust.regional_count import RegionalCount

# All lesions, wherever they lie.
COUNT = "count"


def trials_of(count: RegionalCount, names: Iterable[str]) -> Trials:
    """Candidates as trials at each node of the calibration, with extra lesions where candidates are.

    Parameters
    ----------
    count : RegionalCount
    names : iterable of str
        What is asked for: regions, and ``count``.
    """
    everywhere = np.ones(len(count.expected), dtype=bool)
    adds = {name: everywhere if name == COUNT else count.members[name] for name in names}
    extra = _extra(count, adds) if count.calibration.has_extra else None
    return Trials(probability=count.existence, adds=adds, weights=count.weights, extra=extra)


def _extra(count: RegionalCount, adds: dict[str, NDArray[np.bool_]]) -> ExtraLesions:
    """As `RegionalCount` has them: each lies where one of the candidates does, or outside if there are none."""
    if count.expected.any():
        share = count.expected / count.expected.sum()
    else:
        share, adds = np.ones(1), {name: np.array([name in (COUNT, OUTSIDE)]) for name in adds}
    return ExtraLesions(mean=count.extra, share=share, adds=adds, shape=count.calibration.extra_shape)

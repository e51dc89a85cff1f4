"""What maps of two scans or regions say of candidates, and calibrations → what questions are asked of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from lesioncount.questions import ExtraLesions, Trials
from lesioncount.questions.over_time import changes_asked_for, trials_over_time
from lesioncount.regions import OUTSIDE
from lesioncount.trust.calibration import AtNodes, Calibration
from lesioncount.trust.candidate_table import CandidateTable, Counted
from lesioncount.trust.regional_count import RegionalCount

# Combinations of what each kind of change shares; of more, every other node is left out. Three kinds have 20 each.
_MOST_NODES = 10_000


def trials_of_changes(
    tables: Mapping[Counted, CandidateTable], names: Sequence[str], calibrations: Mapping[Counted, Calibration]
) -> Trials:
    """Candidates of two scans as trials at each node of the calibrations, with lesions without a candidate.

    Parameters
    ----------
    tables : mapping of str to CandidateTable
        The candidates that may be new, gone or persisting.
    names : sequence of str
        What is asked for.
    calibrations : mapping of str to Calibration
        Of each of the changes that are asked for.

    Notes
    -----
    What a scan shares is drawn for each kind of change by itself, as is the number of lesions without a candidate:
    nothing is known of how they belong together, and so each number has the distribution that its own calibration gives
    it. One thing is known. A candidate cannot be new and persist at once; where the two probabilities are more than 1
    together, which calibrations that were fitted apart may come to, both are divided by their sum.
    """
    kinds = cast("tuple[Counted, ...]", changes_asked_for(names))
    at_nodes = [calibrations[kind].at_nodes(tables[kind]) for kind in kinds]
    existence, weights = _all_combinations(_thinned(at_nodes))
    probability: dict[str, Any] = dict(zip(kinds, existence, strict=True))
    extra: dict[str, Any] = {
        kind: (one.extra_rate + one.extra_share * probability[kind].sum(axis=1), one.extra_shape)
        for kind in kinds
        if (one := calibrations[kind]).has_extra
    }
    return trials_over_time(names, probability | _exclusive(probability), weights=weights, extra=extra)


def _thinned(at_nodes: list[AtNodes]) -> list[AtNodes]:
    """With every other node of the most numerous ones, until there are few enough: these are evenly spaced."""
    while np.prod([len(at.weights) for at in at_nodes]) > _MOST_NODES:
        most = max(range(len(at_nodes)), key=lambda place: len(at_nodes[place].weights))
        every_other = AtNodes(*(part[::2] for part in at_nodes[most]))
        thinned = every_other._replace(weights=every_other.weights / every_other.weights.sum())
        at_nodes = [*at_nodes[:most], thinned, *at_nodes[most + 1 :]]
    return at_nodes


def _all_combinations(at_nodes: Sequence[AtNodes]) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """Existence of each kind at all combinations of nodes, and their weights."""
    places = np.indices([len(at.weights) for at in at_nodes]).reshape(len(at_nodes), -1)
    existence = [at.existence[place] for at, place in zip(at_nodes, places, strict=True)]
    weights = np.prod([at.weights[place] for at, place in zip(at_nodes, places, strict=True)], axis=0)
    return existence, weights


def _exclusive(probability: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """New and persisting as outcomes of one candidate."""
    if not {"new", "persisting"} <= set(probability):
        return {}
    total = np.maximum(probability["new"] + probability["persisting"], 1.0)
    return {"new": probability["new"] / total, "persisting": probability["persisting"] / total}


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

"""Peaks, saddles and basins by the book: voxels sorted from the highest down, each joining what it touches."""

import itertools

import numpy as np
from oracles import plain


def steps(ndim, neighbours):
    """To all neighbours of a voxel."""
    all_steps = itertools.product((-1, 0, 1), repeat=ndim)
    return [step for step in all_steps if 0 < sum(map(abs, step)) <= neighbours]


def peaks(probabilities, threshold, neighbours, mask=None):
    """Rows of (peak, saddle or None, basin): indices, and the voxels whose way up leads to the peak.

    A voxel joins the highest neighbour first. Peaks on a plateau, which end where they begin, are part of the basin
    across their saddle.
    """
    inside = probabilities > threshold
    if mask is not None:
        inside &= mask
    order = sorted(map(tuple, np.argwhere(inside).tolist()), key=lambda voxel: (-probabilities[voxel], voxel))
    rank = {voxel: i for i, voxel in enumerate(order)}
    basin, parent, saddle, into = {}, {}, {}, {}
    for voxel in order:
        around = [tuple(np.add(voxel, step).tolist()) for step in steps(probabilities.ndim, neighbours)]
        higher = sorted((one for one in around if rank.get(one, np.inf) < rank[voxel]), key=rank.get)
        if not higher:
            basin[voxel] = parent[voxel] = voxel
            continue
        basin[voxel] = basin[higher[0]]
        for one in higher[1:]:
            mine, other = _root(parent, basin[voxel]), _root(parent, basin[one])
            if mine == other:
                continue
            across = basin[voxel]
            if rank[mine] > rank[other]:
                mine, other, across = other, mine, basin[one]
            parent[other], saddle[other], into[other] = mine, voxel, across
    return _without_plateaus(probabilities, basin, saddle, into)


def _root(parent, peak):
    while parent[peak] != peak:
        peak = parent[peak]
    return peak


def _without_plateaus(probabilities, basin, saddle, into):
    flat = {peak for peak, at in saddle.items() if probabilities[at] == probabilities[peak]}
    rows = {}
    for voxel, peak in basin.items():
        while peak in flat:
            peak = into[peak]  # noqa: PLW2901 - the way to the peak that stays
        rows.setdefault(peak, []).append(voxel)
    found = [(peak, saddle.get(peak), voxels) for peak, voxels in rows.items()]
    return sorted(found, key=lambda row: min(row[2]))


def component_counts(probabilities, threshold, neighbours):
    """Thresholds from the lowest on, and the number of components above each until the next."""
    levels = np.unique(probabilities[probabilities > threshold]).tolist()
    thresholds = [threshold, *levels]
    return thresholds, [plain.label(probabilities, at, neighbours)[1] for at in thresholds]

"""The usual way to count changes: as scipy subtracts and labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import plain

from lesioncount.changes.counted_map import CountedMap
from lesioncount.protocol import CountingProtocol
from lesioncount.results.scan_count import THRESHOLDS
from lesioncount.runs.comparing import components_changed

NEIGHBOURS = {"faces": 1, "edges": 2, "corners": 3}


def expected(before, after, thresholds, neighbours, min_voxels=1):
    def count(mask):
        labels, _ = plain.label(mask.astype(np.float32), 0.5, neighbours)
        return int((np.bincount(labels.ravel())[1:] >= min_voxels).sum())

    rows = [(after > at, before > at) for at in thresholds]
    return {
        "new": tuple(count(later & ~earlier) for later, earlier in rows),
        "gone": tuple(count(earlier & ~later) for later, earlier in rows),
        "persisting": tuple(count(earlier & later) for later, earlier in rows),
    }


@st.composite
def two_maps(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = tuple(rng.integers(1, 10, draw(st.sampled_from([2, 3]))))
    density, dtype = draw(st.sampled_from([0.0, 0.02, 0.2, 0.6])), draw(st.sampled_from([np.float32, np.float64]))
    return [
        np.where(rng.random(shape) < density, rng.choice([*THRESHOLDS, 0.15, 0.55, 1.0], shape), 0).astype(dtype)
        for _ in range(2)
    ]


@given(
    two_maps(),
    st.sampled_from(sorted(NEIGHBOURS)),
    st.sampled_from([0.05, 0.1, 0.3]),
    st.sampled_from([1, 2]),
    st.sampled_from(["regions", "peaks"]),
)
def test_components_are_those_of_scipy(maps, connectivity, threshold, min_voxels, candidates):
    if maps[0].ndim == 2 and connectivity == "corners":
        connectivity = "edges"
    protocol = CountingProtocol(threshold, connectivity, min_voxels=min_voxels, candidates=candidates)
    counted = [CountedMap.of(one, protocol=protocol) for one in maps]
    found = components_changed(*counted, THRESHOLDS, protocol)
    assert found == expected(*maps, THRESHOLDS, NEIGHBOURS[connectivity], min_voxels)


@pytest.mark.parametrize("order", ["C", "F"])
def test_what_is_outside_of_the_mask_is_not_looked_at(rng, order):
    maps = [np.asarray(rng.random((9, 10, 11)), order=order) for _ in range(2)]
    inside = rng.random((9, 10, 11)) < 0.5
    odd = [np.where(inside, one, np.nan) for one in maps]
    protocol = CountingProtocol()
    found = components_changed(
        *(CountedMap.of(one, protocol=protocol, inside=inside) for one in odd), THRESHOLDS, protocol
    )
    assert found == expected(*(np.where(inside, one, 0) for one in maps), THRESHOLDS, 2)

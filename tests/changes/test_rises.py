"""Where candidates rise most above the other time: by looking at every voxel of each."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage
from strategies import maps

from lesioncount.changes.counted_map import CountedMap
from lesioncount.changes.coupling import Rises, above_floors, raised
from lesioncount.changes.lesion_changes import compare
from lesioncount.protocol import CountingProtocol
from lesioncount.regions.nearby import Ball, voxel_size_of


@given(
    maps(dtypes=(np.float32,), long_sides=(65,)),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["regions", "peaks"]),
    st.sampled_from([0.0, 1.0, 2.0]),
    st.sampled_from([0.5, 1.0, 3.0]),
)
def test_each_candidate_is_looked_at_voxel_by_voxel(now, seed, candidates, within, coupling):
    then = np.random.default_rng(seed).choice([0.0, 0.25, 0.5, 1.0], now.shape).astype(np.float32)
    protocol = CountingProtocol(candidates=candidates)
    counted = [CountedMap.of(one, protocol=protocol) for one in (now, then)]
    rises = Rises.of(*counted, within_mm=within, coupling=coupling)
    reach = np.meshgrid(*[np.arange(-int(within), int(within) + 1)] * now.ndim)
    ball = sum(one**2 for one in reach) <= within**2
    near = ndimage.maximum_filter(then, footprint=ball, mode="constant", cval=0).astype(np.float64)
    found = counted[0].count.candidates
    labels = found.label_map()
    floors = [one.floor(found, Ball.of(within, voxel_size_of(found))) for one in counted]
    near[labels > 0] = above_floors(now[labels > 0].astype(np.float64), near[labels > 0], *floors)
    rise = now.astype(np.float64) - raised(near, coupling)
    assert len(rises.heights) == labels.max()
    for row, place in enumerate(map(tuple, rises.index)):
        here = labels == row + 1
        assert here[place]
        assert rise[place] == rise[here].max()
        assert rises.heights[row] == now[place] == now[here & (rise == rise[here].max())].max()
        assert rises.others[row] == near[place]


def test_of_equals_the_first_voxel_is_taken():
    now = np.zeros((6, 6))
    now[2:4, 2:4] = 0.5
    protocol = CountingProtocol()
    for order in ("C", "F"):
        counted = CountedMap.of(np.asarray(now, order=order), protocol=protocol)
        nothing = CountedMap.of(np.zeros((6, 6)), protocol=protocol)
        rises = Rises.of(counted, nothing, within_mm=1.0, coupling=2.0)
        assert rises.index.tolist() == [[2, 2]]


def test_a_new_lesion_in_one_region_with_an_old_one_is_seen_where_there_was_nothing():
    before = np.zeros((30, 9, 9))
    before[4:7, 4, 4] = 0.95
    after = before.copy()
    after[7:24, 4, 4], after[22, 4, 4] = 0.2, 0.8
    changes = compare(before, after, spacing_mm=(1, 1, 1))
    assert len(changes.after.candidates) == 1
    assert changes.risen.index.tolist() == [[22, 4, 4]]
    assert changes.new.mean() == 0.8
    assert changes.gone.mean() == 0


def test_a_lesion_that_grows_by_less_than_the_tolerance_is_not_new():
    before, after = np.zeros((2, 20, 20, 20))
    before[8:12, 8:12, 8:12], after[6:14, 6:14, 6:14] = 0.9, 0.9
    assert compare(before, after, spacing_mm=(1, 1, 1), tolerance_mm=4).new.mean() < 0.05

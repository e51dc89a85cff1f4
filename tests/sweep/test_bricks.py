import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import NAMES, cuts, maps

import lesioncount as lc
from lesioncount.candidates import candidates_of
from lesioncount.checks import checked_spacing
from lesioncount.errors import NonFiniteError
from lesioncount.protocol import CountingProtocol
from lesioncount.sweep.boxes import Box
from lesioncount.sweep.bricks import BrickSum
from lesioncount.sweep.slabs import SweepPlan
from lesioncount.sweep.voxels import encoding_of


def sum_of(array, protocol, *, scale=None, logits=False, keep_runs=False):
    plan = SweepPlan(tuple(range(array.ndim)), array.shape, encoding_of(array.dtype, scale, 0.0, logits), protocol)
    return BrickSum(plan, keep_runs)


def in_random_bricks(sums, array, mask, rng, box=None, depth=0):
    """The brick of a box that is cut at random, and its parts again."""
    box = sums.whole if box is None else box
    axes = [axis for axis in range(3) if box.sides[axis] > 1]
    if not axes or depth == 5 or rng.random() < 0.1:
        part = box.index(array.ndim)
        return sums.sweep(array[part], None if mask is None else mask[part], box)
    axis = int(rng.choice(axes))
    halves = box.cut(axis, int(rng.integers(box.low[axis] + 1, box.high[axis])))
    return sums.add(*(in_random_bricks(sums, array, mask, rng, half, depth + 1) for half in halves))


def in_a_grid(sums, array, edges, order):
    """The bricks of a grid, added along one axis after the other."""
    bricks = {}
    for place in itertools.product(*(range(len(one) - 1) for one in edges)):
        low, high = (tuple(edges[axis][i + end] for axis, i in enumerate(place)) for end in (0, 1))
        bricks[place] = sums.sweep(array[Box(low, high).index(3)], None, Box(low, high))
    for axis in order:
        rows = {}
        for place, brick in sorted(bricks.items()):
            key = (*place[:axis], 0, *place[axis + 1 :])
            rows[key] = sums.add(rows[key], brick) if key in rows else brick
        bricks = rows
    return bricks[0, 0, 0]


def candidates(sums, brick, spacing_mm=None):
    size = checked_spacing(spacing_mm, len(sums.plan.shape), sums.plan.protocol)
    return candidates_of(sums.finish(brick), sums.plan, sums.plan.shape, size)


def assert_same(found, expected):
    assert len(found) == len(expected)
    assert found.n_dropped == expected.n_dropped
    assert type(found.warning) is type(expected.warning)
    columns = expected.columns()
    for name, column in found.columns().items():
        np.testing.assert_array_equal(column, columns[name], err_msg=name)


@settings(deadline=None, max_examples=100)
@given(
    array=maps(),
    connectivity=st.sampled_from([1, 2, 3]),
    candidates_are=st.sampled_from(["regions", "peaks"]),
    min_voxels=st.sampled_from([1, 1, 3]),
    is_masked=st.booleans(),
    keep_runs=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_bricks_cut_at_random_give_the_whole_map(
    array, connectivity, candidates_are, min_voxels, is_masked, keep_runs, seed
):
    rng = np.random.default_rng(seed)
    protocol = CountingProtocol(
        connectivity=NAMES[min(connectivity, array.ndim)], candidates=candidates_are, min_voxels=min_voxels
    )
    mask = rng.random(array.shape) < 0.8 if is_masked else None
    sums = sum_of(array, protocol, keep_runs=keep_runs)
    found = candidates(sums, in_random_bricks(sums, array, mask, rng))
    # As it is stored, voxels of a candidate would be listed in another order.
    expected = lc.find_candidates(np.ascontiguousarray(array), protocol=protocol, mask=mask, warn=False)
    assert_same(found, expected)
    if keep_runs:
        np.testing.assert_array_equal(found.label_map(), expected.label_map())
        for ours, theirs in zip(found.voxels(), expected.voxels(), strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("connectivity", [6, 18, 26])
def test_a_grid_may_be_added_along_its_axes_in_any_order(rng, connectivity, order):
    array = (rng.random((14, 15, 16)) ** 4).astype(np.float32)
    edges = [cuts(n, rng, 4) for n in array.shape]
    sums = sum_of(array, CountingProtocol(connectivity=connectivity))
    found = candidates(sums, in_a_grid(sums, array, edges, order))
    assert_same(found, lc.find_candidates(array, connectivity=connectivity))


@pytest.mark.parametrize("connectivity", [6, 18, 26])
@pytest.mark.parametrize("step", [(0, 0, 1), (0, 1, 1), (1, 0, -1), (1, 1, 1), (1, -1, 1), (-1, 1, 1), (1, 1, -1)])
def test_two_voxels_across_a_face_an_edge_or_a_corner_of_bricks(connectivity, step):
    array = np.zeros((4, 4, 4), np.float32)
    first = tuple(2 if move < 0 else 1 for move in step)
    array[first] = 0.5
    array[tuple(np.add(first, step))] = 0.9
    sums = sum_of(array, CountingProtocol(connectivity=connectivity))
    for order in itertools.permutations(range(3)):
        found = candidates(sums, in_a_grid(sums, array, [[0, 2, 4]] * 3, order))
        assert_same(found, lc.find_candidates(array, connectivity=connectivity, warn=False))


@pytest.mark.parametrize("candidates_are", ["regions", "peaks"])
@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        (np.uint8, {"scale": 1 / 255}),
        (np.int16, {"scale": 1 / 1000}),
        (np.uint64, {"scale": 1e-6}),
        (np.float16, {}),
        (np.float64, {"logits": True}),
        (">f4", {}),
    ],
)
def test_bricks_of_any_encoding(rng, dtype, options, candidates_are):
    p = rng.random((12, 20, 30)) ** 3
    stored = np.log(p / (1 - p)) if options.get("logits") else p / options.get("scale", 1)
    array = stored.astype(dtype)
    protocol = CountingProtocol(candidates=candidates_are, min_volume_mm3=5, threshold=0.2)
    sums = sum_of(array, protocol, **options)
    found = candidates(sums, in_random_bricks(sums, array, None, rng), (1, 2, 0.5))
    assert_same(found, lc.find_candidates(array, protocol=protocol, spacing_mm=(1, 2, 0.5), **options))


def test_positions_beyond_32_bits():
    sums = sum_of(np.zeros((1, 1, 1), np.float32), CountingProtocol())
    plan = SweepPlan((0, 1, 2), (2048, 16384, 16384), sums.plan.encoding, sums.plan.protocol)
    sums = BrickSum(plan, keep_runs=True)
    lesion = np.zeros((2, 2, 2), np.float32)
    lesion[1, 1] = 0.25, 0.75
    upper, lower = sums.whole.cut(0, 2046)
    left, right = lower.cut(1, 16382)
    front, back = right.cut(2, 16382)
    corner = sums.sweep(lesion, None, back)
    total = sums.add(sums.nothing(left), sums.add(sums.nothing(front), corner))
    found = candidates(sums, sums.add(sums.nothing(upper, has_soft=True), total))
    assert found.peak_index.tolist() == [[2047, 16383, 16383]]
    assert found.bbox.tolist() == [[2047, 16383, 16382, 2048, 16384, 16384]]
    assert found.voxels()[1].tolist() == [[2047, 16383, 16382], [2047, 16383, 16383]]
    assert found.warning is None


def test_bricks_that_do_not_share_a_face_do_not_add():
    sums = sum_of(np.zeros((4, 4, 4), np.float32), CountingProtocol())
    before, after = sums.whole.cut(1, 2)
    with pytest.raises(ValueError, match="share a whole face"):
        sums.add(sums.nothing(after), sums.nothing(before))
    with pytest.raises(ValueError, match="share a whole face"):
        sums.add(sums.nothing(before), sums.nothing(after.cut(0, 2)[0]))
    with pytest.raises(ValueError, match="not that of the whole map"):
        sums.finish(sums.nothing(before))


def test_bad_voxels_are_named_by_their_place_in_the_map():
    array = np.zeros((4, 4, 4), np.float32)
    array[3, 1, 2] = np.nan
    sums = sum_of(array, CountingProtocol())
    box = Box((2, 0, 2), (4, 4, 4))
    with pytest.raises(NonFiniteError, match=r"the first at index \(3, 1, 2\)"):
        sums.sweep(array[box.index(3)], None, box)
    flat = sum_of(array[3], CountingProtocol())
    box = Box((0, 0, 2), (4, 1, 4))
    with pytest.raises(NonFiniteError, match=r"the first at index \(1, 2\)"):
        flat.sweep(array[3][box.index(2)], None, box)

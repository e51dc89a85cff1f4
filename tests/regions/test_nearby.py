"""What lies near candidates: the same as a maximum filter with a ball, without filtering the whole map."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage
from strategies import maps

from lesioncount.candidates import find_candidates
from lesioncount.errors import MapError
from lesioncount.regions.nearby import Ball, highest_near, voxel_size_of
from lesioncount.sweep.sizes import VoxelSize

SIZES = st.sampled_from([0.5, 0.7, 1.0, 1.2, 3.0])


def size(*given):
    return VoxelSize(np.array(given, dtype=float), len(given))


def ball(radius_mm, spacing_mm):
    """A ball as a footprint, the plain way."""
    reach = [int(radius_mm / size + 1e-6) for size in spacing_mm]
    away = np.stack(np.meshgrid(*(np.arange(-n, n + 1) for n in reach), indexing="ij"), axis=-1) * spacing_mm
    return np.sqrt((away**2).sum(axis=-1)) <= radius_mm + 1e-6


@given(st.data(), maps(long_sides=(65,)), st.sampled_from([0.0, 0.7, 1.0, 2.0, 3.1]))
def test_the_highest_value_near_a_voxel_is_that_of_a_maximum_filter(data, probabilities, within_mm):
    spacing = [data.draw(SIZES) for _ in probabilities.shape]
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    other = rng.random(probabilities.shape)
    other = np.asfortranarray(other) if data.draw(st.booleans()) else other
    index = find_candidates(probabilities, spacing_mm=spacing, warn=False).voxels()[1]
    filtered = ndimage.maximum_filter(other, footprint=ball(within_mm, spacing), mode="constant", cval=-np.inf)
    found = highest_near(other, index, Ball.of(within_mm, size(*spacing)))
    np.testing.assert_array_equal(found, filtered[tuple(index.T)])


def test_without_a_voxel_size_distances_are_in_voxels():
    probabilities, other = np.zeros((2, 9, 9))
    probabilities[4, 4], other[4, 6] = 0.5, 0.75
    candidates = find_candidates(probabilities, warn=False)
    assert voxel_size_of(candidates).spacing_mm == (1, 1)
    balls = [Ball.of(at, voxel_size_of(candidates)) for at in (0, 1.9, 2)]
    assert [highest_near(other, candidates.peak_index, ball).item() for ball in balls] == [0, 0, 0.75]


def test_a_whole_number_of_voxels_is_not_lost_to_single_precision():
    two_voxels = len(Ball.of(2, size(1, 1, 1)).steps)
    small = float(np.float32(0.7))  # a little less than 0.7
    assert len(Ball.of(1.4, size(small, small, small)).steps) == two_voxels
    large = float(np.float32(0.9)) * (1 + 1e-6)  # a little more than it should be, in a header
    assert len(Ball.of(1.8, size(large, large, large)).steps) == two_voxels


ANY = st.lists(st.floats(-0.4, 0.4), min_size=9, max_size=9)
EDGES = ANY.map(lambda some: np.reshape(some, (3, 3)) + 2 * np.eye(3))


@given(EDGES, st.sampled_from([0.0, 1.0, 2.0, 4.0, 6.0]))
def test_a_ball_on_a_sheared_grid_holds_what_is_near_in_space(edges, radius_mm):
    # Edges are nearly perpendicular, and at least 1.6 mm long: what is 9 voxels away is farther than the ball.
    everywhere = np.stack(np.meshgrid(*[np.arange(-8, 9)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    away = np.linalg.norm(everywhere @ edges.T, axis=1)
    near = Ball.of(radius_mm, size(*edges))
    np.testing.assert_allclose(near.distance_mm, np.sort(away[away <= radius_mm * (1 + 1e-4)]))
    np.testing.assert_allclose(near.distance_mm, np.linalg.norm(near.steps @ edges.T, axis=1))


def test_a_grid_that_is_only_turned_has_the_steps_of_one_that_is_not():
    turn = np.array([[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]])
    turned = VoxelSize((turn * [1, 1.2, 3]).astype(np.float32).astype(float), 3)
    assert turned.volume_mm3 == pytest.approx(3.6)
    np.testing.assert_array_equal(Ball.of(4, turned).steps, Ball.of(4, size(*turned.spacing_mm)).steps)


def test_the_steps_of_a_ball_begin_with_none_and_go_outwards():
    near = Ball.of(3.0, size(1, 1, 3))
    assert near.steps[0].tolist() == [0, 0, 0]
    assert (np.diff(near.distance_mm) >= 0).all()
    assert [0, 0, 1] in near.steps.tolist()
    np.testing.assert_allclose(near.distance_mm, np.sqrt(((near.steps * (1, 1, 3)) ** 2).sum(axis=1)))


@pytest.mark.parametrize("radius", [-1, math.nan, math.inf])
def test_a_distance_that_is_none_is_refused(radius):
    with pytest.raises(MapError, match="a distance of at least 0 mm, but got"):
        Ball.of(radius, size(1, 1))


def test_a_ball_with_more_voxels_than_any_memory_is_refused():
    with pytest.raises(MapError, match=r"2 mm is 4000 voxels of 0\.0005 mm.*\(--tolerance-mm\)"):
        Ball.of(2.0, size(0.0005, 0.0005, 0.0005))


def test_more_voxels_than_are_looked_at_in_one_go(rng):
    index = rng.integers(0, 40, (70_000, 3))
    near = Ball.of(2.0, size(1, 1, 1))
    parts = list(near.around(index, (40, 40, 40)))
    assert len(parts) > 1
    assert [some.start for some, _ in parts] == [0, *(some.stop for some, _ in parts[:-1])]
    together = np.concatenate([position for _, position in parts], axis=1)
    for step, row in itertools.islice(zip(near.steps, together, strict=True), 5):
        there = np.clip(index + step, 0, 39)
        np.testing.assert_array_equal(row, np.ravel_multi_index(tuple(there.T), (40, 40, 40)))

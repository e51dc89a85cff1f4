"""A map on another grid: as scipy interpolates, 0 and not covered outside."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from lesioncount.changes.resampling import resampled, same_place
from lesioncount.errors import ShapeError


def rotation(degrees):
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def shifted(x, y, z):
    affine = np.eye(4)
    affine[:3, 3] = x, y, z
    return affine


AFFINES = {
    "shifted by whole voxels": shifted(2, -1, 1),
    "shifted by half a voxel": shifted(0.5, 0.5, -0.5),
    "larger voxels": np.diag([2.0, 2.0, 3.0, 1.0]),
    "smaller voxels": np.diag([0.5, 0.7, 0.9, 1.0]),
    "flipped": shifted(6, 0, 0) @ np.diag([-1.0, 1, 1, 1]),
    "axes in another order": np.eye(4)[[1, 2, 0, 3]],
    "turned": rotation(20),
    "turned, sheared and shifted": shifted(1, 2, 0) @ rotation(30) @ np.array(
        [[1.1, 0.2, 0, 0], [0, 0.9, 0, 0], [0, 0.1, 1.3, 0], [0, 0, 0, 1]]
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", AFFINES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_values_are_those_of_map_coordinates(how, order, rng):
    values = np.asarray(rng.random((7, 6, 8)), order=order)
    own, shape = np.diag([1.5, 1.0, 1.2, 1.0]), (9, 8, 7)
    found, covered = resampled(values, own, shape, AFFINES[how])
    step = np.linalg.inv(own) @ AFFINES[how]
    place = np.einsum("ij,jabc->iabc", step[:3, :3], np.indices(shape)) + step[:3, 3, None, None, None]
    expected = ndimage.map_coordinates(values, place, order=1, mode="nearest")
    last = np.array(values.shape)[:, None, None, None] - 1
    inside = ((place >= -1e-3) & (place <= last + 1e-3)).all(axis=0)
    np.testing.assert_array_equal(covered, inside)
    assert covered.sum() > 0
    np.testing.assert_allclose(found, np.where(inside, expected, 0), atol=1e-6)
    assert found.dtype == np.float32


def test_the_same_grid_gives_the_same_values(rng):
    values = rng.random((5, 6, 7)).astype(np.float32)
    found, covered = resampled(values, AFFINES["turned"], values.shape, AFFINES["turned"])
    np.testing.assert_allclose(found, values, atol=1e-6)
    assert covered.all()


def test_a_flipped_grid_gives_the_flipped_values(rng):
    values = rng.random((5, 6, 7)).astype(np.float32)
    found, covered = resampled(values, np.eye(4), values.shape, shifted(4, 0, 0) @ np.diag([-1.0, 1, 1, 1]))
    np.testing.assert_allclose(found, values[::-1], atol=1e-6)
    assert covered.all()


@given(st.integers(0, 2**32 - 1))
def test_values_stay_between_the_lowest_and_the_highest(seed):
    rng = np.random.default_rng(seed)
    values = rng.random((4, 5, 3))
    affine = shifted(*rng.uniform(-1, 1, 3)) @ rotation(rng.uniform(0, 360)) @ np.diag([*rng.uniform(0.5, 2, 3), 1.0])
    try:
        found, covered = resampled(values, np.eye(4), (6, 5, 4), affine)
    except ShapeError:
        return  # turned out of the way
    assert values.min() - 1e-6 <= found[covered].min()
    assert found[covered].max() <= values.max() + 1e-6
    assert not found[~covered].any()


def test_a_neighbour_that_takes_no_part_may_be_nan():
    values = np.ones((3, 3, 3))
    values[2] = np.nan
    found, covered = resampled(values, np.eye(4), (2, 3, 3), np.eye(4))
    assert covered.all()
    assert (found == 1).all()


def test_a_single_plane_covers_a_plane():
    found, covered = resampled(np.full((4, 4, 1), 0.5), np.eye(4), (4, 4, 3), shifted(0, 0, -1))
    assert covered.all(axis=(0, 1)).tolist() == [False, True, False]
    assert found[0, 0].tolist() == [0, 0.5, 0]


def test_a_volume_is_made_in_parts_of_planes(rng):
    values = rng.random((3, 600, 900)).astype(np.float32)
    found, covered = resampled(values, np.eye(4), values.shape, np.eye(4))
    np.testing.assert_array_equal(found, values)
    assert covered.all()


def test_grids_that_do_not_overlap_are_refused_with_both_affines():
    with pytest.raises(ShapeError, match=r"do not overlap in space. Are they of one[\s\S]*\(3, 3, 3\)[\s\S]*40"):
        resampled(np.ones((3, 3, 3)), np.eye(4), (3, 3, 3), shifted(40, 0, 0))


def test_pictures_have_no_place_in_space():
    with pytest.raises(ShapeError, match="pictures must have the same size"):
        resampled(np.ones((3, 3)), np.eye(4), (3, 3), np.eye(4))


@pytest.mark.parametrize(("by", "is_same"), [(0.0, True), (0.009, True), (0.02, False), (1.0, False)])
def test_rounding_of_headers_makes_no_other_grid(by, is_same):
    assert same_place(np.eye(4), shifted(by, 0, 0), (10, 10, 10)) == is_same


def test_a_slight_turn_is_seen_at_the_far_corner():
    assert same_place(np.eye(4), rotation(0.01), (10, 10, 10))
    assert not same_place(np.eye(4), rotation(0.01), (200, 200, 200))

"""Heads that have moved."""

import numpy as np
import pytest

from lesioncount_reproduction.synthetic.anatomy import Anatomy
from lesioncount_reproduction.synthetic.lattice import Lattice, Points
from lesioncount_reproduction.synthetic.lesions import gad_lesions
from lesioncount_reproduction.synthetic.motion import Motion, MovedLattice

SIX = 50 * np.concatenate([np.eye(3), -np.eye(3)])


def rms(distances):
    return np.sqrt(np.mean(np.square(distances)))


def test_a_motion_is_rigid_and_can_be_undone(rng):
    motion = Motion.drawn(rng, 3.0)
    places = rng.uniform(-60, 60, (20, 3))
    np.testing.assert_allclose(motion.places_before(motion.places(places)), places, atol=1e-9)
    np.testing.assert_allclose(motion.turn @ motion.turn.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(motion.turn) == pytest.approx(1)


def test_the_distance_is_that_of_places_50_mm_from_the_centre(rng):
    first, second = Motion.drawn(rng, 2.0), Motion.drawn(rng, 1.0)
    apart = np.linalg.norm(first.places(SIX) - second.places(SIX), axis=1)
    assert first.distance_mm(second) == pytest.approx(rms(apart))
    assert first.distance_mm(first) == 0


@pytest.mark.parametrize("mm", [0.5, 2.0])
def test_the_misregistration_is_the_root_of_the_mean_square(rng, mm):
    distances = [Motion.drawn(rng, mm).distance_mm(Motion.none()) for _ in range(3000)]
    assert rms(distances) == pytest.approx(mm, rel=0.03)


def test_the_same_random_numbers_give_the_same_direction():
    one, two = (Motion.drawn(np.random.default_rng(8), mm) for mm in (1.0, 2.0))
    np.testing.assert_allclose(two.shift_mm, 2 * one.shift_mm)
    np.testing.assert_allclose(one.turn @ one.turn, two.turn, atol=1e-12)


def test_no_misregistration_is_no_motion(rng):
    assert Motion.drawn(rng, 0.0).is_none
    assert not Motion.drawn(rng, 0.1).is_none


def test_tissues_are_those_of_the_place_before(rng):
    """Whatever the order in which fields are summed: all voxels of a lattice, or one point after another."""
    lattice, motion, anatomy = Lattice((20, 24, 21)), Motion.drawn(rng, 4.0), Anatomy.drawn(rng)
    tissues = anatomy.tissues(MovedLattice(lattice, motion))
    for voxel in rng.integers(0, lattice.shape, size=(30, 3)):
        place = np.array([[axis[i] for axis, i in zip(lattice.axes, voxel, strict=True)]])
        alone = anatomy.tissues(Points(motion.places_before(place)))
        for name in ("white", "depth_mm", "clearance_mm"):
            assert getattr(tissues, name)[tuple(voxel)] == pytest.approx(getattr(alone, name)[0], abs=1e-3)


def test_a_lattice_that_has_not_moved_shows_what_the_lattice_shows(rng):
    lattice, anatomy = Lattice((12, 24, 20)), Anatomy.drawn(rng)
    moved, plain = anatomy.tissues(MovedLattice(lattice, Motion.none())), anatomy.tissues(lattice)
    np.testing.assert_allclose(moved.white, plain.white, atol=1e-4)


def test_a_blob_turns_with_the_head(rng):
    lattice, motion = (
        Lattice((84, 168, 140)),
        Motion(np.array([[0, 0, 1], [0, 1, 0], [-1, 0, 0]]), np.array([2, -3, 4])),
    )
    blob = max(gad_lesions(rng, 30), key=lambda one: one.reach_mm - one.radius_mm)
    masks = [np.zeros(lattice.shape, np.bool_) for _ in range(2)]
    for mask, one in zip(masks, (blob, motion.blob(blob)), strict=True):
        one.paint_mask(mask, lattice)
    axes = np.stack(np.meshgrid(*lattice.axes, indexing="ij"), axis=-1)
    turned = motion.places(axes[masks[0]])
    assert {tuple(np.round(place, 6)) for place in turned} == {tuple(np.round(place, 6)) for place in axes[masks[1]]}
    assert masks[0].sum() > 100

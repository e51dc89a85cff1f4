"""The background of a map is no sign of a lesion, whatever value it has."""

import numpy as np
import pytest

import lesioncount as lc
from lesioncount.changes.counted_map import CountedMap
from lesioncount.protocol import CountingProtocol
from lesioncount.regions.nearby import Ball, voxel_size_of

SHAPE = (40, 48, 44)
NEW = {(12, 14, 13): 0.9, (28, 34, 30): 0.5}
STABLE = {(20, 10, 33): 0.95, (8, 38, 20): 0.6}


def map_of(lesions, background):
    found = background
    for centre, height in lesions.items():
        distance = sum((axis - place) ** 2 for axis, place in zip(np.ogrid[:40, :48, :44], centre, strict=True))
        found = np.maximum(found, height * np.exp(-distance / 8))
    return found.astype(np.float32)


def noisy_pair(noise, seed):
    rng = np.random.default_rng(seed)
    before, after = rng.uniform(0, noise, (2, *SHAPE))
    return map_of(STABLE, before), map_of(STABLE | NEW, after)


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.04, 0.06, 0.08])
def test_a_noisy_background_takes_nothing_from_new_lesions(noise):
    for seed in range(3):
        changes = lc.compare(*noisy_pair(noise, seed), spacing_mm=(1, 1, 1))
        assert 1.33 <= changes.new.mean() <= 1.45
        assert changes.gone.mean() < 0.05


@pytest.mark.parametrize("noise", [0.02, 0.08])
def test_nor_from_those_that_are_gone(noise):
    gone = map_of(STABLE | {(12, 14, 13): 0.8}, np.random.default_rng(1).uniform(0, noise, SHAPE))
    left = map_of(STABLE, np.random.default_rng(2).uniform(0, noise, SHAPE))
    changes = lc.compare(gone, left, spacing_mm=(1, 1, 1))
    assert changes.gone.mean() == pytest.approx(0.8, abs=0.05)


def test_a_constant_floor_is_none():
    flat = lc.compare(map_of(STABLE, np.full(SHAPE, 0.05)), map_of(STABLE | NEW, np.full(SHAPE, 0.05)))
    assert flat.new.mean() == pytest.approx(1.4, abs=1e-3)


def test_the_floor_is_that_of_the_organ_where_the_map_is_zero_outside_of_it():
    inside = np.zeros(SHAPE, dtype=bool)
    inside[4:36, 4:44, 4:40] = True
    wide = [np.pad(np.where(inside, one, 0), 40) for one in noisy_pair(0.08, 0)]
    assert lc.compare(*wide, spacing_mm=(1, 1, 1)).new.mean() == pytest.approx(1.4, abs=0.05)


def test_a_map_without_background_values_is_compared_as_it_is():
    before, after = noisy_pair(0.0, 0)
    changes = lc.compare(np.where(before > 0.02, before, 0), np.where(after > 0.02, after, 0), spacing_mm=(1, 1, 1))
    assert changes.new.mean() == pytest.approx(1.4, abs=1e-6)


def test_without_candidates_or_background_there_is_no_floor():
    protocol = CountingProtocol()
    empty = CountedMap.of(np.zeros((6, 6)), protocol=protocol)
    full = CountedMap.of(np.full((6, 6), 0.9), protocol=protocol)
    ball = Ball.of(1, voxel_size_of(full.count.candidates))
    assert full.floor(empty.count.candidates, ball) == 0
    assert full.floor(full.count.candidates, ball) == 0


def test_stable_lesions_of_noisy_maps_are_no_news():
    rng = np.random.default_rng(5)
    maps = [map_of(STABLE, rng.uniform(0, 0.08, SHAPE)) for _ in range(2)]
    changes = lc.compare(*maps, spacing_mm=(1, 1, 1))
    assert changes.new.mean() < 0.02
    assert changes.persisting.mean() == pytest.approx(0.95 + 0.6, abs=0.02)

"""What is kept of a map: enough for every threshold, in a file of plain arrays."""

from dataclasses import fields

import numpy as np
import pytest
from experiments.made_up import some_maps, stats_of

import lesioncount as lc
from lesioncount.errors import ExperimentError
from lesioncount.trust.scores import reliability
from lesioncount_reproduction.experiments.kept_files import kept_arrays, save_arrays
from lesioncount_reproduction.experiments.stats import THRESHOLDS, ScanStats


def assert_equal(a, b):
    for one in fields(ScanStats):
        mine, other = getattr(a, one.name), getattr(b, one.name)
        if one.name == "peaks":
            assert len(mine) == len(other) == len(THRESHOLDS)
            mine, other = ([scan for of in peaks for scan in of] for peaks in (mine, other))
        assert len(mine) == len(other), one.name
        for x, y in zip(mine, other, strict=True):
            np.testing.assert_array_equal(x, y, err_msg=one.name)
            assert np.asarray(x).dtype == np.asarray(y).dtype, one.name


@pytest.fixture
def maps():
    return some_maps(6, seed=1)


@pytest.mark.filterwarnings("ignore::lesioncount.errors.MapWarning")  # some maps have no candidate
def test_every_threshold_counts_as_the_map_itself_would(maps):
    stats = stats_of(*maps)
    n_found = set()
    for threshold in THRESHOLDS:
        protocol = lc.CountingProtocol(threshold=threshold)
        components = [lc.connected_component_count(map_, threshold=threshold) for map_ in maps[0]]
        assert stats.components(threshold).tolist() == components
        for found, map_ in zip(stats.existence(threshold), maps[0], strict=True):
            np.testing.assert_array_equal(found, lc.count_lesions(map_, protocol=protocol).existence)
        n_found |= set(components)
    assert len(n_found) > 4  # thresholds and maps differ


def test_histograms_hold_every_voxel(maps):
    stats = stats_of(*maps)
    inside = maps[1] > 0
    np.testing.assert_array_equal(stats.lesion_voxels.sum(axis=1), inside.sum(axis=(1, 2, 3)))
    np.testing.assert_array_equal(stats.other_voxels.sum(axis=1), (~inside).sum(axis=(1, 2, 3)))
    whole = reliability(maps[0][2], inside[2])
    np.testing.assert_array_equal(stats.voxel_n[2], whole.n)
    np.testing.assert_array_equal(stats.voxel_hits[2], whole.hit_sum)


def test_candidates_own_and_touch_lesions():
    map_ = np.full((1, 1, 9), 0.01, np.float32)
    map_[0, 0, [0, 2, 4, 8]] = 0.9, 0.8, 0.3, 0.7
    mask = np.zeros((1, 1, 9), np.uint8)
    mask[0, 0, 0:3] = mask[0, 0, 8] = 1
    stats = stats_of([map_], [mask])
    assert stats.touches[0].tolist() == [True, True, False, True]
    assert stats.owns[0].tolist() == [True, False, False, True]  # of one lesion under two candidates, one has it


def loaded(path):
    with kept_arrays(path) as found:
        return ScanStats.of_arrays(found)


def test_scans_survive_a_file(maps, tmp_path):
    stats = stats_of(*maps, counts=[0, 3, 1, 9, 2, 0], patients=["a", "a", "b", "ü", "c", "d"])
    path = tmp_path / "new" / "stats.npz"
    save_arrays(path, stats.arrays())
    assert_equal(loaded(path), stats)
    assert len(loaded(path)) == 6
    assert [one.name for one in path.parent.iterdir()] == ["stats.npz"]


def test_scans_without_any_candidate_survive_a_file(tmp_path):
    empty = np.full((2, 4, 4), 0.01, np.float32)
    stats = stats_of(empty, np.zeros((2, 4, 4), np.uint8))
    save_arrays(tmp_path / "stats.npz", stats.arrays())
    again = loaded(tmp_path / "stats.npz")
    assert again.components(0.1).tolist() == [0, 0]
    assert [len(one) for one in again.owns] == [0, 0]


def test_files_hold_plain_arrays_only(maps, tmp_path):
    save_arrays(tmp_path / "stats.npz", stats_of(*maps).arrays())
    with np.load(tmp_path / "stats.npz", allow_pickle=False) as found:
        assert {found[name].dtype.kind for name in found} <= set("Uifb")


def test_files_with_objects_are_not_loaded(maps, tmp_path):
    save_arrays(tmp_path / "stats.npz", stats_of(*maps).arrays())
    with np.load(tmp_path / "stats.npz") as found:
        arrays = dict(found)
    np.savez(tmp_path / "bad.npz", **arrays | {"counts": np.array([{"a": 1}], dtype=object)})
    with pytest.raises(ExperimentError, match="does not hold what lesioncount reproduce"):
        loaded(tmp_path / "bad.npz")


def test_folds_are_joined_in_their_order(maps):
    whole = stats_of(*maps, counts=range(6), patients="abcdef")
    parts = [
        stats_of(maps[0][some], maps[1][some], counts=range(6)[some], patients="abcdef"[some])
        for some in (slice(0, 1), slice(1, 4), slice(4, 6))
    ]
    joined = ScanStats.joined(parts)
    assert joined.names == ("scan0", "scan0", "scan1", "scan2", "scan0", "scan1")
    for one in fields(ScanStats):
        if one.name != "names":
            np.testing.assert_equal(getattr(joined, one.name), getattr(whole, one.name))

"""Lesions that touch: each peak is a candidate, and a lesion of its own as far as it stands out from its saddle."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import lesioncount as lc
from lesioncount.errors import RunsNotKeptError


def two_hills(saddle=0.3, lower=0.8):
    """Two lesions beside each other, with a bridge between them."""
    return np.array([[0.0, 0.2, 0.5, 0.9, saddle, 0.4, lower, 0.5, 0.0]])


def test_two_hills_are_two_candidates_and_the_lower_one_is_less_sure():
    result = lc.count_lesions(two_hills(), protocol="peaks")
    found = result.candidates
    np.testing.assert_array_equal(found.peak_probability, [0.9, 0.8])
    np.testing.assert_array_equal(found.saddle_probability, [0.0, 0.3])
    np.testing.assert_array_equal(found.saddle_index, [[-1, -1], [0, 4]])
    np.testing.assert_array_equal(found.saddle_position, [-1, 4])
    np.testing.assert_array_equal(result.existence, [0.9, 0.8 - 0.3])
    np.testing.assert_array_equal(found.label_map(), [[0, 1, 1, 1, 1, 2, 2, 2, 0]])
    np.testing.assert_array_equal(found.n_voxels, [4, 3])
    assert "exists with probability 0.5000: 3 voxels, peak at (0, 6), saddle of 0.3000" in str(result)


def test_regions_have_no_saddles_and_no_new_columns():
    found = lc.find_candidates(two_hills())
    assert len(found) == 1
    assert found.saddle_probability.tolist() == [0.0]
    assert found.saddle_index.tolist() == [[-1, -1]]
    assert found.saddle_position.tolist() == [-1]
    assert "saddle_probability" not in found.columns()
    assert {"saddle_probability", "saddle_index-0", "saddle_index-1"} <= set(
        lc.find_candidates(two_hills(), protocol="peaks").columns()
    )


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4)])
def test_map_without_candidates_has_no_peaks(shape):
    result = lc.count_lesions(np.full(shape, 0.05), protocol="peaks")
    assert len(result.candidates) == 0
    assert result.candidates.saddle_index.shape == (0, len(shape))
    assert result.candidates.saddle_position.shape == (0,)
    assert result.distribution.pmf().tolist() == [1]


def test_lesions_apart_are_counted_as_in_the_paper():
    probabilities = np.zeros((8, 8, 8), dtype=np.float32)
    probabilities[1:3, 1:3, 1:3] = 0.784
    probabilities[5, 5, 5:7] = 0.3, 0.5189
    paper, peaks = (lc.count_lesions(probabilities, protocol=name) for name in ("paper", "peaks"))
    np.testing.assert_array_equal(peaks.distribution.pmf(), paper.distribution.pmf())
    for name, column in paper.candidates.columns().items():
        np.testing.assert_array_equal(peaks.candidates.columns()[name], column)


def test_flat_maps_have_one_peak_however_they_are_shaped():
    letter = np.zeros((5, 5))
    letter[:, 0] = letter[:, 4] = letter[4] = 1.0  # two ends in the first row: the one plateau has two beginnings
    with pytest.warns(lc.errors.BinaryMapWarning):
        found = lc.find_candidates(letter, protocol="peaks")
    assert len(found) == 1
    uneven = letter.copy()
    uneven[4, 2] = 0.5
    found = lc.find_candidates(uneven, protocol="peaks", warn=False)
    assert found.peak_index.tolist() == [[0, 0], [0, 4]]
    assert found.saddle_index.tolist() == [[-1, -1], [4, 2]]


def test_what_rounding_pushed_above_one_is_no_peak():
    probabilities = np.array([[0.2, 1.0, 1.0 + 1e-7, 1.0, 0.9, 1.0 + 5e-7, 0.2]])
    found = lc.find_candidates(probabilities, protocol="peaks")
    assert found.peak_probability.tolist() == [1.0, 1.0]
    assert found.saddle_probability.tolist() == [0.0, 0.9]
    assert len(lc.find_candidates(probabilities[:, 1:4], protocol="peaks", warn=False)) == 1


def test_ripples_are_left_out_with_what_they_add_to_the_mean():
    rippled = np.array([[0.0, 0.2, 0.5, 0.9, 0.75, 0.8, 0.5, 0.2, 0.0]])
    few = lc.count_lesions(rippled, protocol=lc.CountingProtocol(candidates="peaks", min_persistence=0.1))
    assert len(few.candidates) == 1
    assert few.candidates.n_voxels.tolist() == [7]
    every = lc.count_lesions(rippled, protocol="peaks")
    assert every.distribution.mean() - few.distribution.mean() == pytest.approx(0.8 - 0.75)


def sizes(probabilities, **smallest):
    protocol = lc.CountingProtocol(candidates="peaks", **smallest)
    found = lc.find_candidates(probabilities, protocol=protocol, spacing_mm=(1, 2))
    return found.n_voxels.tolist(), found.peak_probability.tolist(), found.n_dropped


def test_peaks_that_are_too_small_join_their_neighbour_and_others_are_dropped():
    probabilities = np.array([[0.9, 0.5, 0.4, 0.3, 0.8, 0.0, 0.7, 0.0]])
    assert sizes(probabilities) == ([3, 2, 1], [0.9, 0.8, 0.7], 0)
    assert sizes(probabilities, min_voxels=2) == ([3, 2], [0.9, 0.8], 1)
    assert sizes(probabilities, min_voxels=3) == ([5], [0.9], 1)
    assert sizes(probabilities, min_volume_mm3=5) == ([5], [0.9], 1)
    assert sizes(probabilities, min_diameter_mm=2.5) == ([5], [0.9], 1)
    assert sizes(probabilities, min_length_mm=5) == ([5], [0.9], 1)
    assert sizes(probabilities, min_length_mm=2) == ([3, 2, 1], [0.9, 0.8, 0.7], 0)
    assert sizes(probabilities, min_voxels=6) == ([], [], 2)


def test_small_tip_takes_in_the_broad_shoulder_below_it():
    probabilities = np.array([[0.9, 0.3, 0.5, 0.5, 0.5, 0.2, 0.6, 0.6, 0.6, 0.6]])
    assert sizes(probabilities) == ([2, 3, 5], [0.9, 0.5, 0.6], 0)
    assert sizes(probabilities, min_voxels=3) == ([5, 5], [0.9, 0.6], 0)
    assert sizes(probabilities, min_voxels=6) == ([10], [0.9], 0)


def test_saturated_map_has_no_saddle():
    saturated = np.minimum(two_hills(saddle=1.0) + 0.6, 1) * (two_hills() > 0)
    assert len(lc.find_candidates(saturated, protocol="peaks", warn=False)) == 1


def test_label_map_of_a_stream_needs_its_runs():
    counter = lc.StreamingCounter((9,), np.float64, "peaks")
    counter.push(two_hills())
    with pytest.raises(RunsNotKeptError):
        counter.result().candidates.label_map()


def test_stream_forgets_the_voxels_of_complete_regions(rng, monkeypatch):
    monkeypatch.setattr("lesioncount.sweep.peaks._ENOUGH_VOXELS", 1000)
    probabilities = np.where(rng.random((400, 30)) < 0.2, rng.random((400, 30)), 0)
    counter = lc.StreamingCounter((30,), np.float64, "peaks")
    kept = []
    for begin in range(0, 400, 10):
        counter.push(probabilities[begin : begin + 10])
        kept.append(counter._total._slab.n_keys)
    assert max(kept) < 1300  # of 2200
    expected = lc.find_candidates(probabilities, protocol="peaks")
    for name, column in expected.columns().items():
        np.testing.assert_array_equal(counter.result().candidates.columns()[name], column, err_msg=name)


def test_large_maps_are_split_slab_by_slab(rng, monkeypatch):
    probabilities = np.where(rng.random((30, 20, 20)) < 0.1, rng.random((30, 20, 20)), 0)
    expected = lc.find_candidates(probabilities, protocol="peaks")
    monkeypatch.setattr("lesioncount.sweep.slabs.SLAB_VOXELS", 1000)
    monkeypatch.setattr("lesioncount.sweep.peaks._ENOUGH_VOXELS", 100)
    for threads in (1, 2):
        found = lc.find_candidates(probabilities, protocol="peaks", threads=threads)
        np.testing.assert_array_equal(found.label_map(), expected.label_map())
        np.testing.assert_array_equal(found.saddle_position, expected.saddle_position)


def test_slabs_with_and_without_voxels_do_not_add():
    from lesioncount.sweep.slabs import SweepPlan
    from lesioncount.sweep.voxels import encoding_of

    encoding = encoding_of(np.dtype(float), None, 0.0, False)
    one, other = (SweepPlan((0, 1), (2, 9), encoding, lc.CountingProtocol.named(name)) for name in ("paper", "peaks"))
    with pytest.raises(ValueError, match="keeps its voxels"):
        one.sweep(two_hills(), None, 0) + other.sweep(two_hills(), None, 1)


def test_baseline_counts_components_under_any_protocol():
    rippled = lc.CountingProtocol(candidates="peaks", min_persistence=0.2)
    for threshold, n in ((0.2, 1), (0.35, 2), (0.85, 1)):
        assert lc.connected_component_count(two_hills(), threshold=threshold, protocol=rippled) == n


def test_protocols_of_old_records_are_regions():
    old = {"threshold": 0.1, "connectivity": "edges", "min_voxels": 1, "min_volume_mm3": 0.0, "min_diameter_mm": 0.0}
    assert lc.CountingProtocol.from_json(json.dumps(old)) == lc.CountingProtocol.named("paper")


MEMORY_OF_NOISE = """
from pathlib import Path

import numpy as np

import lesioncount as lc


def kilobytes(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


u = np.random.default_rng(0).random((64, 192, 192), dtype=np.float32)
noise = np.where(u < 0.1, 0.101 + 8.98 * u, 0.09 * u)
lc.count_lesions(noise[:2], protocol="peaks")
Path("/proc/self/clear_refs").write_text("5")
before = kilobytes("VmRSS")
found = lc.count_lesions(noise, protocol="peaks").candidates
tables = found._table.nbytes + found._saddles.nbytes + found._runs.table.nbytes
print(1024 * (kilobytes("VmHWM") - before) / tables)
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="only Linux says how much was resident")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="sanitizers keep what was freed")
def test_noise_takes_little_more_memory_than_its_peaks():
    """Rows and runs of peaks take the place of those of regions; with a copy of both, it was 2.3 times as much."""
    done = subprocess.run([sys.executable, "-c", MEMORY_OF_NOISE], capture_output=True, text=True, check=True)
    assert 0.9 < float(done.stdout) < 1.8

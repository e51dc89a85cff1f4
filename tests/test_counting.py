import pickle

import numpy as np
import pytest

import lesioncount as lc
from lesioncount.errors import BinaryMapWarning, CutOffMapWarning


def test_map_without_lesions_counts_zero():
    result = lc.count_lesions(np.zeros((4, 5, 6), dtype=np.float32))
    assert len(result.candidates) == 0
    assert result.existence.shape == (0,)
    assert result.distribution.pmf().tolist() == [1.0]
    assert result.candidates.label_map().sum() == 0
    assert "0 lesions most likely (100.0%)" in str(result)


def test_single_voxel():
    result = lc.count_lesions(np.array([[0.25]]))
    assert result.existence.tolist() == [0.25]
    assert result.candidates.peak_index.tolist() == [[0, 0]]
    assert result.distribution.pmf().tolist() == [0.75, 0.25]


def test_map_of_all_ones_is_one_sure_lesion():
    with pytest.warns(BinaryMapWarning):
        result = lc.count_lesions(np.ones((5, 70, 70)))
    assert result.candidates.n_voxels.tolist() == [5 * 70 * 70]
    assert result.candidates.centroid.tolist() == [[2, 34.5, 34.5]]
    assert result.distribution.mode() == 1


@pytest.mark.parametrize(("connectivity", "expected"), [("faces", 4 * 7 * 9 // 2), ("edges", 1), ("corners", 1)])
def test_checkerboard(connectivity, expected):
    board = 0.3 * (np.indices((4, 7, 9)).sum(axis=0) % 2)
    result = lc.count_lesions(board, protocol=lc.CountingProtocol(connectivity=connectivity))
    assert len(result.candidates) == expected


def test_seventy_thousand_candidates(rng):
    noise = rng.random((64, 192, 192), dtype=np.float32)
    probabilities = np.where(noise < 0.1, 0.1 + 9 * noise, 0.05).clip(0.05, 0.99)
    result = lc.count_lesions(probabilities)
    assert len(result.candidates) > 70_000
    assert result.distribution.mean() == pytest.approx(result.existence.sum())
    assert abs(result.distribution.mode() - result.distribution.mean()) < 1


def test_existence_is_in_the_order_of_the_candidates():
    result = lc.count_lesions([[0.2, 0.0, 0.9, 0.0, 0.4]])
    np.testing.assert_array_equal(result.existence, result.candidates.peak_probability)
    np.testing.assert_array_equal(result.existence, [0.2, 0.9, 0.4])
    assert result.protocol == lc.CountingProtocol()


def test_a_voxel_at_the_threshold_is_out():
    for dtype in (np.float16, np.float32, np.float64):
        assert len(lc.count_lesions(np.full((2, 2), 0.1, dtype)).candidates) == 0
        above = np.nextafter(dtype(0.1), dtype(1))
        assert len(lc.count_lesions(np.full((2, 2), above, dtype)).candidates) == 1


def test_the_printed_result_names_the_strongest_candidates():
    probabilities = np.zeros((3, 40))
    probabilities[1, ::4] = np.linspace(0.2, 0.92, 10)
    lines = str(lc.count_lesions(probabilities)).splitlines()
    assert lines[0].startswith("6 lesions most likely")
    assert "10 candidates (voxels above 0.1, connected through edges)" in lines[2]
    assert lines[3] == "  #10       exists with probability 0.9200: 1 voxel, peak at (1, 36)"
    assert lines[-1].strip() == "… and 5 weaker candidates"


def test_results_pickle(rng):
    result = lc.count_lesions(rng.random((5, 6, 7)) * 0.4)
    again = pickle.loads(pickle.dumps(result))  # noqa: S301 - our own object
    assert str(again) == str(result)
    np.testing.assert_array_equal(again.existence, result.existence)


def test_read_only_and_memory_mapped_maps(tmp_path, rng):
    probabilities = (rng.random((6, 7, 8)) * 0.3).astype(np.float32)
    np.save(tmp_path / "map.npy", probabilities)
    mapped = np.load(tmp_path / "map.npy", mmap_mode="r")
    assert str(lc.count_lesions(mapped)) == str(lc.count_lesions(probabilities))


@pytest.mark.parametrize(("dtype", "scale"), [("f2", 0.01), ("f4", None), ("f8", 1 / 255), ("u2", 0.01), ("i4", 0.01)])
def test_unaligned_maps(rng, dtype, scale):
    record = np.zeros((6, 7), dtype=np.dtype([("pad", "u1"), ("p", dtype)]))
    record["p"] = rng.random((6, 7)) * 0.5 / (scale or 1)
    assert not record["p"].flags.aligned
    unaligned, aligned = (lc.count_lesions(p, scale=scale) for p in (record["p"], record["p"].copy()))
    assert len(aligned.existence) > 0
    assert str(unaligned) == str(aligned)


@pytest.mark.parametrize(("dtype", "one"), [("u1", 255), ("u2", 65535), ("i2", 32767), ("u1", 100)])
def test_scaled_integers(dtype, one):
    stored = np.array([[0, 0, one], [one // 5, 0, 0]], dtype=dtype)
    result = lc.count_lesions(stored, scale=1 / one)
    np.testing.assert_allclose(result.existence, [1.0, (one // 5) / one])


def test_percent_as_floats():
    assert lc.count_lesions(np.float32([[0, 50, 0, 9]]), scale=0.01).existence.tolist() == [0.5]


def test_scales_that_count_downwards():
    assert lc.count_lesions(np.int16([[0, -50, 0, -9]]), scale=-0.01).existence.tolist() == [0.5]


def test_booleans_and_zero_one_integers_are_counted_with_a_warning():
    mask = np.array([[1, 0, 1], [0, 0, 0]])
    for dtype in (bool, np.uint8, np.int64, np.float32):
        with pytest.warns(BinaryMapWarning, match="single point"):
            result = lc.count_lesions(mask.astype(dtype))
        assert result.distribution.pmf().tolist() == [0, 0, 1]


def test_a_map_cut_off_at_one_half_is_counted_with_a_warning():
    with pytest.warns(CutOffMapWarning, match="no values between 0 and 0.5"):
        lc.count_lesions([[0.0, 0.7, 0.0, 0.6]])


def test_shades_are_looked_for_below_one_half_and_inside_the_mask_only():
    with pytest.warns(CutOffMapWarning):
        lc.count_lesions(np.array([[0.0, 0.6, 0.9]]), protocol=lc.CountingProtocol(threshold=0.7))
    with pytest.warns(CutOffMapWarning):
        lc.count_lesions(np.array([[0.3, 0.0, 0.9]]), mask=np.array([[0, 1, 1]]))
    with pytest.warns(BinaryMapWarning):
        lc.count_lesions(np.array([[0.05], [0.0], [1.0]]), mask=np.array([[0], [1], [1]]))


def test_warnings_point_to_the_caller():
    counter = lc.StreamingCounter((2, 2), bool)
    counter.push(np.ones((2, 2, 2), bool))
    for count in (
        lambda: lc.count_lesions(np.ones((2, 2))),
        lambda: lc.find_candidates(np.ones((2, 2))),
        counter.result,
    ):
        with pytest.warns(BinaryMapWarning) as caught:
            count()
        assert caught[0].filename == (__file__ if count is not counter.result else caught[0].filename)


def test_component_count_leaves_the_warning_filters_alone():
    import warnings

    before = list(warnings.filters)
    lc.connected_component_count(np.ones((2, 2), bool))
    assert warnings.filters == before


def test_thresholds_that_rounding_moves():
    almost_one = lc.CountingProtocol(threshold=0.9999)
    with pytest.warns(BinaryMapWarning):
        assert len(lc.count_lesions(np.ones((2, 2), np.float16), protocol=almost_one).candidates) == 1
    at = lc.CountingProtocol(threshold=0.29)
    assert (
        len(lc.count_lesions(np.array([[29.0, 0, 1]]), scale=0.01, protocol=at).candidates) == 0
    )  # 29 * 0.01 is not > 0.29


@pytest.mark.parametrize("shape", [(300, 2, 1), (2, 300, 2), (1, 300, 1), (300, 1, 1), (1, 1, 300), (1, 300), (300, 1)])
def test_narrow_maps(shape, rng):
    probabilities = rng.random(shape) * 0.3
    expected = lc.count_lesions(probabilities.reshape(probabilities.shape, copy=True))
    assert str(lc.count_lesions(np.asfortranarray(probabilities))) == str(expected)
    assert expected.candidates.n_voxels.sum() == np.count_nonzero(probabilities > 0.1)


def test_presets_by_name():
    assert lc.count_lesions([[0.2]], protocol="faces").protocol == lc.CountingProtocol.named("faces")


def test_soft_maps_do_not_warn():
    lc.count_lesions([[0.01, 0.7, 0.0, 0.6]])  # warnings are errors here
    lc.count_lesions(np.uint8([[1, 200, 0, 180]]), scale=1 / 255)
    lc.count_lesions(np.float32([[-4.0, 3.0]]), logits=True)


def test_rounding_just_outside_zero_and_one_is_taken_as_zero_and_one():
    result = lc.count_lesions(np.float32([[1.0000001, -1e-7, -0.0, 0.3]]))
    assert result.existence.tolist() == [1.0, np.float32(0.3)]
    assert lc.count_lesions(np.float16([[1.001, -0.0, 0.25]])).existence.tolist() == [1.0, 0.25]


def test_voxels_outside_the_mask_may_hold_anything():
    probabilities = np.array([[np.nan, 0.4, 7.0], [np.inf, 0.2, -3.0]])
    mask = np.array([[False, True, False], [False, False, False]])
    assert lc.count_lesions(probabilities, mask=mask).existence.tolist() == [0.4]
    for kind in (np.uint8, np.float64):
        assert lc.count_lesions(probabilities, mask=mask.astype(kind)).existence.tolist() == [0.4]


def test_component_count_is_the_number_of_regions_above_the_threshold():
    probabilities = [[0.9, 0.0, 0.55, 0.0], [0.0, 0.0, 0.0, 0.6]]
    assert lc.connected_component_count(probabilities) == 2
    faces = lc.CountingProtocol(connectivity="faces")
    assert lc.connected_component_count(probabilities, protocol=faces) == 3
    assert lc.connected_component_count(probabilities, protocol=lc.CountingProtocol(min_voxels=2)) == 1
    assert lc.connected_component_count(np.ones((2, 2), bool)) == 1  # no warning: this is what it is for
    assert lc.connected_component_count(np.array([[2.0, -2.0]]), logits=True) == 1

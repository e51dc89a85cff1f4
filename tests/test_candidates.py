import math
import pickle

import numpy as np
import pytest
from skimage.measure import label, regionprops_table

import lesioncount as lc


@pytest.fixture
def probabilities(rng):
    from scipy.ndimage import gaussian_filter

    smooth = gaussian_filter(rng.standard_normal((20, 30, 25)), 1.0)
    return (0.9 * (smooth - smooth.min()) / np.ptp(smooth)).astype(np.float32) ** 5


def test_columns_are_those_of_scikit_image(probabilities):
    candidates = lc.find_candidates(probabilities, spacing_mm=(3, 1, 0.5))
    labels = label(probabilities > 0.1, connectivity=2)
    table = regionprops_table(
        labels,
        probabilities,
        properties=("num_pixels", "centroid", "bbox", "intensity_max", "equivalent_diameter_area"),
    )
    assert len(candidates) == labels.max() > 5
    np.testing.assert_array_equal(candidates.n_voxels, table["num_pixels"])
    np.testing.assert_array_equal(candidates.peak_probability, table["intensity_max"])
    columns = candidates.columns()
    for i in range(3):
        np.testing.assert_allclose(columns[f"centroid-{i}"], table[f"centroid-{i}"])
    for i in range(6):
        np.testing.assert_array_equal(columns[f"bbox-{i}"], table[f"bbox-{i}"])
    np.testing.assert_allclose(candidates.volume_mm3, table["num_pixels"] * 1.5)
    np.testing.assert_allclose(candidates.equivalent_diameter_mm, table["equivalent_diameter_area"] * 1.5 ** (1 / 3))
    np.testing.assert_array_equal(columns["label"], np.arange(1, len(candidates) + 1))


def test_label_map_holds_each_candidate_under_its_row(probabilities):
    candidates = lc.find_candidates(probabilities)
    labels = candidates.label_map(np.uint16)
    assert labels.dtype == np.uint16
    assert labels.shape == probabilities.shape
    for row, index in enumerate(candidates.peak_index):
        assert labels[tuple(index)] == row + 1
        assert probabilities[tuple(index)] == candidates.peak_probability[row]


def test_label_map_refuses_types_that_cannot_hold_the_labels():
    many = np.zeros((600, 3), np.float32)
    many[::2, 1] = 0.3
    for dtype in (np.uint8, np.int8, np.float16, bool):
        with pytest.raises(lc.errors.VoxelTypeError, match="Labels up to 300 do not fit"):
            lc.find_candidates(many).label_map(dtype)


@pytest.mark.parametrize("kind", ["regions", "peaks"])
def test_existence_map_holds_in_each_candidate_its_existence(probabilities, kind):
    result = lc.count_lesions(probabilities, protocol=lc.CountingProtocol(candidates=kind))
    candidates, painted = result.candidates, result.candidates.existence_map()
    labels = candidates.label_map()
    assert painted.dtype == np.float32
    assert not painted[labels == 0].any()
    for row in range(len(candidates)):
        assert set(painted[labels == row + 1]) == {np.float32(result.existence[row])}
    halved = candidates.existence_map(result.existence / 2)
    np.testing.assert_allclose(halved, painted / 2, rtol=1e-6)


def test_existence_map_wants_a_probability_for_each_candidate(probabilities):
    candidates = lc.find_candidates(probabilities)
    with pytest.raises(lc.errors.ShapeError, match=rf"each of the {len(candidates)} candidates, but got .*\(1,\)"):
        candidates.existence_map([0.5])
    assert not lc.find_candidates(np.zeros((3, 4))).existence_map().any()


def test_small_candidates_are_dropped_and_counted(probabilities):
    everything = lc.find_candidates(probabilities)
    few = lc.find_candidates(probabilities, protocol=lc.CountingProtocol(min_voxels=20))
    large = everything.n_voxels >= 20
    assert 0 < large.sum() < len(everything)
    np.testing.assert_array_equal(few.n_voxels, everything.n_voxels[large])
    np.testing.assert_array_equal(few.peak_index, everything.peak_index[large])
    assert few.n_dropped == len(everything) - len(few)
    assert f"{few.n_dropped} more dropped as too small" in str(few)
    labels = few.label_map()
    np.testing.assert_array_equal(np.bincount(labels.ravel())[1:], few.n_voxels)


@pytest.mark.parametrize("order", ["C", "F"])
def test_labels_after_dropping_do_not_depend_on_memory_order(probabilities, order):
    protocol = lc.CountingProtocol(min_voxels=20)
    expected = lc.find_candidates(probabilities, protocol=protocol).label_map()
    ordered = np.asarray(probabilities, order=order)
    np.testing.assert_array_equal(lc.find_candidates(ordered, protocol=protocol).label_map(), expected)


def test_smallest_sizes_in_millimetres():
    probabilities = np.zeros((9, 9, 9))
    probabilities[0, 0, :3] = 0.5  # three voxels
    probabilities[4, 4, 4] = 0.4
    spacing = np.float32([1, 1, 0.9999999])  # as a file header may have it
    kept = lc.find_candidates(probabilities, protocol=lc.CountingProtocol(min_volume_mm3=3), spacing_mm=spacing)
    assert (len(kept), kept.n_dropped) == (1, 1)
    diameter = 2 * (3 * 3 / (4 * math.pi)) ** (1 / 3)
    for smallest, n in ((diameter, 1), (diameter + 0.01, 0)):
        protocol = lc.CountingProtocol(min_diameter_mm=smallest)
        assert len(lc.find_candidates(probabilities, protocol=protocol, spacing_mm=(1, 1, 1))) == n


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_smallest_length_is_along_the_longest_axis(order):
    probabilities = np.zeros((9, 9, 9), order=order)
    probabilities[0, 0, :3] = 0.5  # 3 voxels of 1 mm
    probabilities[3:5, 2:4, 2:4] = 0.6  # 8 voxels, of which none lies 3 mm from another
    probabilities[7, 7, 7] = 0.4
    spacing = np.float32([1, 1, 0.9999999])
    kept = lc.find_candidates(probabilities, protocol=lc.CountingProtocol(min_length_mm=3), spacing_mm=spacing)
    assert (kept.n_voxels.tolist(), kept.n_dropped) == ([3], 2)
    thick = lc.find_candidates(probabilities, protocol=lc.CountingProtocol(min_length_mm=3), spacing_mm=(3, 1, 0.9))
    assert thick.n_voxels.tolist() == [3, 8, 1]  # all are 3 mm thick
    with pytest.raises(lc.errors.SpacingError):
        lc.find_candidates(probabilities, protocol="ms")


def test_the_smallest_length_in_two_dimensions():
    picture = np.zeros((9, 9))
    picture[0, :4] = picture[4:7, 5] = 0.4
    found = lc.find_candidates(picture.T, protocol=lc.CountingProtocol(min_length_mm=3), spacing_mm=(0.75, 0.5, 9))
    assert found.n_voxels.tolist() == [4]  # 4 × 0.75 mm, but 3 × 0.5 mm; the thickness of the slice is no length


def test_two_dimensional_sizes():
    probabilities = np.zeros((5, 5))
    probabilities[1:3, 1:3] = 0.4
    flat = lc.find_candidates(probabilities, spacing_mm=(0.5, 0.5))
    thick = lc.find_candidates(probabilities, spacing_mm=(0.5, 0.5, 4))
    assert flat.volume_mm3.tolist() == [1.0]
    assert thick.volume_mm3.tolist() == [4.0]
    assert flat.equivalent_diameter_mm == thick.equivalent_diameter_mm == pytest.approx(math.sqrt(4 / math.pi))


def test_unknown_voxel_size_gives_no_volume():
    candidates = lc.find_candidates([[0.4, 0.0]])
    assert np.isnan(candidates.volume_mm3).all()
    assert np.isnan(candidates.equivalent_diameter_mm).all()


def test_first_of_equal_peaks_in_c_order():
    probabilities = np.zeros((3, 4, 5), order="F")
    probabilities[0, 3, 4] = probabilities[1, 2, 4] = probabilities[2, 2, 3] = 0.3
    candidates = lc.find_candidates(probabilities, protocol=lc.CountingProtocol(connectivity=26))
    assert candidates.peak_index.tolist() == [[0, 3, 4]]


def test_results_are_read_only_and_pickle(probabilities):
    candidates = lc.find_candidates(probabilities)
    for name in (
        "n_voxels",
        "peak_probability",
        "peak_index",
        "bbox",
        "centroid",
        "volume_mm3",
        "equivalent_diameter_mm",
    ):
        with pytest.raises(ValueError, match="read-only"):
            getattr(candidates, name)[0] = 1
    again = pickle.loads(pickle.dumps(candidates))  # noqa: S301 - our own object
    np.testing.assert_array_equal(again.label_map(), candidates.label_map())
    np.testing.assert_array_equal(again.centroid, candidates.centroid)
    assert str(again) == str(candidates)


def test_input_is_not_kept_alive_or_touched(probabilities):
    import weakref

    before = probabilities.copy()
    watched = probabilities.view()
    reference = weakref.ref(watched)
    candidates = lc.find_candidates(watched)
    del watched
    assert reference() is None
    np.testing.assert_array_equal(probabilities, before)
    assert candidates.label_map().max() == len(candidates)


def test_masked_arrays_hide_their_voxels():
    data = np.array([[0.9, 0.0, np.nan], [0.02, 0.0, 0.8]])
    hidden = np.ma.masked_array(data, mask=[[1, 0, 1], [0, 0, 0]])
    assert lc.find_candidates(hidden).peak_probability.tolist() == [0.8]
    assert len(lc.find_candidates(hidden, mask=np.array([[1, 1, 1], [1, 1, 0]]))) == 0
    assert len(lc.find_candidates(np.ma.masked_array(np.array([[0.9, 0.2]])))) == 1


@pytest.mark.parametrize("threads", [1, 2, 3, 50])
def test_threads_do_not_change_the_result(probabilities, threads):
    expected = lc.find_candidates(probabilities)
    candidates = lc.find_candidates(probabilities, threads=threads)
    np.testing.assert_array_equal(candidates.label_map(), expected.label_map())
    np.testing.assert_array_equal(candidates.peak_index, expected.peak_index)


def test_a_map_larger_than_one_slab_is_swept_in_several(probabilities, monkeypatch):
    expected = lc.find_candidates(probabilities)
    monkeypatch.setattr("lesioncount.sweep.slabs.SLAB_VOXELS", 1000)
    candidates = lc.find_candidates(probabilities)
    np.testing.assert_array_equal(candidates.label_map(), expected.label_map())

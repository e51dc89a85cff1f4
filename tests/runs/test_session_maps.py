"""The maps of a course on one grid: resampled where they must be, masked, and said so."""

import numpy as np
import pytest
from nifti_files import save
from runs.small_cohort import SHAPE, lesions

from lesioncount.changes.lesion_changes import compare
from lesioncount.changes.resampling import resampled
from lesioncount.cohort.item import ScanFiles
from lesioncount.errors import MapError, MapFileError, NonFiniteError, ShapeError
from lesioncount.results.settings import ChangeSettings
from lesioncount.runs import compare_batch, compare_files
from lesioncount.runs.session_maps import read_maps

EYE = np.eye(4)


def shifted(x=0.0, y=0.0, z=0.0, sizes=(1.0, 1.0, 1.0)):
    affine = np.diag([*sizes, 1.0])
    affine[:3, 3] = x, y, z
    return affine


def read(*files, settings=None, masks=None):
    masks = masks or [None] * len(files)
    scans = [ScanFiles(path.name, path, mask=mask) for path, mask in zip(files, masks, strict=True)]
    return read_maps(scans, settings or ChangeSettings(), [str(n + 1) for n in range(len(files))])


@pytest.fixture
def pair(tmp_path):
    return [
        save(tmp_path / f"{n}.nii.gz", lesions(*heights), EYE) for n, heights in enumerate([(0.9, 0.8), (0.9, 0, 0.7)])
    ]


def test_maps_on_one_grid_are_taken_as_they_are(pair):
    maps = read(*pair)
    assert maps.notes == ()
    assert [one.is_resampled for one in maps.sessions] == [False, False]
    np.testing.assert_array_equal(maps.sessions[0].counted.voxels, lesions(0.9, 0.8))
    assert maps.grid.shape == SHAPE


def test_a_map_on_another_grid_is_resampled_and_said(tmp_path, pair):
    fine = shifted(sizes=(0.5, 0.5, 0.5))
    values = np.repeat(np.repeat(np.repeat(lesions(0.9, 0.8), 2, 0), 2, 1), 2, 2)
    other = save(tmp_path / "fine.nii.gz", values, fine)
    maps = read(other, pair[1])
    assert [one.is_resampled for one in maps.sessions] == [True, False]
    assert maps.notes == ("The map of session 1 has another grid, and was resampled to that of the last session.",)
    expected, covered = resampled(values, fine, SHAPE, EYE)
    assert covered.all()
    np.testing.assert_array_equal(maps.sessions[0].counted.voxels, expected)
    found = compare_files(other, pair[1])
    np.testing.assert_array_equal(found.p_new, compare(expected, lesions(0.9, 0, 0.7), spacing_mm=(1, 1, 1)).p_new)


def test_a_flipped_file_is_the_same_patient(tmp_path, pair):
    affine = shifted(x=SHAPE[0] - 1, sizes=(-1.0, 1.0, 1.0))
    flipped = save(tmp_path / "flipped.nii.gz", lesions(0.9, 0.8)[::-1], affine)
    np.testing.assert_allclose(compare_files(flipped, pair[1]).p_new, compare_files(*pair).p_new, atol=1e-6)


def test_only_what_all_sessions_show_is_compared(tmp_path, pair):
    half = save(tmp_path / "half.nii.gz", lesions(0.9, 0.8)[:, :8], EYE)
    maps = read(half, pair[1])
    assert maps.notes[1] == (
        "The map of session 1 covers 53% of the last one. Only what all sessions show was compared."
    )
    changes = compare_files(half, pair[1])
    assert len(changes.after.candidates) == 1  # the third lesion lies outside of the first map
    assert changes.new.mean() == pytest.approx(0, abs=1e-6)


def test_of_three_sessions_the_smallest_field_of_view_limits_all(tmp_path, pair):
    half = save(tmp_path / "half.nii.gz", lesions(0.9, 0.8)[:, :8], EYE)
    assert [len(one.count.result.candidates) for one in read(pair[0], half, pair[1]).sessions] == [2, 2, 1]


def test_headers_that_differ_by_rounding_are_one_grid(tmp_path):
    """Thick slices: less than a hundredth of a voxel, and more than a hundredth of a millimetre."""
    affine, moved = shifted(sizes=(0.5, 0.5, 5.0)), shifted(z=0.03, sizes=(0.5, 0.5, 5.0))
    first = save(tmp_path / "1.nii.gz", lesions(0.9), affine)
    second = save(tmp_path / "2.nii.gz", lesions(0.9), moved)
    maps = read(first, second)
    assert [one.is_resampled for one in maps.sessions] == [False, False]


def test_maps_that_do_not_overlap_are_refused(tmp_path, pair):
    far = save(tmp_path / "far.nii.gz", lesions(0.9), shifted(x=300))
    with pytest.raises(ShapeError, match="do not overlap in space"):
        read(far, pair[1])


@pytest.mark.parametrize("which", [0, 1])
def test_the_mask_of_one_session_limits_all(tmp_path, pair, which):
    inside = np.zeros(SHAPE, np.uint8)
    inside[:, 5:] = 1
    mask = save(tmp_path / "mask.nii.gz", inside, EYE)
    masks = [None, None]
    masks[which] = mask
    maps = read(*pair, masks=masks)
    assert [one.count.result.candidates.peak_index.tolist() for one in maps.sessions] == [[[1, 6, 2]], [[1, 11, 2]]]


def test_masks_of_two_sessions_are_intersected(tmp_path, pair):
    masks = []
    for n, part in enumerate([np.s_[:, 5:], np.s_[:, :10]]):
        inside = np.zeros(SHAPE, np.uint8)
        inside[part] = 1
        masks.append(save(tmp_path / f"mask{n}.nii.gz", inside, EYE))
    maps = read(*pair, masks=masks)
    assert [len(one.count.result.candidates) for one in maps.sessions] == [1, 0]


def test_masks_that_share_nothing_are_refused(tmp_path, pair):
    masks = []
    for n, part in enumerate([np.s_[:, 8:], np.s_[:, :8]]):
        inside = np.zeros(SHAPE, np.uint8)
        inside[part] = 1
        masks.append(save(tmp_path / f"mask{n}.nii.gz", inside, EYE))
    with pytest.raises(ShapeError, match="outside the mask or the field of view"):
        read(*pair, masks=masks)


def test_a_mask_is_resampled_with_its_map_and_what_lies_outside_may_be_nan(tmp_path, pair):
    fine = shifted(sizes=(0.5, 0.5, 0.5))
    values = np.repeat(np.repeat(np.repeat(lesions(0.9, 0.8, 0.6), 2, 0), 2, 1), 2, 2)
    inside = np.zeros(values.shape, np.uint8)
    inside[:, :18] = 1
    other = save(tmp_path / "fine.nii.gz", np.where(inside, values, np.nan).astype(np.float32), fine)
    mask = save(tmp_path / "mask.nii.gz", inside, fine)
    maps = read(other, pair[1], masks=[mask, None])
    assert [one.count.result.candidates.peak_index[:, 1].tolist() for one in maps.sessions] == [[1, 6], [1]]
    counted = maps.sessions[0].counted
    assert np.isfinite(counted.voxels).all()
    assert not counted.inside[:, 9:].any()
    assert counted.inside[:, :9].all()


def test_nan_without_a_mask_is_refused(tmp_path, pair):
    values = lesions(0.9)
    values[3, 3, 3] = np.nan
    with pytest.raises(NonFiniteError, match="NaN"):
        read(save(tmp_path / "nan.nii.gz", values, EYE), pair[1])


def test_a_mask_on_another_grid_than_its_map_is_refused(tmp_path, pair):
    mask = save(tmp_path / "mask.nii.gz", np.ones((3, 3, 3), np.uint8), EYE)
    with pytest.raises(ShapeError, match="the mask on the grid of the map"):
        read(*pair, masks=[None, mask])


def test_arrays_without_a_place_must_have_one_shape(tmp_path):
    for name, shape in (("a", (8, 9, 10)), ("b", (8, 9, 10)), ("c", (8, 9, 11))):
        np.save(tmp_path / f"{name}.npy", np.full(shape, 0.3, np.float32))
    assert compare_files(tmp_path / "a.npy", tmp_path / "b.npy").persisting.mean() == pytest.approx(0.3)
    with pytest.raises(ShapeError, match=r"map of an earlier session.*\(8, 9, 11\)"):
        compare_files(tmp_path / "c.npy", tmp_path / "a.npy")


def test_an_array_and_a_map_with_a_place_of_the_same_shape(tmp_path, pair):
    np.save(tmp_path / "a.npy", lesions(0.9, 0.8))
    np.testing.assert_allclose(compare_files(tmp_path / "a.npy", pair[1]).p_new, compare_files(*pair).p_new)


def test_pictures_of_one_size(tmp_path):
    for name, height in (("a", 0.0), ("b", 0.6)):
        values = np.zeros((20, 30), np.float32)
        values[4:6, 4:6] = height
        save(tmp_path / f"{name}.nii.gz", values, EYE)
    changes = compare_files(tmp_path / "a.nii.gz", tmp_path / "b.nii.gz")
    assert changes.new.mean() == pytest.approx(0.6)
    save(tmp_path / "c.nii.gz", np.zeros((21, 30), np.float32), EYE)
    with pytest.raises(ShapeError, match="pictures must have the same size"):
        compare_files(tmp_path / "c.nii.gz", tmp_path / "b.nii.gz")


@pytest.mark.parametrize("stored", ["scaled", "logits", "percent"])
def test_numbers_are_read_as_the_settings_say(tmp_path, pair, stored):
    values = [lesions(0.9, 0.8), lesions(0.9, 0, 0.7)]
    files = [tmp_path / f"{stored}{n}.nii.gz" for n in range(2)]
    if stored == "logits":
        for path, one in zip(files, values, strict=True):
            p = np.clip(one.astype(np.float64), 1e-9, 1 - 1e-9)
            save(path, np.log(p / (1 - p)), EYE)
        found = compare_files(*files, logits=True)
    elif stored == "percent":
        for path, one in zip(files, values, strict=True):
            save(path, np.round(one * 100).astype(np.int16), EYE)
        found = compare_files(*files, scale=0.01)
    else:
        for path, one in zip(files, values, strict=True):
            save(path, np.round(one * 200).astype(np.uint8), EYE)
        found = compare_files(*files, scale=1 / 200)
    np.testing.assert_allclose(found.p_new, compare_files(*pair).p_new, atol=1e-6)
    np.testing.assert_allclose(found.p_gone, compare_files(*pair).p_gone, atol=1e-6)


def test_two_files_in_one_call(pair, tmp_path):
    found = compare_files(*map(str, pair), threshold=0.3, tolerance_mm=1, coupling=1)
    assert (found.tolerance_mm, found.coupling, found.after.protocol.threshold) == (1, 1, 0.3)
    inside = np.zeros(SHAPE, np.uint8)
    inside[:, :5] = 1
    mask = save(tmp_path / "mask.nii.gz", inside, EYE)
    assert compare_files(*pair, mask=mask).new.mean() == 0
    with pytest.raises(MapError, match="a coupling from 0 to 10"):
        compare_files(*pair, coupling=-1)
    with pytest.raises(MapFileError, match=r"none\.nii"):
        compare_files(pair[0], tmp_path / "none.nii")


def test_notes_are_in_the_record_and_the_table(tmp_path, pair):
    half = save(tmp_path / "half.nii.gz", lesions(0.9, 0.8)[:, :8], EYE)
    results = compare_batch([half, pair[1]], tmp_path / "out")
    assert len(results.courses[0].notes) == 2
    text = (tmp_path / "out" / "changes.tsv").read_text()
    assert "was resampled to that of the last session. The map of session 1 covers 53% of the last one." in text
    record = results.record("1")
    assert [session.is_resampled for session in record.sessions] == [True, False]
    assert record.sessions[0].map.shape == SHAPE

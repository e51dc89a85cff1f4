"""Label maps of regions in files."""

import nibabel
import numpy as np
import pytest
from nifti_files import AFFINE, save

from lesioncount.errors import MapFileError, RegionError, ShapeError
from lesioncount.files import masks, open_map
from lesioncount.files.masks import read_label_map

LABELS = np.zeros((4, 5, 6), dtype=np.int16)
LABELS[1:, 2:], LABELS[0, 0, 0] = 3, 17


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.float32, np.float64])
def test_labels_are_whole_numbers_of_any_type(tmp_path, dtype):
    found = read_label_map(save(tmp_path / "atlas.nii.gz", LABELS.astype(dtype)))
    np.testing.assert_array_equal(found.labels, LABELS)
    assert found.labels.dtype.kind in "iu"
    assert found.present == (3, 17)


@pytest.mark.parametrize("labels", [LABELS - 5, LABELS.astype(np.int32) * 100_000, LABELS > 0])
def test_labels_may_be_negative_large_or_true(tmp_path, labels):
    np.save(tmp_path / "atlas.npy", labels)
    found = read_label_map(tmp_path / "atlas.npy")
    np.testing.assert_array_equal(found.labels, labels)
    assert found.present == tuple(int(label) for label in np.unique(labels) if label != 0)


def test_scaled_labels_are_rounded(tmp_path):
    image = nibabel.Nifti1Image(LABELS.astype(np.int16) * 10, AFFINE)
    image.header.set_slope_inter(0.1, 0)
    nibabel.save(image, tmp_path / "atlas.nii")
    stored = nibabel.load(tmp_path / "atlas.nii")
    assert stored.dataobj.slope != 1
    np.testing.assert_array_equal(read_label_map(tmp_path / "atlas.nii").labels, np.round(stored.get_fdata()))


def test_numbers_with_a_fraction_are_refused_and_named(tmp_path):
    path = save(tmp_path / "atlas.nii.gz", (LABELS * 0.5).astype(np.float32))
    with pytest.raises(RegionError, match=r"atlas.nii.gz to be whole numbers, .* but they hold 1.5, 8.5"):
        read_label_map(path)


def test_several_volumes_are_no_label_map(tmp_path):
    path = save(tmp_path / "atlas.nii.gz", np.zeros((4, 5, 6, 3), np.float32))
    with pytest.raises(MapFileError, match="a single volume in which each region has a number"):
        read_label_map(path)


def test_a_label_map_is_read_once_as_long_as_it_is_not_changed(tmp_path, monkeypatch):
    opened = []
    open_mask = masks.open_mask
    monkeypatch.setattr(masks, "open_mask", lambda path: opened.append(path) or open_mask(path))
    path = save(tmp_path / "atlas.nii.gz", LABELS)
    assert read_label_map(path) is read_label_map(path)
    assert len(opened) == 1
    save(path, LABELS * 2)
    assert read_label_map(path).present == (6, 34)
    assert len(opened) == 2


def test_labels_must_lie_on_the_grid_of_the_map(tmp_path):
    atlas = read_label_map(save(tmp_path / "atlas.nii.gz", LABELS))
    same = open_map(save(tmp_path / "same.nii.gz", np.zeros((4, 5, 6), np.float32))).grid
    assert atlas.on(same) is atlas.labels
    smaller = open_map(save(tmp_path / "smaller.nii.gz", np.zeros((4, 5, 5), np.float32))).grid
    with pytest.raises(ShapeError, match="Expected the label map of regions on the grid of the map, but"):
        atlas.on(smaller)
    elsewhere = open_map(save(tmp_path / "elsewhere.nii.gz", np.zeros((4, 5, 6), np.float32), AFFINE * 2)).grid
    with pytest.raises(ShapeError, match="mm away"):
        atlas.on(elsewhere)


def test_segments_in_dicom_are_regions_of_a_map_in_nifti(tmp_path):
    pytest.importorskip("highdicom")
    from dicom_files import affine_of, ct_series, lesion, save_segmentation

    slices = ct_series(LABELS.shape)
    labels = np.where(LABELS > 0, np.where(LABELS == 3, 1, 2), 0).astype(np.uint8)
    path = save_segmentation(tmp_path / "atlas.dcm", slices, labels, "LABELMAP", [lesion(1), lesion(2)])
    turn = np.array([[0, 0, 1, 0], [0, -1, 0, LABELS.shape[1] - 1], [1, 0, 0, 0], [0, 0, 0, 1]])
    grid = open_map(save(tmp_path / "m.nii.gz", np.zeros((6, 5, 4), np.float32), affine_of(slices) @ turn)).grid
    np.testing.assert_array_equal(read_label_map(path).on(grid), labels.transpose(2, 1, 0)[:, ::-1])

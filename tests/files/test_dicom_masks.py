"""DICOM without endings, and segmentations as masks."""

import contextlib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("highdicom")

from dicom_files import affine_of, ct_series, fractional_segmentation, lesion, save_segmentation, save_series
from nifti_files import save

from lesioncount.assess.truth import true_lesions
from lesioncount.cohort.inputs import find_maps
from lesioncount.errors import MapFileError, ShapeError
from lesioncount.files import open_map, open_mask
from lesioncount.files.dicom_header import is_dicom, is_other_dicom, sop_class
from lesioncount.files.formats import map_ending, scan_name
from lesioncount.protocol import CountingProtocol
from lesioncount.runs import count_file

SHAPE = (6, 8, 10)
OBLIQUE = (0.8, 0.6, 0.0, 0.0, 0.0, -1.0)  # rows run to the feet, slices between left and back


@pytest.fixture
def labels():
    """Two lesions that touch, and one in two pieces; the first and the last slice are empty."""
    values = np.zeros(SHAPE, np.uint8)
    values[1:3, 2:4, 2:4], values[1:3, 2:4, 4:6] = 1, 2
    values[4, 6, 1], values[4, 1, 8] = 3, 3
    return values


def places(inside, affine):
    """Where voxels are in the patient, in an order that does not depend on that of the array."""
    mm = np.argwhere(inside) @ affine[:3, :3].T + affine[:3, 3]
    return mm[np.lexsort(mm.round(2).T)]


def test_a_segmentation_without_an_ending_is_known_by_its_content(tmp_path):
    path, _ = fractional_segmentation(tmp_path, np.full(SHAPE, 0.5, np.float32))
    bare = path.rename(tmp_path / "1.2.840.99")
    assert map_ending(bare) == ".dcm"
    assert scan_name(bare) == "1.2.840.99"
    assert open_map(bare).format == "DICOM SEG"
    assert len(count_file(bare).result.candidates) == 1


def test_images_beside_a_segmentation_are_no_maps(tmp_path):
    slices = ct_series(SHAPE)
    save_series(tmp_path / "study" / "ct", slices)
    save_series(tmp_path / "study" / "ct2", slices, name="{}.dcm")
    seg = save_segmentation(tmp_path / "study" / "SEG1", slices, np.full(SHAPE, 0.5, np.float32), "FRACTIONAL")
    (tmp_path / "study" / "notes").write_text("no map")
    assert find_maps([tmp_path / "study"]) == [seg]
    with pytest.raises(MapFileError, match=r"not a DICOM segmentation .* CT Image Storage"):
        open_map(tmp_path / "study" / "ct" / "IM0001")


@pytest.mark.parametrize("content", [b"", b"\0" * 128, b"\0" * 128 + b"DICM", b"\0" * 128 + b"DICM" + b"\2\0\2\0UI"])
def test_files_cut_in_their_first_bytes_have_no_class(tmp_path, content):
    (tmp_path / "cut").write_bytes(content)
    assert sop_class(tmp_path / "cut") is None
    assert not is_other_dicom(tmp_path / "cut")
    assert is_dicom(tmp_path / "cut") == (b"DICM" in content)
    assert not is_dicom(tmp_path)


@pytest.mark.parametrize("kind", ["BINARY", "LABELMAP"])
def test_masks_hold_the_numbers_of_their_segments(tmp_path, labels, kind):
    slices = ct_series(SHAPE, orientation=OBLIQUE)
    segments = [lesion(number) for number in (1, 2, 3)]
    path = save_segmentation(tmp_path / "mask.dcm", slices, labels, kind, segments, omit_empty_frames=False)
    mask = open_mask(path)
    # Position by position: highdicom may have reversed the slices.
    both = (mask.values(), mask.affine), (labels, affine_of(slices))
    for number in (1, 2, 3):
        np.testing.assert_allclose(*(places(values == number, at) for values, at in both), atol=1e-3)
    assert not mask.has_instances


def test_only_segments_of_one_kind_with_tracking_are_instances(tmp_path, labels):
    slices = ct_series(SHAPE)
    tracked = [lesion(number, tracking=True) for number in (1, 2, 3)]
    other = [*tracked[:2], lesion(3, tracking=True, kind=("12738006", "SCT", "Brain"))]
    for name, segments, expected in (("same.dcm", tracked, True), ("other.dcm", other, False)):
        path = save_segmentation(tmp_path / name, slices, labels, "LABELMAP", segments)
        assert open_mask(path).has_instances == expected


@pytest.mark.parametrize("kind", ["BINARY", "LABELMAP"])
@pytest.mark.parametrize("omit", [True, False])
def test_segments_are_the_truth_of_a_map_in_nifti(tmp_path, labels, kind, omit):
    slices = ct_series(SHAPE, orientation=OBLIQUE)
    # As dcm2niix turns it: columns, rows reversed, slices.
    affine = affine_of(slices) @ np.array([[0, 0, 1, 0], [0, -1, 0, SHAPE[1] - 1], [1, 0, 0, 0], [0, 0, 0, 1]])
    turned = labels.transpose(2, 1, 0)[:, ::-1]
    save(tmp_path / "map.nii.gz", turned.astype(np.float32) / 3, affine)
    grid = open_map(tmp_path / "map.nii.gz").grid
    tracked = [lesion(number, tracking=True) for number in (1, 2, 3)]
    path = save_segmentation(tmp_path / "m.dcm", slices, labels, kind, tracked, omit_empty_frames=omit)
    found = true_lesions(path, grid, CountingProtocol())
    assert len(found) == 3
    np.testing.assert_array_equal(found.label_map(), turned)
    assert len(true_lesions(path, grid, CountingProtocol(), label=3)) == 2
    one = save_segmentation(tmp_path / "b.dcm", slices, (labels > 0).astype(np.uint8), kind, omit_empty_frames=omit)
    assert len(true_lesions(one, grid, CountingProtocol())) == 3  # two that touch, and both pieces
    assert len(true_lesions(one, grid, CountingProtocol(), within=path)) == 3


def test_a_lesion_in_a_slice_that_the_map_left_out_is_counted_as_missed(tmp_path, labels):
    slices = ct_series(SHAPE)
    weak = np.where(labels == 1, np.float32(0.7), np.float32(0))  # slices 1 and 2 only
    path = save_segmentation(tmp_path / "map.dcm", slices, weak, "FRACTIONAL")
    grid = open_map(path).grid
    assert grid.shape[0] < SHAPE[0]
    mask = save_segmentation(tmp_path / "mask.dcm", slices, (labels > 0).astype(np.uint8), "BINARY")
    found = true_lesions(mask, grid, CountingProtocol())
    assert len(found) == 3
    assert found.label_map().shape == grid.shape
    assert len(np.unique(found.label_map())) == 2  # nothing, and one lesion: the other two lie beyond


def test_masks_of_other_voxels_are_refused(tmp_path, labels):
    slices = ct_series(SHAPE)
    path = save_segmentation(tmp_path / "mask.dcm", slices, (labels > 0).astype(np.uint8), "BINARY")
    shifted = affine_of(slices)
    shifted[0, 3] += 0.2
    for affine in (shifted, affine_of(slices) @ np.diag([1, 1, 1.1, 1])):
        save(tmp_path / "map.nii.gz", np.zeros(SHAPE, np.float32), affine)
        with pytest.raises(ShapeError, match="lie elsewhere"):
            count_file(tmp_path / "map.nii.gz", mask=path)


def test_a_segmentation_restricts_a_count_as_a_mask_does(tmp_path, labels):
    slices = ct_series(SHAPE)
    save(tmp_path / "map.nii.gz", (labels > 0).astype(np.float32) * 0.8, affine_of(slices))
    mask = save_segmentation(tmp_path / "mask.dcm", slices, (labels == 3).astype(np.uint8), "BINARY")
    assert len(count_file(tmp_path / "map.nii.gz").result.candidates) == 3
    assert len(count_file(tmp_path / "map.nii.gz", mask=mask).result.candidates) == 2


def test_segments_that_share_voxels_are_no_mask(tmp_path):
    both = np.zeros((*SHAPE, 2), np.uint8)
    both[2, 2:4, 2:4] = 1
    path = save_segmentation(tmp_path / "m.dcm", ct_series(SHAPE), both, "BINARY", [lesion(1), lesion(2)])
    with pytest.raises(MapFileError, match=r"cannot be read as a mask.*overlap"):
        open_mask(path)


def test_counting_a_mask_says_what_it_can_be_used_for(tmp_path, labels):
    path = save_segmentation(tmp_path / "m.dcm", ct_series(SHAPE), (labels > 0).astype(np.uint8), "BINARY")
    with pytest.raises(MapFileError, match=r"without probabilities.*As a mask or as the truth"):
        open_map(path)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of pydicom, about the damage
def test_an_element_that_claims_gigabytes_gets_no_more_than_the_file_has():
    """A file of 5 kB, whose first element is 4 GB long: room for that was made before anything was read."""
    path = Path(__file__).parents[1] / "fuzz_corpus" / "maps" / "claims_4_gb.dcm"
    with contextlib.suppress(MapFileError):
        open_map(path)  # imports
    tracemalloc.start()
    try:
        with pytest.raises(MapFileError, match="is not a DICOM segmentation"):
            open_map(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20e6

"""Every kind of bad map gets an error of ours that says what to do."""

import numpy as np
import pytest

import lesioncount as lc
from lesioncount.errors import (
    LesionCountError,
    MapError,
    NonFiniteError,
    ProbabilityRangeError,
    ProtocolError,
    ShapeError,
    SpacingError,
    VoxelTypeError,
)

GOOD = np.full((4, 5, 6), 0.05, dtype=np.float32)


def with_voxel(value, dtype=np.float32):
    probabilities = GOOD.astype(dtype)
    probabilities[1, 2, 3] = value
    return probabilities


@pytest.mark.parametrize(
    ("probabilities", "options", "error", "message"),
    [
        (with_voxel(-7.1), {}, ProbabilityRangeError, r"span \[-7.1, 0.05\]. If these are logits, pass logits=True"),
        (with_voxel(97.0), {}, ProbabilityRangeError, r"If 100 stands for a probability of 1, pass scale=0.01"),
        (with_voxel(250.0), {}, ProbabilityRangeError, "pass scale=1/255"),
        (with_voxel(1.2), {}, ProbabilityRangeError, "numpy.clip"),
        (with_voxel(-0.01), {}, ProbabilityRangeError, "numpy.clip"),
        (with_voxel(1e9), {}, ProbabilityRangeError, "Pass the scale="),
        (with_voxel(200, np.uint8), {}, ProbabilityRangeError, r"span \[0, 200\].*pass scale=1/255"),
        (with_voxel(40000, np.uint16), {}, ProbabilityRangeError, "pass scale=1/65535"),
        (with_voxel(200, np.uint8), {"scale": 1 / 100}, ProbabilityRangeError, "computed with scale=0.01"),
        (with_voxel(-5, np.int16), {"scale": 1 / 100}, ProbabilityRangeError, r"span \[-0.05, 0\]"),
        (with_voxel(np.nan), {}, NonFiniteError, r"1 is NaN or infinite, the first at index \(1, 2, 3\).*mask="),
        (with_voxel(np.inf), {}, NonFiniteError, r"1 is NaN or infinite"),
        (with_voxel(-np.inf), {}, NonFiniteError, r"1 is NaN or infinite"),
        (with_voxel(-np.nan, np.float64), {}, NonFiniteError, r"1 is NaN or infinite"),
        (with_voxel(np.nan, np.float16), {}, NonFiniteError, r"1 is NaN or infinite"),
        (with_voxel(np.nan), {"logits": True}, NonFiniteError, r"1 is NaN or infinite"),
        (with_voxel(-np.nan), {"logits": True}, NonFiniteError, r"1 is NaN or infinite"),
        (with_voxel(np.inf), {"logits": True}, NonFiniteError, r"1 is NaN or infinite"),
        (with_voxel(-np.inf), {"logits": True}, NonFiniteError, r"1 is NaN or infinite"),
        (np.full((2, 2), np.nan), {}, NonFiniteError, r"4 are NaN or infinite, the first at index \(0, 0\)"),
        (with_voxel(np.nan, ">f4"), {}, NonFiniteError, r"index \(1, 2, 3\)"),
        (with_voxel(3, np.int64), {}, ProbabilityRangeError, r"span \[0, 3\]"),
        (np.zeros(5), {}, ShapeError, r"2-D or 3-D map, but its shape is \(5,\)"),
        (np.float64(0.5), {}, ShapeError, "2-D or 3-D map"),
        (np.zeros((2, 3, 4, 5)), {}, ShapeError, "Choose one channel or one scan first"),
        (np.zeros((0, 3)), {}, ShapeError, "with voxels"),
        ([[0.1, 0.2], [0.3]], {}, ShapeError, "no array"),
        (np.zeros((2, 2), complex), {}, VoxelTypeError, "real numbers, but its dtype is complex128"),
        (np.array([["a", "b"]]), {}, VoxelTypeError, "real numbers"),
        (np.array([[None, 1]]), {}, VoxelTypeError, "real numbers"),
        (GOOD, {"mask": np.ones((4, 5, 7))}, ShapeError, r"shape \(4, 5, 6\), but the mask has shape \(4, 5, 7\)"),
        (GOOD, {"mask": np.full(GOOD.shape, "yes")}, VoxelTypeError, "booleans or numbers"),
        (GOOD, {"spacing_mm": (1, 1)}, SpacingError, "along each of 3 axes"),
        (GOOD, {"spacing_mm": (1, 1, 0)}, SpacingError, "greater than 0"),
        (GOOD, {"spacing_mm": (1, 1, np.nan)}, SpacingError, "greater than 0"),
        (GOOD, {"spacing_mm": "unknown"}, SpacingError, "voxel size"),
        (GOOD, {"scale": 0}, MapError, "scale to be a finite number"),
        (GOOD, {"scale": np.nan}, MapError, "scale to be a finite number"),
        (GOOD, {"scale": "1/255"}, MapError, "scale to be a finite number"),
        (GOOD, {"scale": 0.5, "logits": True}, MapError, "exclude each other"),
        (GOOD.astype(np.uint8), {"logits": True}, VoxelTypeError, "floating point"),
        (GOOD, {"threads": 0}, MapError, "at least one thread"),
        (GOOD, {"threads": 1.5}, MapError, "at least one thread"),
        (GOOD, {"protocol": lc.CountingProtocol(connectivity=8)}, ProtocolError, "does not fit a 3-D map"),
        (GOOD[0], {"protocol": lc.CountingProtocol(connectivity=26)}, ProtocolError, "does not fit a 2-D map"),
        (GOOD, {"protocol": lc.CountingProtocol(min_volume_mm3=3)}, SpacingError, "Pass spacing_mm="),
        (GOOD, {"protocol": "papier"}, ProtocolError, "Known are paper, faces, corners"),
        (GOOD, {"protocol": 0.1}, ProtocolError, r"CountingProtocol.named\('paper'\)"),
        (GOOD, {"scale": [0.1]}, MapError, "scale to be a finite number"),
        (with_voxel(2, np.uint8), {}, ProbabilityRangeError, "labels == 1"),
        (with_voxel(-1, np.int16), {}, ProbabilityRangeError, "Is this a probability map"),
        (with_voxel(np.nan), {"logits": True}, NonFiniteError, "a large negative number"),
        (np.zeros((1, 4, 4, 4)), {}, ShapeError, r"probabilities\[0\]"),
        ("map.nii.gz", {}, ShapeError, "2-D or 3-D"),
        (None, {}, ShapeError, "got NoneType. Load the file"),
        (np.ones((2, 2), bool), {"scale": -1}, ProbabilityRangeError, "computed with scale=-1"),
        (np.full((2, 2), 3, np.uint8), {"scale": 1e-310}, None, ""),
    ],
)  # fmt: skip
def test_bad_input_is_explained(probabilities, options, error, message):
    if error is None:
        lc.count_lesions(probabilities, **options)
        return
    with pytest.raises(error, match=message) as caught:
        lc.count_lesions(probabilities, **options)
    assert isinstance(caught.value, LesionCountError)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("order", ["C", "F"])
def test_all_bad_voxels_of_a_large_map_are_counted(monkeypatch, threads, order):
    monkeypatch.setattr("lesioncount.sweep.slabs.SLAB_VOXELS", 50)
    probabilities = np.array(GOOD, order=order)
    probabilities[1:, 1, 1] = np.nan
    probabilities[0, 4, 5] = np.nan
    with pytest.raises(NonFiniteError, match=r"4 are NaN or infinite, the first at index \(0, 4, 5\)"):
        lc.count_lesions(probabilities, threads=threads)


def test_bad_voxels_below_the_threshold_of_a_masked_map_are_found():
    probabilities = with_voxel(np.nan)
    inside = np.zeros(GOOD.shape, bool)
    inside[1, 2, 3] = True
    with pytest.raises(NonFiniteError):
        lc.count_lesions(probabilities, mask=inside)
    lc.count_lesions(probabilities, mask=~inside)

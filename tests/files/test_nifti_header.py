"""Headers of NIfTI files, with nibabel as the oracle: what it reads we read, and what it refuses we refuse."""

from pathlib import Path

import nibabel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nibabel.spatialimages import HeaderDataError

from lesioncount.errors import MapFileError
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.nifti_header import header_bytes, header_of

PATH = Path("map.nii")
AFFINE = np.array([[0, -1.5, 0.2, 7], [2, 0, 0, -3], [0, 0.1, 3, 11], [0, 0, 0, 1]])

small = st.floats(-4, 4, width=32)
KINDS = [np.uint8, np.int16, np.uint16, np.int32, np.float32, np.float64, np.int64]


@st.composite
def written_by_nibabel(draw):
    kind = draw(st.sampled_from([nibabel.Nifti1Header, nibabel.Nifti2Header]))
    header = kind(endianness=draw(st.sampled_from("<>")))
    header.set_data_dtype(draw(st.sampled_from(KINDS)))
    header.set_data_shape(draw(st.lists(st.integers(1, 40), min_size=2, max_size=6)))
    header["magic"] = header.single_magic
    header["pixdim"][1:4] = draw(st.tuples(*[st.floats(0.125, 4, width=32)] * 3))
    header["pixdim"][0] = draw(st.sampled_from([-1, 1]))
    header["vox_offset"] = draw(st.sampled_from([0, header.single_vox_offset, 1024]))
    header["scl_slope"] = draw(st.sampled_from([0, 1, 0.5, np.nan]))
    header["scl_inter"] = draw(st.sampled_from([0, 2.0, np.inf]))
    header["qform_code"], header["sform_code"] = draw(st.sampled_from([(0, 0), (1, 0), (0, 2), (1, 2)]))
    header["quatern_b"], header["quatern_c"], header["quatern_d"] = draw(st.tuples(*[st.floats(-1, 1, width=32)] * 3))
    header["qoffset_x"], header["qoffset_y"], header["qoffset_z"] = draw(st.tuples(small, small, small))
    for row in "xyz":
        header[f"srow_{row}"] = draw(st.tuples(small, small, small, small))
    return header


@given(written_by_nibabel())
def test_headers_say_what_nibabel_reads_and_are_refused_where_nibabel_refuses(header):
    content = header.binaryblock + bytes(600)
    try:
        slope, shift = header.get_slope_inter()
        affine = header.get_best_affine()
    except (HeaderDataError, ValueError):
        with pytest.raises(MapFileError, match="not a NIfTI file"):
            header_of(PATH, content)
        return
    ours = header_of(PATH, content)
    assert ours.shape == header.get_data_shape()
    assert ours.dtype == header.get_data_dtype()
    assert ours.offset == (int(header["vox_offset"]) or header.single_vox_offset)
    assert (ours.scale, ours.shift) == ((1, 0) if slope is None else (slope, shift))
    assert ours.is_placed == (header["sform_code"] > 0 or header["qform_code"] > 0)
    if ours.is_placed:
        np.testing.assert_allclose(ours.affine, affine, atol=1e-6)
    else:
        np.testing.assert_array_equal(np.diag(ours.affine)[:3], header["pixdim"][1:4])


@pytest.mark.parametrize(("unit", "factor"), [("meter", 1000), ("mm", 1), ("micron", 0.001), ("unknown", 1)])
def test_lengths_are_millimetres_whatever_the_unit(unit, factor):
    header = nibabel.Nifti1Header()
    header["magic"] = header.single_magic
    header.set_data_shape((4, 5, 6))
    header.set_sform(AFFINE, code=1)
    header.set_xyzt_units(unit, "sec")
    np.testing.assert_allclose(header_of(PATH, header.binaryblock + bytes(4)).affine[:3], factor * AFFINE[:3], 1e-6)


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 6), (40_000, 2, 3)])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int32, np.float32])
def test_headers_that_are_written_are_those_of_nibabel(shape, kind):
    is_long = max(shape) > 32_767
    theirs = nibabel.Nifti2Header() if is_long else nibabel.Nifti1Header()
    theirs.set_data_dtype(kind)
    theirs.set_data_shape(shape)
    theirs.set_zooms(np.linalg.norm(AFFINE[:3, : len(shape)], axis=0))
    theirs.set_sform(AFFINE, code="aligned")
    theirs.set_xyzt_units("mm")
    theirs.set_intent("label")
    theirs.set_slope_inter(0.25, 0)
    theirs.set_data_offset(theirs.single_vox_offset)
    ours = header_bytes(np.zeros(shape, kind), VoxelGrid.placed(PATH, shape, AFFINE), "label", 0.25)
    assert ours == theirs.binaryblock + bytes(4)


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("magic", b"ni1", "half of a NIfTI pair"),
        ("magic", b"xyz", "does not begin like one"),
        ("vox_offset", 12, "cannot begin at byte 12"),
        ("vox_offset", np.nan, "cannot begin at byte nan"),
        ("datatype", 128, "voxels that are colours"),
        ("datatype", 77, "unknown type 77"),
        ("dim", (9, 1, 1, 1, 1, 1, 1, 1), "it has 9 axes"),
    ],
)
def test_a_header_that_cannot_be_is_refused_with_the_reason(field, value, why):
    header = nibabel.Nifti1Header()
    header["magic"] = header.single_magic
    header[field] = value
    with pytest.raises(MapFileError, match=why):
        header_of(PATH, header.binaryblock)

"""Every format gives the same map, in the same place."""

import gzip

import nibabel
import numpy as np
import pytest

import lesioncount as lc
from lesioncount.errors import ChannelError, MapFileError, MissingExtraError, ShapeError
from lesioncount.files import open_map
from lesioncount.files.geometry import VoxelGrid
from lesioncount.runs import count_file

AFFINE = np.array([[0, 0, 2.5, -30], [-1.0, 0, 0, 12], [0, 1.2, 0, 3], [0, 0, 0, 1]])


@pytest.fixture
def probabilities(rng):
    return (rng.random((9, 10, 11)) ** 3 * 0.6).astype(np.float32)


def save_nifti(path, data, affine=AFFINE, slope_inter=None, kind=nibabel.Nifti1Image):
    image = kind(data, affine)
    if slope_inter is not None:
        image.header.set_slope_inter(*slope_inter)
    nibabel.save(image, path)
    return path


def assert_counts_as(path, probabilities, **options):
    expected = lc.count_lesions(probabilities, spacing_mm=open_map(path, channel=options.get("channel")).spacing_mm)
    count = count_file(path, keep_runs=True, **options)
    assert str(count.result) == str(expected)
    np.testing.assert_array_equal(count.result.candidates.label_map(), expected.candidates.label_map())
    assert count.component_count == lc.connected_component_count(probabilities)


@pytest.mark.parametrize("name", ["map.nii", "map.nii.gz"])
@pytest.mark.parametrize("kind", [nibabel.Nifti1Image, nibabel.Nifti2Image])
def test_nifti(tmp_path, probabilities, name, kind):
    path = save_nifti(tmp_path / name, probabilities, kind=kind)
    source = open_map(path)
    assert source.shape == (9, 10, 11)
    np.testing.assert_allclose(source.affine, AFFINE)
    np.testing.assert_allclose(source.spacing_mm, (1, 1.2, 2.5))
    np.testing.assert_array_equal(source.array(), probabilities)
    assert_counts_as(path, probabilities)


def test_nifti_is_read_in_several_pieces(tmp_path, probabilities, monkeypatch):
    monkeypatch.setattr("lesioncount.files.source.PIECE_BYTES", 1000)
    path = save_nifti(tmp_path / "map.nii.gz", probabilities)
    assert len(list(open_map(path).pieces())) > 3
    assert_counts_as(path, probabilities)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, ">f4", ">i2", np.float64])
def test_nifti_of_any_type_with_slope_and_intercept(tmp_path, probabilities, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        stored, slope, inter = probabilities.astype(dtype), None, None
    else:
        limits = np.iinfo(dtype)
        slope = float(np.float32(1 / (int(limits.max) - int(limits.min))))
        inter = -slope * int(limits.min)
        stored = np.round((probabilities - inter) / slope).astype(dtype)
    header = nibabel.Nifti1Header(endianness=">" if dtype.byteorder == ">" else "<")
    header.set_data_dtype(dtype)
    header.set_data_shape(stored.shape)
    header.set_sform(AFFINE, code=1)
    header["vox_offset"], header["magic"] = 352, b"n+1"
    if slope is not None:
        header["scl_slope"], header["scl_inter"] = slope, inter
    path = tmp_path / "map.nii.gz"
    path.write_bytes(gzip.compress(header.binaryblock + b"\0" * 4 + stored.tobytes(order="F")))
    meant = np.asarray(nibabel.load(path).get_fdata())
    np.testing.assert_allclose(meant, probabilities, atol=5e-3)
    ours = count_file(path)
    theirs = lc.count_lesions(np.clip(meant, 0, 1))
    assert len(ours.result.candidates) == len(theirs.candidates)
    np.testing.assert_allclose(ours.result.existence, theirs.existence, atol=1e-6)


def test_sform_and_qform_rules_are_those_of_nibabel(tmp_path, probabilities):
    for code in (0, 1):
        image = nibabel.Nifti1Image(probabilities, None)
        image.set_qform(np.diag([2, 3, 4, 1]), code=1)
        image.set_sform(np.diag([5, 6, 7, 1]), code=code)
        path = tmp_path / f"{code}.nii"
        nibabel.save(image, path)
        np.testing.assert_allclose(open_map(path).affine, nibabel.load(path).affine)


def test_four_dimensional_nifti_needs_a_channel(tmp_path, probabilities):
    both = np.stack([1 - probabilities, probabilities], axis=-1)
    path = save_nifti(tmp_path / "map.nii.gz", both)
    with pytest.raises(ChannelError, match=r"holds 2 channels, 0 to 1.*--channel"):
        open_map(path)
    with pytest.raises(ChannelError, match="no channel 2"):
        open_map(path, channel=2)
    assert_counts_as(path, probabilities, channel=1)


def test_a_single_volume_in_four_dimensions_needs_none(tmp_path, probabilities):
    assert_counts_as(save_nifti(tmp_path / "map.nii", probabilities[..., None]), probabilities)


def test_compression_is_recognised_whatever_the_name_says(tmp_path, probabilities):
    path = save_nifti(tmp_path / "map.nii.gz", probabilities)
    assert_counts_as(path.rename(tmp_path / "renamed.nii"), probabilities)


def test_scale_of_the_user_comes_on_top(tmp_path, probabilities):
    percent = np.round(probabilities * 100).astype(np.uint8)
    path = save_nifti(tmp_path / "map.nii.gz", percent)
    assert len(count_file(path, scale=0.01).result.candidates) == len(lc.count_lesions(percent, scale=0.01).candidates)


def test_logits(tmp_path, probabilities):
    logits = np.log(np.clip(probabilities, 1e-6, None) / (1 - probabilities)).astype(np.float32)
    path = save_nifti(tmp_path / "map.nii.gz", logits)
    assert str(count_file(path, logits=True).result.distribution) == str(
        lc.count_lesions(logits, logits=True).distribution
    )


def test_masks_must_lie_on_the_grid(tmp_path, probabilities, rng):
    path = save_nifti(tmp_path / "map.nii.gz", probabilities)
    inside = (rng.random(probabilities.shape) < 0.5).astype(np.uint8)
    good = save_nifti(tmp_path / "good.nii.gz", inside)
    assert str(count_file(path, mask=good).result.distribution) == str(
        lc.count_lesions(probabilities, mask=inside).distribution
    )
    with pytest.raises(ShapeError, match=r"has shape \(9, 10, 10\)"):
        count_file(path, mask=save_nifti(tmp_path / "small.nii.gz", inside[..., :-1]))
    moved = AFFINE.copy()
    moved[0, 3] += 1
    with pytest.raises(ShapeError, match=r"up to 1 mm away(.|\n)*Affine of"):
        count_file(path, mask=save_nifti(tmp_path / "moved.nii.gz", inside, moved))


def test_numpy_files(tmp_path, probabilities):
    np.save(tmp_path / "c.npy", probabilities)
    np.save(tmp_path / "f.npy", np.asfortranarray(probabilities))
    np.savez_compressed(tmp_path / "z.npz", p=probabilities)
    np.save(tmp_path / "four.npy", np.stack([1 - probabilities, probabilities]))
    for name in ("c.npy", "f.npy", "z.npz"):
        assert_counts_as(tmp_path / name, probabilities)
        assert open_map(tmp_path / name).spacing_mm is None
    assert_counts_as(tmp_path / "four.npy", probabilities, channel=1)
    np.savez(tmp_path / "two.npz", a=probabilities, b=probabilities)
    with pytest.raises(MapFileError, match=r"holds 2 arrays \(a, b\)"):
        open_map(tmp_path / "two.npz")


def test_zarr_chunk_by_chunk(tmp_path, probabilities):
    zarr = pytest.importorskip("zarr")
    for name, data, options in (
        ("v.zarr", probabilities, {}),
        ("c.zarr", np.stack([1 - probabilities, probabilities]), {"channel": 1}),
    ):
        chunks = (*(1,) * (data.ndim - 3), 4, 5, 6)
        array = zarr.create_array(str(tmp_path / name), shape=data.shape, chunks=chunks, dtype=data.dtype)
        array[:] = data
        assert_counts_as(tmp_path / name, probabilities, **options)
    assert len(list(open_map(tmp_path / "v.zarr").pieces())) >= 1
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(MapFileError, match="not a zarr array"):
        open_map(tmp_path / "empty.zarr")


@pytest.mark.parametrize("ending", [".nrrd", ".mha", ".mhd"])
def test_itk_formats_lie_where_nifti_does(tmp_path, probabilities, ending):
    sitk = pytest.importorskip("SimpleITK")
    nifti = save_nifti(tmp_path / "map.nii.gz", probabilities)
    sitk.WriteImage(sitk.ReadImage(str(nifti)), str(tmp_path / f"map{ending}"))
    source = open_map(tmp_path / f"map{ending}")
    np.testing.assert_allclose(source.affine, AFFINE, atol=1e-5)
    np.testing.assert_array_equal(source.array(), probabilities)
    assert len(count_file(tmp_path / f"map{ending}").result.candidates) == len(
        lc.count_lesions(probabilities).candidates
    )


def test_vector_images_need_a_channel(tmp_path, probabilities):
    sitk = pytest.importorskip("SimpleITK")
    image = sitk.GetImageFromArray(np.stack([1 - probabilities, probabilities], axis=-1), isVector=True)
    sitk.WriteImage(image, str(tmp_path / "map.nrrd"))
    with pytest.raises(ChannelError):
        open_map(tmp_path / "map.nrrd")
    np.testing.assert_array_equal(open_map(tmp_path / "map.nrrd", channel=1).array(), probabilities.T)


def test_dicom_segmentation_lies_where_its_slices_do(tmp_path, probabilities):
    pytest.importorskip("highdicom")
    from dicom_files import fractional_segmentation

    path, affine = fractional_segmentation(tmp_path, probabilities)
    source = open_map(path)
    values = source.array()
    for index in ((1, 2, 3), (8, 0, 10)):  # the same place holds the same value, however the slices are ordered
        place = nibabel.affines.apply_affine(affine, index)
        there = np.round(nibabel.affines.apply_affine(np.linalg.inv(source.affine), place)).astype(int)
        assert values[tuple(there)] == pytest.approx(probabilities[index], abs=1 / 255)
    assert len(count_file(path).result.candidates) > 0


def test_dicom_values_are_those_of_highdicom_in_pieces(tmp_path, probabilities, monkeypatch):
    highdicom = pytest.importorskip("highdicom")
    from dicom_files import fractional_segmentation

    monkeypatch.setattr("lesioncount.files.source.PIECE_BYTES", 1000)
    path, _ = fractional_segmentation(tmp_path, probabilities)
    whole = highdicom.seg.segread(path).get_volume(segment_numbers=[1], rescale_fractional=True).array[..., 0]
    np.testing.assert_array_equal(open_map(path).array(), whole)
    assert len(list(open_map(path).pieces())) > 1


def test_missing_optional_package_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "map.dcm").write_bytes(b"DICM")
    monkeypatch.setitem(__import__("sys").modules, "highdicom", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[dicom\]' in the clone"):
        open_map(tmp_path / "map.dcm")


def test_millimetres_are_those_of_the_affine(tmp_path, probabilities):
    path = save_nifti(tmp_path / "map.nii.gz", probabilities)
    index = np.array([[1, 2, 3], [0, 0, 0]])
    np.testing.assert_allclose(open_map(path).grid.to_ras_mm(index), nibabel.affines.apply_affine(AFFINE, index))
    assert np.isnan(VoxelGrid(path, (4, 4, 4)).to_ras_mm(index)).all()


def test_volumes_of_sheared_grids(tmp_path, probabilities):
    sheared = np.array([[1, 0.5, 0, 0], [0, 1, 0.2, 0], [0, 0, 2, 0], [0, 0, 0, 1.0]])
    count = count_file(save_nifti(tmp_path / "map.nii.gz", probabilities, sheared))
    np.testing.assert_allclose(count.result.candidates.volume_mm3, count.result.candidates.n_voxels * 2.0)


@pytest.mark.parametrize(("unit", "factor"), [("mm", 1), ("micron", 0.001), ("meter", 1000), ("unknown", 1)])
def test_units_become_millimetres(tmp_path, probabilities, unit, factor):
    image = nibabel.Nifti1Image(probabilities, AFFINE)
    image.header.set_xyzt_units(unit)
    nibabel.save(image, tmp_path / "map.nii")
    np.testing.assert_allclose(open_map(tmp_path / "map.nii").spacing_mm, np.array([1, 1.2, 2.5]) * factor, rtol=1e-6)


def test_masks_with_an_intercept_or_with_nan(tmp_path, probabilities):
    path = save_nifti(tmp_path / "map.nii.gz", probabilities)
    inside = np.zeros(probabilities.shape)
    inside[:4] = 1
    expected = str(lc.count_lesions(probabilities, mask=inside).distribution)
    scaled = nibabel.Nifti1Image(inside, AFFINE)
    scaled.set_data_dtype(np.int16)  # nibabel stores it with slope and intercept
    nibabel.save(scaled, tmp_path / "scaled.nii.gz")
    blank = save_nifti(tmp_path / "blank.nii.gz", np.where(inside > 0, 1.0, np.nan))
    for mask in (tmp_path / "scaled.nii.gz", blank):
        assert str(count_file(path, mask=mask).result.distribution) == expected


def test_two_dimensional_vector_images(tmp_path, probabilities):
    sitk = pytest.importorskip("SimpleITK")
    image = sitk.GetImageFromArray(np.stack([1 - probabilities[0], probabilities[0]], axis=-1), isVector=True)
    sitk.WriteImage(image, str(tmp_path / "map.mha"))
    np.testing.assert_array_equal(open_map(tmp_path / "map.mha", channel=1).array(), probabilities[0].T)
    with pytest.raises(ChannelError, match="holds 2 channels"):
        open_map(tmp_path / "map.mha")


def test_fingerprints_cover_the_files_that_belong_to_a_header(tmp_path, probabilities):
    sitk = pytest.importorskip("SimpleITK")
    from lesioncount.cohort.item import fingerprint

    sitk.WriteImage(sitk.GetImageFromArray(probabilities), str(tmp_path / "map.mhd"))
    before = fingerprint(tmp_path / "map.mhd")
    raw = tmp_path / "map.raw"
    raw.write_bytes(bytes(len(raw.read_bytes())))
    assert fingerprint(tmp_path / "map.mhd") != before


def test_an_array_inside_a_zarr_group(tmp_path, probabilities):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(tmp_path / "scan.zarr"), mode="w")
    array = group.create_array("0", shape=probabilities.shape, dtype=probabilities.dtype, chunks=(4, 5, 6))
    array[:] = probabilities
    with pytest.raises(MapFileError, match="give an array in it"):
        open_map(tmp_path / "scan.zarr")
    assert_counts_as(tmp_path / "scan.zarr" / "0", probabilities)


def test_an_array_called_probabilities_need_not_be_of_nnunet(tmp_path, probabilities):
    np.savez(tmp_path / "mine.npz", probabilities=probabilities)
    assert_counts_as(tmp_path / "mine.npz", probabilities)
    np.save(tmp_path / "four.npy", np.stack([probabilities, probabilities]))
    with pytest.raises(ChannelError, match="holds 2 channels"):
        open_map(tmp_path / "four.npy")

"""Files that are damaged, lie or attack: only errors of ours come out, and they help."""

import gzip
import os
import resource
import shutil
import struct
import tempfile
import tracemalloc
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import nibabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lesioncount.errors import LesionCountError, MapFileError, NonFiniteError, ProbabilityRangeError
from lesioncount.files import open_map
from lesioncount.runs import count_file

GOOD = np.full((6, 7, 8), 0.05, dtype=np.float32)
GOOD[2, 3, 4] = 0.7


def nifti_bytes(data=GOOD, affine=None, **header):
    image = nibabel.Nifti1Image(data, np.eye(4) if affine is None else affine)
    raw = bytearray(image.to_bytes())
    for offset, (form, value) in {int(k[1:]): v for k, v in header.items()}.items():
        struct.pack_into(form, raw, offset, *value if isinstance(value, tuple) else (value,))
    return bytes(raw)


def flipped(content, at):
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


NOISE = np.random.default_rng(0).random((6, 7, 8), np.float32)
ENDLESS = ("<8h", (3, 10000, 10000, 10000, 1, 1, 1, 1))  # 10¹² voxels


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("zero.nii.gz", b"", "is empty"),
        ("zero.npz", b"", "is empty"),
        ("text.nii.gz", b"these are no voxels, but a text of some length" * 20, "not a NIfTI file"),
        ("text.npz", b"these are no voxels", "not a numpy file"),
        ("text.npy", b"these are no voxels", "not a numpy file"),
        ("text.nrrd", b"these are no voxels", "not a NRRD file"),
        ("text.mha", b"these are no voxels", "not a MetaImage file"),
        ("text.dcm", b"these are no voxels", "not a DICOM"),
        ("short.nii", nifti_bytes()[:200], "not a NIfTI file"),
        ("truncated.nii", nifti_bytes()[:-40], "header promises"),
        ("truncated.nii.gz", gzip.compress(nifti_bytes(), mtime=0)[:-30], "damaged or truncated"),
        ("early.nii.gz", gzip.compress(nifti_bytes(), mtime=0)[:40], "damaged or truncated"),
        ("flipped.nii.gz", flipped(gzip.compress(nifti_bytes(NOISE), mtime=0), 300), "damaged or truncated"),
        ("endless.nii.gz", gzip.compress(nifti_bytes(_40=ENDLESS), mtime=0), "header promises"),
        ("endless.nii", nifti_bytes(_40=ENDLESS), "header promises"),
        ("negative.nii", nifti_bytes(_40=("<8h", (3, 6, -7, 8, 1, 1, 1, 1))), "axes with voxels|not a NIfTI"),
        ("flat.nii", nifti_bytes(_40=("<8h", (1, 336, 1, 1, 1, 1, 1, 1))), "two or three axes"),
        ("type.nii", nifti_bytes(_70=("<h", 128)), "cannot be probabilities|header promises"),
        ("type.nii", nifti_bytes(_70=("<h", 9999)), "not a NIfTI file"),
        ("affine.nii", nifti_bytes(_252=("<hh", (0, 1)), _280=("<f", float("nan"))), "does not place the voxels"),
        ("sizes.nii", nifti_bytes(_252=("<hh", (0, 1)), _280=("<12f", (0.0,) * 12)), "does not place the voxels"),
        ("pair.nii", nifti_bytes(_344=("<4s", b"ni1\0")), "half of a NIfTI pair"),
        ("known.txt", b"text", "not a kind of file"),
    ],
)  # fmt: skip
def test_damaged_files_are_explained(tmp_path, name, content, message):
    path = write(tmp_path, name, content)
    with pytest.raises(MapFileError, match=message) as caught:
        count_file(path)
    assert name in str(caught.value)


def test_what_goes_on_behind_the_voxels_is_refused(tmp_path):
    """A gzip bomb: a gigabyte of zeros behind a small map."""
    bomb = gzip.compress(nifti_bytes(), mtime=0) + gzip.compress(bytes(1 << 26), mtime=0) * 16
    path = write(tmp_path, "bomb.nii.gz", bomb)
    tracemalloc.start()
    with pytest.raises(MapFileError, match="goes on for more than 64 MB behind its voxels"):
        count_file(path)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


def test_a_header_that_promises_much_allocates_little(tmp_path):
    # 2000 × 2000 × 2000 float64 voxels would be 64 GB; the file could expand to 70 GB if it were all zeros.
    path = write(
        tmp_path,
        "huge.nii.gz",
        gzip.compress(nifti_bytes(_40=("<8h", (3, 2000, 2000, 2000, 1, 1, 1, 1)))) + os.urandom(40_000_000),
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(MapFileError):
        count_file(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_values_that_are_no_probabilities(tmp_path):
    for value, error in ((np.nan, NonFiniteError), (7.5, ProbabilityRangeError), (-4, ProbabilityRangeError)):
        data = GOOD.copy()
        data[1, 1, 1] = value
        with pytest.raises(error):
            count_file(write(tmp_path, "bad.nii.gz", gzip.compress(nifti_bytes(data), mtime=0)))


def test_pickled_objects_are_refused(tmp_path):
    np.save(tmp_path / "o.npy", np.array([[{}, []]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "o.npz", p=np.array([[{}, []]], dtype=object))
    np.savez(tmp_path / "n.npz", probabilities=np.array([[{}, []]], dtype=object))
    for name in ("o.npy", "o.npz", "n.npz"):
        with pytest.raises(MapFileError, match="pickled Python objects"):
            open_map(tmp_path / name)


def test_files_without_permission():
    folder = Path(tempfile.mkdtemp())  # not tmp_path: others may not even look into that
    folder.chmod(0o755)
    path = write(folder, "secret.nii", nifti_bytes())
    path.chmod(0)
    me = os.geteuid()
    try:
        if me == 0:
            os.seteuid(65534)  # root may read everything, nobody may not
        with pytest.raises(MapFileError, match="Permission denied"):
            open_map(path)
    finally:
        os.seteuid(me)
        shutil.rmtree(folder)


def test_folders_and_missing_files(tmp_path):
    (tmp_path / "folder.nii").mkdir()
    with pytest.raises(MapFileError, match="is a folder"):
        open_map(tmp_path / "folder.nii")
    with pytest.raises(MapFileError, match="does not exist"):
        open_map(tmp_path / "nothing.nii")


def npz_bytes():
    import io

    file = io.BytesIO()
    np.savez_compressed(file, probabilities=np.stack([1 - GOOD, GOOD]))
    return file.getvalue()


def npy_bytes():
    import io

    file = io.BytesIO()
    np.save(file, GOOD)
    return file.getvalue()


SEEDS = {
    "map.npy": npy_bytes(),
    "map.mha": b"ObjectType = Image\nNDims = 3\nCompressedData = True\nTransformMatrix = 1 0 0 0 1 0 0 0 1\n"
    b"Offset = 0 0 0\nElementSpacing = 1 1 2\nDimSize = 8 7 6\nElementType = MET_FLOAT\nElementDataFile = LOCAL\n"
    + zlib.compress(GOOD.tobytes()),
    "map.nrrd": b"NRRD0004\ntype: float\ndimension: 3\nspace: left-posterior-superior\nsizes: 8 7 6\n"
    b"space directions: (1,0,0) (0,1,0) (0,0,2)\nkinds: domain domain domain\nendian: little\nencoding: gzip\n"
    b"space origin: (0,0,0)\n\n" + gzip.compress(GOOD.tobytes(), mtime=0),
    "map.nii": nifti_bytes(),
    "map.nii.gz": gzip.compress(nifti_bytes(), mtime=0),
    "map.npz": npz_bytes(),
}


@settings(max_examples=600)
@given(
    st.sampled_from(sorted(SEEDS)),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=6),
    st.floats(0, 1.2),
    st.booleans(),
)
def test_mutated_files_raise_only_our_errors(tmp_path_factory, name, changes, cut, in_header):
    content = bytearray(SEEDS[name])
    for place, value in changes:
        content[int(place * (min(len(content), 400) if in_header else len(content)) * 0.999)] = value
    content = content[: int(cut * len(content))] if cut < 1 else content
    path = tmp_path_factory.mktemp("fuzz") / name
    path.write_bytes(bytes(content))
    with suppress(LesionCountError):
        count_file(path, channel=1 if name.endswith(".npz") else None)
    path.unlink()
    path.parent.rmdir()


def test_arrays_that_are_no_maps(tmp_path):
    for name, array, message in (
        ("line.npy", np.zeros(5), "two or three axes"),
        ("complex.npy", np.zeros((3, 3), complex), "cannot be probabilities"),
    ):
        np.save(tmp_path / name, array)
        with pytest.raises(MapFileError, match=message):
            open_map(tmp_path / name)
    np.savez(tmp_path / "none.npz")
    with pytest.raises(MapFileError, match="holds 0 arrays"):
        open_map(tmp_path / "none.npz")
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("notes.txt", "no array")
    with pytest.raises(MapFileError, match=r"something else|not a numpy file"):
        open_map(tmp_path / "text.npz")


def test_zarr_arrays_that_are_no_maps(tmp_path):
    zarr = pytest.importorskip("zarr")
    for name, shape, dtype, message in (
        ("l.zarr", (5,), "f4", "two or three"),
        ("c.zarr", (3, 3), "c8", "probabilities"),
    ):
        zarr.create_array(str(tmp_path / name), shape=shape, dtype=dtype)
        with pytest.raises(MapFileError, match=message):
            open_map(tmp_path / name)
    array = zarr.create_array(str(tmp_path / "d.zarr"), shape=(4, 4, 4), dtype="f4", chunks=(4, 4, 4))
    array[:] = 0.3
    chunk = next(path for path in (tmp_path / "d.zarr").rglob("*") if path.is_file() and path.name != "zarr.json")
    chunk.write_bytes(b"damaged")
    with pytest.raises(MapFileError, match="a chunk is damaged"):
        count_file(tmp_path / "d.zarr")


def test_dicom_files_that_are_no_fractional_segmentation(tmp_path):
    pytest.importorskip("highdicom")
    from dicom_files import ct_slice, fractional_segmentation
    from pydicom import dcmread

    ct_slice(0, (1, 4, 4)).save_as(tmp_path / "ct.dcm", enforce_file_format=True)
    with pytest.raises(MapFileError, match="not a DICOM segmentation"):
        open_map(tmp_path / "ct.dcm")
    path, _ = fractional_segmentation(tmp_path, GOOD)
    for change, message in (
        ({"SegmentationType": "BINARY"}, "without probabilities|not a DICOM|do not make"),
        ({"SegmentationFractionalType": "OCCUPANCY"}, "OCCUPANCY"),
        ({"PixelData": b"\0\0"}, "do not make a volume"),
    ):
        dataset = dcmread(path)
        for name, value in change.items():
            setattr(dataset, name, value)
        dataset.save_as(tmp_path / "changed.dcm")
        with pytest.raises(MapFileError, match=message):
            open_map(tmp_path / "changed.dcm")


def test_masks_without_geometry_need_only_the_shape(tmp_path):
    path = write(tmp_path, "map.nii", nifti_bytes())
    np.save(tmp_path / "mask.npy", np.ones(GOOD.shape, bool))
    assert len(count_file(path, mask=tmp_path / "mask.npy").result.candidates) == 1

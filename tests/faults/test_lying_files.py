"""Files that promise what they do not hold, change under the reader, or are no files: a sentence, within a second."""

import gzip
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import nibabel
import numpy as np
import pytest

from lesioncount.cli import main
from lesioncount.cohort.item import fingerprint
from lesioncount.errors import LesionCountError, MapFileError
from lesioncount.files import open_map
from lesioncount.files.formats import files_of
from lesioncount.runs import count_file

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "nnunet"
KINDS = [".nii", ".nii.gz", ".npy", ".npz", ".nrrd", ".nhdr", ".mha", ".mhd", ".dcm", ".zarr", ".tif", ".png"]


@pytest.fixture
def probabilities(rng):
    return (rng.random((6, 7, 8)) ** 3).astype(np.float32)


def npy_bytes(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_damage_anywhere_in_a_compressed_file_is_noticed(tmp_path, rng):
    """Also behind the channel that is counted: a stream is read to its check sum."""
    maps = np.zeros((48, 48, 48, 4), np.float32)  # more than a decompressor reads ahead
    maps[..., 1:] = rng.random((48, 48, 48, 3))
    content = gzip.compress(nibabel.Nifti1Image(maps, np.eye(4)).to_bytes(), 1)
    for channel in (0, 3):
        for place in np.linspace(12, len(content) - 1, 30).astype(int):
            damaged = bytearray(content)
            damaged[place] ^= 1 << int(rng.integers(8))
            (tmp_path / "map.nii.gz").write_bytes(damaged)
            with pytest.raises(LesionCountError):
                count_file(tmp_path / "map.nii.gz", channel=channel)
    for end in (-1, -5, -9):
        (tmp_path / "map.nii.gz").write_bytes(content[:end])
        with pytest.raises(MapFileError, match="damaged or truncated"):
            count_file(tmp_path / "map.nii.gz", channel=0)


def test_files_of_several_members_are_read_and_garbage_behind_them_is_not_ignored(tmp_path, probabilities):
    content = nibabel.Nifti1Image(probabilities, np.eye(4)).to_bytes()
    path = tmp_path / "map.nii.gz"
    path.write_bytes(gzip.compress(content[:500]) + gzip.compress(content[500:]))
    np.testing.assert_array_equal(open_map(path).array(), probabilities)
    path.write_bytes(gzip.compress(content) + bytes(512))  # as tape archives pad
    np.testing.assert_array_equal(open_map(path).array(), probabilities)
    path.write_bytes(gzip.compress(content) + b"garbage")
    with pytest.raises(MapFileError, match="damaged or truncated"):
        open_map(path).array()


@pytest.mark.parametrize("ending", KINDS)
def test_pipes_loops_and_long_names(tmp_path, ending):
    os.mkfifo(tmp_path / f"pipe{ending}")
    (tmp_path / f"loop{ending}").symlink_to(tmp_path / f"loop{ending}")
    (tmp_path / f"device{ending}").symlink_to("/dev/zero")
    for name, message in (
        (f"pipe{ending}", "not a regular file"),
        (f"device{ending}", "not a regular file"),
        (f"loop{ending}", "leads nowhere, or to itself|cannot be looked at"),
        ("x" * 300 + ending, "cannot be looked at"),
        (f"none{ending}", "does not exist"),
    ):
        for read in (open_map, fingerprint):
            with pytest.raises(MapFileError, match=message):
                read(tmp_path / name)


def test_a_file_that_shrinks_while_it_is_read(tmp_path):
    """A memory map of it would end the process."""
    np.save(tmp_path / "map.npy", np.zeros((64, 256, 256), np.float32))
    pieces = open_map(tmp_path / "map.npy").pieces()
    next(pieces)
    os.truncate(tmp_path / "map.npy", 1000)
    with pytest.raises(MapFileError, match="is truncated"):
        list(pieces)


@pytest.mark.parametrize("is_fortran", [False, True])
@pytest.mark.parametrize("shape", [(40, 50), (30, 40, 50), (3, 20, 30, 40)])
def test_numpy_arrays_in_pieces(tmp_path, rng, monkeypatch, shape, is_fortran):
    monkeypatch.setattr("lesioncount.files.source.PIECE_BYTES", 5000)
    array = rng.random(shape)
    np.save(tmp_path / "map.npy", np.asfortranarray(array) if is_fortran else array)
    for channel in range(3 if len(shape) == 4 else 1):
        source = open_map(tmp_path / "map.npy", channel=channel)
        expected = array[channel] if len(shape) == 4 else array
        np.testing.assert_array_equal(source.array(), expected)
        assert len(list(source.pieces())) > 1


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4, 2)}", "promises"),  # smaller than the file
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (9000000, 900000, 9000)}", "promises"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (-4, -4, 4)}", "cannot have the shape"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (%s, 1)}" % ("9" * 400), "cannot have the shape"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (%s, 1)}" % ("9" * 4400), "not a numpy file"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (4, 4, 4)}", "pickled Python objects"),
        ("{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (4, 4, 4)}", "pickled Python objects"),
        ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4, 4, 4)}", "cannot be probabilities"),
        ("{'descr': ('<f4', (4,)), 'fortran_order': False, 'shape': (4, 4)}", "cannot be probabilities|not a numpy"),
        ("(" * 3000, "not a numpy file|memory"),
    ],
)
def test_headers_of_arrays(tmp_path, header, message):
    text = header.encode() + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(256)
    (tmp_path / "map.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "map.npz", "w") as archive:
        archive.writestr("p.npy", content)
    for name in ("map.npy", "map.npz"):
        with pytest.raises(MapFileError, match=message):
            open_map(tmp_path / name)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_of_any_compression(tmp_path, rng, method):
    array = rng.random((5, 6, 7)).astype(np.float32)
    path = tmp_path / "map.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("p.npy", npy_bytes(array))
    content = path.read_bytes()
    np.testing.assert_array_equal(open_map(path).array(), array)
    for place in range(40, 600, 9):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with suppress(MapFileError):  # or what was changed says nothing of the voxels, as a number of a version
            np.testing.assert_array_equal(open_map(path).array(), array)


def test_archives_that_are_bombs(tmp_path):
    with zipfile.ZipFile(tmp_path / "map.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("p.npy", npy_bytes(np.zeros((150, 1000, 1000), np.uint8)))
    assert (tmp_path / "map.npz").stat().st_size < 10_000
    with pytest.raises(MapFileError, match="promise to become"):
        open_map(tmp_path / "map.npz")


@pytest.mark.parametrize("n_bytes", [2**32 - 1, 2**31, (1 << 26) + 1])
def test_archives_that_ask_for_more_room_than_a_map_has(tmp_path, n_bytes):
    """LZMA says how much of what came before is to be kept, which is made room for, however short that is."""
    path = tmp_path / "map.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("p.npy", npy_bytes(np.full((5, 6, 7), 0.3, np.float32)))
    content = path.read_bytes()
    at = content.index(b"p.npy") + len("p.npy") + 5  # version, length of the properties, the first of them
    assert content[at : at + 4] == (8 << 20).to_bytes(4, "little")
    path.write_bytes(content[:at] + n_bytes.to_bytes(4, "little") + content[at + 4 :])
    with pytest.raises(MapFileError, match=f"LZMA asks for {n_bytes:,} bytes"):
        open_map(path)


def zarr_of_version_2(folder, **changes):
    meta = {"zarr_format": 2, "shape": [4, 5, 5], "chunks": [4, 5, 5], "dtype": "<f4", "compressor": None, "order": "C"}
    folder.mkdir()
    (folder / ".zarray").write_text(json.dumps(meta | {"filters": None, "fill_value": 0} | changes))
    (folder / "0.0.0").write_bytes(np.full((4, 5, 5), 0.3, np.float32).tobytes())
    return folder


@pytest.mark.parametrize("chunks", [[4, 5, 5], [2**40, 5, 5], [2**20, 5, 5]])
def test_zarr_that_promises_more_than_it_holds(tmp_path, chunks):
    pytest.importorskip("zarr")
    with pytest.raises(MapFileError, match="only 2 files"):
        open_map(zarr_of_version_2(tmp_path / "map.zarr", shape=[2**40, 5, 5], chunks=chunks))


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [64, 4096, 4096], "chunks": [64, 4096, 4096], "remark": "x" * 5000},  # nearly all of it not stored
        {"chunks": [1024, 1024, 1024]},  # far larger than the array
    ],
)
def test_zarr_of_which_gigabytes_must_be_read_at_once(tmp_path, changes):
    pytest.importorskip("zarr")
    with pytest.raises(MapFileError, match="must be read at once"):
        open_map(zarr_of_version_2(tmp_path / "map.zarr", **changes))


def test_zarr_never_unpickles(tmp_path):
    pytest.importorskip("zarr")

    class Bomb:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    for number, codec in enumerate(({"filters": [{"id": "pickle"}]}, {"compressor": {"id": "pickle"}})):
        path = zarr_of_version_2(tmp_path / f"{number}.zarr", **codec)
        (path / "0.0.0").write_bytes(pickle.dumps(Bomb()))
        with pytest.raises(MapFileError, match="pickled Python objects"):
            open_map(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"shape": [' + "9" * 5000 + "]}", "null", "{}", '{"zarr_format": 2}'])
@pytest.mark.parametrize("name", [".zarray", "zarr.json"])
def test_zarr_descriptions(tmp_path, name, text):
    pytest.importorskip("zarr")
    (tmp_path / "map.zarr").mkdir()
    (tmp_path / "map.zarr" / name).write_text(text)
    with pytest.raises(MapFileError, match=r"not a zarr array|not the description"):
        open_map(tmp_path / "map.zarr")


def test_zarr_with_a_pipe_for_a_chunk(tmp_path):
    pytest.importorskip("zarr")
    path = zarr_of_version_2(tmp_path / "map.zarr")
    (path / "0.0.0").unlink()
    os.mkfifo(path / "0.0.0")
    for read in (open_map, fingerprint):
        with pytest.raises(MapFileError, match="not a regular file"):
            read(path)


def test_chunks_that_change_change_the_fingerprint(tmp_path):
    """Even where size and time stay the same."""
    path = zarr_of_version_2(tmp_path / "map.zarr")
    chunk, before = path / "0.0.0", fingerprint(path)
    times = chunk.stat()
    chunk.write_bytes(chunk.read_bytes()[::-1])
    os.utime(chunk, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert fingerprint(path) != before


@pytest.mark.parametrize("name", ["dataset.json", "plans.json"])
@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, "{", b"\xff\xfe"])
def test_json_of_nnunet_that_cannot_be_read(tmp_path, name, text):
    shutil.copytree(FIXTURES / "normal", tmp_path, dirs_exist_ok=True)
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(MapFileError, match=f"{name} beside it is not JSON"):
        open_map(tmp_path / "test_001.npz", channel=1)


@pytest.mark.parametrize("order", [[10**400, 1], ["a", 1], [None, 1], [-1, 2], [1.5, 2], {}, 10**400])
def test_regions_of_nnunet_that_are_no_labels(tmp_path, order):
    shutil.copytree(FIXTURES / "regions", tmp_path, dirs_exist_ok=True)
    content = json.loads((tmp_path / "dataset.json").read_text()) | {"regions_class_order": order}
    (tmp_path / "dataset.json").write_text(json.dumps(content))
    with pytest.raises(MapFileError, match="order of regions"):
        open_map(tmp_path / "test_001.npz", channel=1)


def test_pipes_beside_probabilities_of_nnunet(tmp_path):
    shutil.copy(FIXTURES / "normal" / "test_001.npz", tmp_path / "test_001.npz")
    for name in ("test_001.nii.gz", "dataset.json", "plans.json"):
        os.mkfifo(tmp_path / name)
    assert open_map(tmp_path / "test_001.npz", channel=1).affine is None


def test_segmentations_of_another_shape_are_not_read(tmp_path):
    shutil.copy(FIXTURES / "normal" / "test_001.npz", tmp_path / "test_001.npz")
    nibabel.save(nibabel.Nifti1Image(np.zeros((3, 4, 5), np.uint8), np.eye(4)), tmp_path / "test_001.nii.gz")
    with pytest.raises(MapFileError, match="do not belong together"):
        open_map(tmp_path / "test_001.npz", channel=1)


def test_what_is_read_is_what_is_hashed(tmp_path, probabilities):
    shutil.copytree(FIXTURES / "normal", tmp_path / "nnunet")
    np.save(tmp_path / "map.npy", probabilities)
    nibabel.save(nibabel.Nifti1Image(probabilities, np.eye(4)), tmp_path / "map.nii.gz")
    paths = [tmp_path / "map.npy", tmp_path / "map.nii.gz", tmp_path / "nnunet" / "test_001.npz"]
    for path in paths:
        assert files_of(path) == open_map(path, channel=1 if path.suffix == ".npz" else None).files
    case = tmp_path / "nnunet" / "test_001.npz"
    for file in files_of(case):
        before, content = fingerprint(case), file.read_bytes()
        file.write_bytes(content + b" ")
        assert fingerprint(case) != before
        file.write_bytes(content)
    names = {file.name for file in files_of(case)}
    assert names == {"test_001.npz", "test_001.nii.gz", "dataset.json", "plans.json"}


def test_dicom_headers_that_promise_more_than_there_is(tmp_path, probabilities):
    pytest.importorskip("highdicom")
    from dicom_files import fractional_segmentation
    from pydicom import dcmread

    path, _ = fractional_segmentation(tmp_path, probabilities)
    odd, wide, far = dcmread(path), dcmread(path), dcmread(path)
    odd.SegmentationType = "FRACTIONAX"
    odd.save_as(tmp_path / "odd.dcm")
    with pytest.raises(MapFileError, match="not a DICOM segmentation"):
        open_map(tmp_path / "odd.dcm")
    wide.Rows = wide.Columns = 60_000
    wide.save_as(tmp_path / "wide.dcm")
    with pytest.raises(MapFileError, match="frames do not make a volume"):
        open_map(tmp_path / "wide.dcm")
    far.PerFrameFunctionalGroupsSequence[-1].PlanePositionSequence[0].ImagePositionPatient = [10.0, 20.0, 3e7]
    far.save_as(tmp_path / "far.dcm")
    with pytest.raises(MapFileError, match=r"as far apart as|do not make a volume"):
        open_map(tmp_path / "far.dcm")


def test_inspecting_with_too_little_memory_is_explained(tmp_path):
    path = tmp_path / "map.nii"
    nibabel.save(nibabel.Nifti1Image(np.zeros((1200, 1200, 100), np.uint8), np.eye(4)), path)
    with path.open("r+b") as file:  # one plane of a gigabyte, in a file with holes
        file.seek(40)
        file.write(np.array([3, 32000, 32000, 1, 1, 1, 1, 1], "<i2").tobytes())
        file.truncate(352 + 32000 * 32000)
    code = (
        "import resource, sys; from lesioncount.cli import main; import lesioncount.runs, nibabel\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000,) * 2)\n"
        "sys.exit(main(['inspect', sys.argv[1]]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "memory" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("scale", ["1e99999999", "1/1e99999999", "1" * 5000, "1/" + "7" * 5000, "nan", "inf", "1/0"])
def test_scales_that_are_no_numbers(tmp_path, capsys, scale):
    with pytest.raises(SystemExit):
        main(["count", str(tmp_path), "-o", str(tmp_path / "out"), "--scale", scale])
    assert "not a number such as 0.01 or 1/255" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "value"), [("BitsStored", 1), ("HighBit", 6), ("PixelRepresentation", 1)])
def test_dicom_whose_bytes_are_said_to_be_something_else(tmp_path, probabilities, name, value):
    pytest.importorskip("highdicom")
    from dicom_files import fractional_segmentation
    from pydicom import dcmread

    path, _ = fractional_segmentation(tmp_path, probabilities)
    segmentation = dcmread(path)
    setattr(segmentation, name, value)
    segmentation.save_as(tmp_path / "odd.dcm")
    with pytest.raises(MapFileError, match="unsigned bytes"):
        open_map(tmp_path / "odd.dcm")


def changed_dicom(folder, probabilities, change):
    """A segmentation after a change to its elements."""
    pytest.importorskip("highdicom")
    from dicom_files import fractional_segmentation
    from pydicom import dcmread

    path, _ = fractional_segmentation(folder, probabilities)
    data = dcmread(path)
    change(data)
    data.save_as(folder / "changed.dcm")
    return folder / "changed.dcm"


def test_dicom_frames_of_a_segment_that_is_not_there(tmp_path, probabilities):
    """They were left out without a word, and a scan full of lesions had none."""

    def change(data):
        data.SharedFunctionalGroupsSequence[0].SegmentIdentificationSequence[0].ReferencedSegmentNumber = 2

    with pytest.raises(MapFileError, match=r"belongs to segment 2, but the file has \[1\]"):
        open_map(changed_dicom(tmp_path, probabilities, change))


def test_dicom_that_says_more_frames_than_it_describes(tmp_path, probabilities):
    """Room for all of them took 16 GB."""

    def change(data):
        data.NumberOfFrames = 2**31 - 1

    with pytest.raises(MapFileError, match="2147483647 frames, but describes 6"):
        open_map(changed_dicom(tmp_path, probabilities, change))


def test_dicom_values_above_their_maximum(tmp_path, probabilities):
    def change(data):
        data.MaximumFractionalValue = 100

    with pytest.raises(MapFileError, match="the header says that it is 100"):
        open_map(changed_dicom(tmp_path, probabilities, change))


def test_dicom_frames_with_gigabytes_between_them(tmp_path):
    def change(data):
        data.PerFrameFunctionalGroupsSequence[-1].PlanePositionSequence[0].ImagePositionPatient = [10.0, 20.0, 1230.0]

    with pytest.raises(MapFileError, match="as far apart as 600 slices"):
        open_map(changed_dicom(tmp_path, np.full((2, 1500, 1500), 0.5, np.float32), change))


def test_deflated_dicom_is_read_unless_it_is_a_bomb(tmp_path, probabilities, monkeypatch):
    def deflate(data):
        data.file_meta.TransferSyntaxUID = "1.2.840.10008.1.2.1.99"

    def explode(data):
        deflate(data)
        data.add_new(0x00420011, "OB", bytes(1 << 20))  # an encapsulated document

    path = changed_dicom(tmp_path, probabilities, deflate)
    np.testing.assert_array_equal(open_map(path).array(), open_map(tmp_path / "seg.dcm").array())
    monkeypatch.setattr("lesioncount.files.dicom._MOST_INFLATED", 1 << 19)
    path = changed_dicom(tmp_path, probabilities, explode)
    assert path.stat().st_size < 1 << 14
    with pytest.raises(MapFileError, match="when it is inflated"):
        open_map(path)

"""The SHA-256 of a map is that of all bytes of its file, and is taken while its voxels are read."""

import bz2
import gzip
import hashlib
import threading
import zlib
from pathlib import Path

import nibabel
import numpy as np
import pytest

from lesioncount.errors import MapFileError
from lesioncount.files import open_map
from lesioncount.files.hashed import hashes_of_files_read
from lesioncount.runs import count_batch

VOXELS = np.random.default_rng(5).random((40, 30, 20), np.float32) ** 9
STORED = VOXELS.tobytes(order="F")
NIFTI = nibabel.Nifti1Image(VOXELS, np.eye(4)).to_bytes()


def nrrd(encoding, data):
    fields = f"type: float\ndimension: 3\nsizes: 40 30 20\nendian: little\nencoding: {encoding}\n\n"
    return b"NRRD0004\n" + fields.encode() + data


def meta(is_compressed, data):
    fields = f"NDims = 3\nDimSize = 40 30 20\nElementType = MET_FLOAT\nCompressedData = {is_compressed}\n"
    return f"{fields}ElementDataFile = LOCAL\n".encode() + data


FILES = {
    "map.nii": NIFTI,
    "more_behind.nii": NIFTI + bytes(1000),
    "map.nii.gz": gzip.compress(NIFTI),
    "members.nii.gz": gzip.compress(NIFTI[:5000]) + gzip.compress(NIFTI[5000:]),
    "padded.nii.gz": gzip.compress(NIFTI) + bytes(100),
    "more_behind.nii.gz": gzip.compress(NIFTI + bytes(1000)),
    "raw.nrrd": nrrd("raw", STORED),
    "gzip.nrrd": nrrd("gzip", gzip.compress(STORED)),
    "bzip2.nrrd": nrrd("bzip2", bz2.compress(STORED)),
    "raw.mha": meta("False", STORED),
    "zlib.mha": meta("True", zlib.compress(STORED)),
    "gzip.mha": meta("True", gzip.compress(STORED)),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("n_cores", [1, 2])
def test_all_bytes_of_a_file_are_hashed_while_it_is_read(tmp_path, monkeypatch, name, n_cores):
    monkeypatch.setattr("os.cpu_count", lambda: n_cores)
    path = tmp_path / name
    path.write_bytes(FILES[name])
    with hashes_of_files_read() as hashes:
        np.testing.assert_array_equal(open_map(path).array(), VOXELS)
    assert hashes == {path: hashlib.sha256(FILES[name]).hexdigest()}


@pytest.mark.parametrize("fortran", [False, True])
def test_arrays_are_hashed_with_their_header(tmp_path, fortran):
    path = tmp_path / "map.npy"
    np.save(path, np.asfortranarray(VOXELS) if fortran else VOXELS)
    with hashes_of_files_read() as hashes:
        np.testing.assert_array_equal(open_map(path).array(), VOXELS)
    assert hashes == {path: hashlib.sha256(path.read_bytes()).hexdigest()}


def test_one_of_several_channels_is_hashed_with_all(tmp_path):
    path = tmp_path / "map.nii"
    nibabel.save(nibabel.Nifti1Image(np.stack([VOXELS, VOXELS, VOXELS], axis=3), np.eye(4)), path)
    with hashes_of_files_read() as hashes:
        np.testing.assert_array_equal(open_map(path, channel=1).array(), VOXELS)
    assert hashes == {path: hashlib.sha256(path.read_bytes()).hexdigest()}


@pytest.mark.parametrize("name", ["map.nii", "map.nii.gz"])
def test_a_map_that_is_not_read_to_the_end_has_no_hash(tmp_path, monkeypatch, name):
    monkeypatch.setattr("lesioncount.files.source.PIECE_BYTES", 1 << 12)
    path = tmp_path / name
    path.write_bytes(FILES[name])
    with hashes_of_files_read() as hashes:
        pieces = open_map(path).pieces()
        next(pieces)
        pieces.close()
    assert hashes == {}


def test_a_damaged_map_has_no_hash(tmp_path):
    path = tmp_path / "map.nii.gz"
    path.write_bytes(FILES["map.nii.gz"][:-5])
    with hashes_of_files_read() as hashes, pytest.raises(MapFileError, match="damaged or truncated"):
        open_map(path).array()
    assert hashes == {}


@pytest.fixture
def large(tmp_path, rng):
    """A map that threads work on: one decompresses ahead, another hashes."""
    path = tmp_path / "large.nii.gz"
    nibabel.save(nibabel.Nifti1Image(rng.random((128, 128, 100), np.float32), np.eye(4)), path)
    return path


@pytest.mark.parametrize("n_cores", [1, 2])
def test_threads_change_nothing(large, monkeypatch, n_cores):
    monkeypatch.setattr("os.cpu_count", lambda: n_cores)
    with hashes_of_files_read() as hashes:
        np.testing.assert_array_equal(open_map(large).array(), nibabel.load(large).get_fdata(dtype=np.float32))
    assert hashes == {large: hashlib.sha256(large.read_bytes()).hexdigest()}


def test_threads_end_with_what_they_work_for(large, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    before = threading.active_count()
    with hashes_of_files_read() as hashes:
        pieces = open_map(large).pieces()
        next(pieces)
        assert threading.active_count() > before
        pieces.close()
        assert threading.active_count() == before
        large.write_bytes(large.read_bytes()[:-1000])
        with pytest.raises(MapFileError, match="damaged or truncated"):
            open_map(large).array()
        assert threading.active_count() == before
    assert hashes == {}


def test_nothing_is_hashed_for_who_has_not_asked(tmp_path):
    path = tmp_path / "map.nii.gz"
    path.write_bytes(FILES["map.nii.gz"])
    with hashes_of_files_read() as hashes:
        pass
    open_map(path).array()
    assert hashes == {}


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux tells how much a process has read")
@pytest.mark.parametrize("name", ["map.nii", "map.nii.gz"])
def test_a_run_reads_each_map_and_each_mask_once(tmp_path, rng, name):
    maps, masks = tmp_path / "maps", tmp_path / "masks"
    for folder, values in ((maps, rng.random((128, 128, 64), np.float32) * 0.1), (masks, np.ones((128, 128, 64)))):
        folder.mkdir()
        nibabel.save(nibabel.Nifti1Image(values.astype(np.float32), np.eye(4)), folder / name)
    count_batch([maps], tmp_path / "first", mask=masks)  # whatever is imported late

    before = bytes_read()
    results = count_batch([maps], tmp_path / "second", mask=masks)
    held = sum((folder / name).stat().st_size for folder in (maps, masks))
    assert held <= bytes_read() - before < 1.5 * held
    files = results.scans[0].files
    assert files.sha256 == hashlib.sha256((maps / name).read_bytes()).hexdigest()
    assert files.mask_sha256 == hashlib.sha256((masks / name).read_bytes()).hexdigest()


def bytes_read():
    return int(Path("/proc/self/io").read_text("ascii").split()[1])


def test_a_scan_that_fails_is_known_by_its_hash(tmp_path):
    path = tmp_path / "map.nii.gz"
    path.write_bytes(gzip.compress(nibabel.Nifti1Image(VOXELS * 3, np.eye(4)).to_bytes()))
    [scan] = count_batch([path], tmp_path / "out").scans
    assert "Expected probabilities" in scan.error
    assert scan.files.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()

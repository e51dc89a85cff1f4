"""Chunks that are read without zarr are those that zarr reads; what is not plain is left to it."""

import numpy as np
import pytest

from lesioncount.errors import MapFileError
from lesioncount.files.plain_chunks import PlainChunks
from lesioncount.files.volumes import ChunkedVolume
from lesioncount.sweep.boxes import Box

zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")

SHAPE, CHUNKS = (10, 13, 9), (4, 5, 9)
BOX = (slice(4, 10), slice(0, 13), slice(2, 9))


def array_at(folder, values, chunks=CHUNKS, **how):
    array = zarr.create_array(str(folder / "x.zarr"), shape=values.shape, chunks=chunks, dtype=values.dtype, **how)
    array[...] = values
    return zarr.open_array(str(folder / "x.zarr"), mode="r")


def values_of(rng, dtype):
    return (rng.random(SHAPE) * 200).astype(dtype)


@pytest.mark.parametrize("dtype", ["u1", "<u2", ">i2", "<f4", ">f8", "?"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_every_type_is_read_as_zarr_does(tmp_path, rng, dtype, zarr_format):
    array = array_at(tmp_path, values_of(rng, dtype), zarr_format=zarr_format)
    found = PlainChunks.of(array).read(BOX)
    assert found.dtype == array.dtype
    assert np.array_equal(found, array[BOX])


def test_the_order_of_bytes_is_that_of_the_codec(tmp_path, rng):
    array = array_at(tmp_path, values_of(rng, "f4"), serializer=zarr.codecs.BytesCodec(endian="big"))
    assert np.array_equal(PlainChunks.of(array).read(BOX), array[BOX])


@pytest.mark.parametrize("codec", ["ZstdCodec", "BloscCodec", "GzipCodec", None])
def test_compressions_of_version_3(tmp_path, rng, codec):
    compressors = None if codec is None else getattr(zarr.codecs, codec)()
    array = array_at(tmp_path, values_of(rng, "f4"), compressors=compressors)
    assert np.array_equal(PlainChunks.of(array).read(BOX), array[BOX])


@pytest.mark.parametrize("codec", ["Zstd", "Blosc", "GZip", "Zlib", "LZ4", None])
def test_compressions_of_version_2(tmp_path, rng, codec):
    compressors = None if codec is None else getattr(numcodecs, codec)()
    array = array_at(tmp_path, values_of(rng, "u2"), zarr_format=2, compressors=compressors)
    assert np.array_equal(PlainChunks.of(array).read(BOX), array[BOX])


@pytest.mark.parametrize(
    "how",
    [
        {"shards": (8, 10, 9)},
        {"compressors": [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()]},
        {"filters": zarr.codecs.TransposeCodec(order=(2, 1, 0))},
        {"zarr_format": 2, "order": "F"},
        {"zarr_format": 2, "filters": [numcodecs.Delta(dtype="u1")]},
        {"zarr_format": 2, "compressors": numcodecs.BZ2()},
    ],
)
def test_what_is_not_plain_is_left_to_zarr(tmp_path, rng, how):
    array = array_at(tmp_path, values_of(rng, "u1"), **how)
    assert PlainChunks.of(array) is None
    volume = ChunkedVolume.of(array, name=tmp_path, index=(None,) * 3, names=None)
    assert np.array_equal(volume.read(Box.whole(SHAPE)), array[...])


def test_arrays_in_memory_are_left_to_zarr():
    assert PlainChunks.of(zarr.create_array({}, shape=(4, 4, 4), chunks=(2, 2, 2), dtype="u1")) is None


def test_a_channel_and_an_array_in_a_group(tmp_path, rng):
    group = zarr.create_group(str(tmp_path / "g.zarr"))
    array = group.create_array("inner/0", shape=(3, 10, 6), chunks=(2, 4, 4), dtype="f4")
    array[...] = rng.random(array.shape)
    where = (2, slice(0, 10), slice(4, 6))
    assert np.array_equal(PlainChunks.of(array).read(where), array[where])


def test_a_chunk_that_is_not_stored_is_background(tmp_path):
    array = zarr.create_array(str(tmp_path / "x.zarr"), shape=(8, 8), chunks=(4, 4), dtype="u1", fill_value=7)
    array[:4] = 1
    volume = ChunkedVolume.of(array, name=tmp_path, index=(None, None), names=None)
    assert volume.read(Box.whole((8, 8))).tolist() == array[...].tolist()
    assert volume.read(Box.whole((8, 8)))[7, 7] == 7


@pytest.mark.parametrize("compressors", ["auto", None])
def test_a_damaged_chunk_is_told_by_its_volume(tmp_path, rng, compressors):
    array = array_at(tmp_path, values_of(rng, "u1"), compressors=compressors)
    chunk = tmp_path / "x.zarr" / "c" / "0" / "0" / "0"
    chunk.write_bytes(chunk.read_bytes()[:-3])
    volume = ChunkedVolume.of(array, name=tmp_path / "x.zarr", index=(None,) * 3, names=None)
    with pytest.raises(MapFileError, match=r"x\.zarr: a chunk is damaged"):
        volume.read(Box.whole(SHAPE))


def test_chunks_with_too_many_voxels_are_not_taken(tmp_path, rng):
    array = array_at(tmp_path, values_of(rng, "u1"), compressors=None)
    chunk = tmp_path / "x.zarr" / "c" / "0" / "0" / "0"
    chunk.write_bytes(chunk.read_bytes() * 2)
    with pytest.raises(ValueError, match="as many voxels"):
        PlainChunks.of(array).read((slice(0, 4), slice(0, 5), slice(0, 9)))

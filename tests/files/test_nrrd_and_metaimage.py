"""NRRD and MetaImage: the same voxels in the same places as SimpleITK reads, and headers that lie are refused."""

import bz2
import gzip
import os
import zlib

import numpy as np
import pytest

from lesioncount.errors import ChannelError, MapFileError
from lesioncount.files import open_map
from lesioncount.runs import count_file

VOXELS = np.random.default_rng(5).random((4, 3, 2), np.float32)
STORED = VOXELS.tobytes()
NRRD = {"type": "float", "dimension": "3", "sizes": "2 3 4", "encoding": "raw", "endian": "little"}
META = {"ObjectType": "Image", "NDims": "3", "DimSize": "2 3 4", "ElementType": "MET_FLOAT"}


def nrrd(path, data=STORED, **fields):
    fields = NRRD | {name.replace("_", " "): value for name, value in fields.items()}
    text = "".join(f"{name}: {value}\n" for name, value in fields.items() if value is not None)
    path.write_bytes(f"NRRD0005\n# a comment\n{text}key:=value\n\n".encode() + data)
    return path


def meta(path, data=STORED, ElementDataFile="LOCAL", **fields):  # noqa: N803 - the name of the field
    fields = META | fields | {"ElementDataFile": ElementDataFile}
    text = "".join(f"{name} = {value}\n" for name, value in fields.items() if value is not None)
    path.write_bytes(text.encode() + data)
    return path


def as_itk_reads(path):
    """Voxels, and the affine in RAS millimetres."""
    sitk = pytest.importorskip("SimpleITK")
    image = sitk.ReadImage(str(path))
    n = min(image.GetDimension(), 3)
    affine = np.eye(4)
    direction = np.array(image.GetDirection()).reshape(image.GetDimension(), -1)[:n, :n]
    affine[:n, :n] = direction * np.array(image.GetSpacing()[:n])
    affine[:n, 3] = image.GetOrigin()[:n]
    affine[:2] *= -1
    return sitk.GetArrayFromImage(image).T, affine


@pytest.mark.parametrize("ending", [".nrrd", ".nhdr", ".mha", ".mhd"])
@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("compressed", [False, True])
def test_what_itk_writes(tmp_path, rng, ending, dtype, compressed):
    sitk = pytest.importorskip("SimpleITK")
    image = sitk.GetImageFromArray((rng.random((5, 6, 7)) * 100).astype(dtype))
    turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    image.SetDirection((turned * np.sign(np.linalg.det(turned))).ravel())
    image.SetSpacing((0.5, 1.5, 3))
    image.SetOrigin((1, -2, 3))
    path = tmp_path / f"map{ending}"
    sitk.WriteImage(image, str(path), compressed)
    voxels, affine = as_itk_reads(path)
    np.testing.assert_array_equal(open_map(path).array(), voxels)
    np.testing.assert_allclose(open_map(path).affine, affine, atol=1e-9)
    assert set(open_map(path).files) == set(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [".nrrd", ".nhdr", ".mha", ".mhd"])
@pytest.mark.parametrize("compressed", [False, True])
def test_series_and_vectors_are_channels(tmp_path, rng, ending, compressed):
    sitk = pytest.importorskip("SimpleITK")
    path = tmp_path / f"map{ending}"
    series = rng.random((3, 5, 6, 7)).astype(np.float32)
    sitk.WriteImage(sitk.GetImageFromArray(series, isVector=False), str(path), compressed)
    for channel in range(3):
        np.testing.assert_array_equal(open_map(path, channel=channel).array(), series[channel].T)
    sitk.WriteImage(sitk.GetImageFromArray(np.moveaxis(series, 0, -1), isVector=True), str(path), compressed)
    for channel in range(3):
        np.testing.assert_array_equal(open_map(path, channel=channel).array(), series[channel].T)
    with pytest.raises(ChannelError, match="holds 3 channels"):
        open_map(path)


@pytest.mark.parametrize(
    "fields",
    [
        {"ElementSize": "2 3 4"},
        {"ElementSpacing": "1 1 2", "ElementSize": "2 3 4"},
        {"Position": "1 2 3", "Orientation": "0 1 0 1 0 0 0 0 -1"},
        {"Origin": "1 2 3", "Rotation": "0 1 0 0 0 1 1 0 0"},
        {"HeaderSize": "-1"},
        {"ElementType": "MET_LONG"},
        {"ElementType": "MET_USHORT", "ElementByteOrderMSB": "True"},
    ],
)
def test_metaimages_of_others(tmp_path, fields):
    path = meta(tmp_path / "map.mha", **fields)
    voxels, affine = as_itk_reads(path)
    np.testing.assert_array_equal(open_map(path).array(), voxels)
    np.testing.assert_allclose(open_map(path).affine, affine)


@pytest.mark.parametrize(
    "fields",
    [
        {"space": "right-anterior-superior", "space directions": "(1,2,0) (0,1,0) (0,0,3)", "space origin": "(1,2,3)"},
        {"space": "LAS", "space directions": "(1,0,0) (0,0,1) (0,2,0)", "space origin": "(1,2,3)"},
        {"space": "scanner-xyz", "space directions": "(1,0,0) (0,0,1) (0,2,0)"},
        {"space dimension": "3", "space directions": "(1,0,0) (0,0,1) (0,2,0)"},
    ],
)
def test_spaces_of_nrrd(tmp_path, fields):
    path = nrrd(tmp_path / "map.nrrd", **fields)
    voxels, affine = as_itk_reads(path)
    np.testing.assert_array_equal(open_map(path).array(), voxels)
    np.testing.assert_allclose(open_map(path).affine, affine, atol=1e-6)


def test_nrrd_without_a_space_has_sizes_at_most(tmp_path):
    source = open_map(nrrd(tmp_path / "map.nrrd", spacings="1 2 3"))
    assert (source.affine, source.spacing_mm) == (None, (1, 2, 3))
    assert open_map(nrrd(tmp_path / "map.nrrd")).spacing_mm is None


@pytest.mark.parametrize(
    ("fields", "data"),
    [
        ({"encoding": "gzip"}, gzip.compress(VOXELS.tobytes())),
        ({"encoding": "bz2"}, bz2.compress(VOXELS.tobytes())),
        ({"encoding": "gzip", "byte skip": "3"}, gzip.compress(b"abc" + VOXELS.tobytes())),
        ({"byte skip": "3"}, b"abc" + VOXELS.tobytes()),
        ({"byte skip": "-1"}, b"whatever" + VOXELS.tobytes()),
        ({"line skip": "2"}, b"one\ntwo\n" + VOXELS.tobytes()),
        ({"endian": "big"}, VOXELS.astype(">f4").tobytes()),
    ],
)
def test_encodings_of_nrrd(tmp_path, fields, data):
    np.testing.assert_array_equal(open_map(nrrd(tmp_path / "map.nrrd", data, **fields)).array(), VOXELS.T)


@pytest.mark.parametrize("kinds", ["list domain domain", "domain list domain", "domain domain list"])
def test_channels_on_any_axis_of_nrrd(tmp_path, kinds):
    path = nrrd(tmp_path / "map.nrrd", kinds=kinds)
    at = kinds.split().index("list")
    for channel in range(VOXELS.T.shape[at]):
        np.testing.assert_array_equal(open_map(path, channel=channel).array(), VOXELS.T.take(channel, at))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sizes": "900000000 1 1"}, "header promises"),
        ({"encoding": "gzip", "sizes": "900000000 1 1"}, "header promises"),
        ({"sizes": "2 3 99999999999999999999"}, "whole numbers as sizes"),
        ({"sizes": "2 3 -4"}, "two or three axes"),
        ({"sizes": "24", "dimension": "1"}, "two or three axes"),
        ({"dimension": str(2**64 - 1)}, "whole numbers as dimension"),
        ({"dimension": "4"}, "has 3 sizes"),
        ({"type": "block"}, "cannot be probabilities"),
        ({"encoding": "hex"}, "raw, gzip or bzip2"),
        ({"endian": None}, "endian"),
        ({"sizes": None}, "no field 'sizes'"),
        ({"byte skip": "-2"}, "cannot be"),
        ({"line skip": "9"}, "9 lines before"),
        ({"kinds": "domain"}, "for each of 3 axes"),
        ({"kinds": "list list domain"}, "at most one axis"),
        ({"space": "LPS", "space directions": "(1,0,0) (0,1,0) (0,0,nan)"}, "numbers as space directions"),
        ({"space": "LPS", "space directions": "(1,0,0) (0,1,0) (0,0)"}, "do not fit together"),
        ({"space": "LPS", "space directions": "(1,0,0) (0,1,0) (0,0,0)"}, "does not place"),
        ({"spacings": "1 2 -3"}, "above 0"),
        ({"Sizes": "1 1 1"}, "two fields"),
        ({"data file": "map.nrrd/../x"}, "in the same folder"),
        ({"content": "a\nline of its own"}, "a line that is no field of NRRD, 'line of its own'"),
        ({"spcings": "1 1 2"}, "a line that is no field of NRRD, 'spcings: 1 1 2'"),
    ],
)
def test_nrrd_headers_that_cannot_be(tmp_path, fields, message):
    with pytest.raises(MapFileError, match=message):
        open_map(nrrd(tmp_path / "map.nrrd", **fields), channel=0)


def test_long_fields_of_nrrd(tmp_path):
    assert open_map(nrrd(tmp_path / "map.nrrd", space="x" * 5000)).shape == (2, 3, 4)
    with pytest.raises(MapFileError, match="does not end within"):
        open_map(nrrd(tmp_path / "map.nrrd", space="x" * 500_000))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"NDims": str(2**64 - 1)}, "whole numbers as NDims"),
        ({"NDims": "2"}, "NDims is 2"),
        ({"NDims": None}, "no field NDims"),
        ({"DimSize": "900000000 1 1"}, "header promises"),
        ({"DimSize": "900000000 1 1", "CompressedData": "True"}, "header promises"),
        ({"ElementType": "MET_STRING"}, "cannot be probabilities"),
        ({"ElementNumberOfChannels": "0"}, "axes with voxels"),
        ({"ElementNumberOfChannels": "99999999"}, "header promises"),
        ({"DimSize": "2 3 2 2", "NDims": "4", "ElementNumberOfChannels": "2"}, "got both"),
        ({"BinaryData": "False"}, "stored as text"),
        ({"BinaryData": "perhaps"}, "True or False"),
        ({"CompressedData": "TruansformMatrix = 1 0 0 1"}, "True or False"),
        ({"HeaderSize": "-7"}, "HeaderSize of -7"),
        ({"ElementSpacing": "1 1"}, "expected 3 numbers"),
        ({"ElementSpacing": "1 1 inf"}, "numbers as ElementSpacing"),
        ({"ElementSpacing": "1 1 0"}, "does not place"),
        ({"NDims ": "3"}, "two fields"),
        ({"Comment": "a\nline of its own"}, "a line without a field, 'line of its own'"),
        ({"CompressedData": "True", "CompressedDataSize": "12"}, "take 12 bytes, but there are 96"),
        ({"CompressedData": "True", "CompressedDataSize": "0"}, "take 0 bytes, but there are 96"),
        ({"CompressedData": "True", "CompressedDataSize": "96 1 0 0"}, "expected 1 numbers"),
    ],
)
def test_metaimage_headers_that_cannot_be(tmp_path, fields, message):
    with pytest.raises(MapFileError, match=message):
        open_map(meta(tmp_path / "map.mha", **fields), channel=0)


NAMES = [
    "%n%n%s",
    "slice%03d.raw 1 4 1",
    "LIST",
    "LIST 2",
    "/etc/passwd",
    "../map.raw",
    "sub/map.raw",
    "..",
    "",
    "a\\b",
    "x" * 300,
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ending", [".nhdr", ".mhd"])
def test_voxels_are_in_one_file_beside_the_header(tmp_path, name, ending):
    write, field = (nrrd, "data file") if ending == ".nhdr" else (meta, "ElementDataFile")
    with pytest.raises(MapFileError, match="in one file in the same folder"):
        open_map(write(tmp_path / f"map{ending}", b"", **{field: name}))


def test_voxels_that_are_not_there_or_no_file(tmp_path):
    path = meta(tmp_path / "map.mhd", b"", ElementDataFile="map.raw")
    with pytest.raises(MapFileError, match=r"map\.raw does not exist"):
        open_map(path)
    os.mkfifo(tmp_path / "map.raw")
    with pytest.raises(MapFileError, match="not a regular file"):
        open_map(path)


def test_damaged_streams(tmp_path, rng):
    noise = rng.random((4, 3, 2)).astype(np.float32).tobytes()
    for write, name, data, fields in (
        (nrrd, "g.nrrd", gzip.compress(noise), {"encoding": "gzip"}),
        (nrrd, "b.nrrd", bz2.compress(noise), {"encoding": "bzip2"}),
        (meta, "z.mha", zlib.compress(noise), {"CompressedData": "True"}),
    ):
        for place in range(11, len(data) - 1):
            damaged = data[:place] + bytes([data[place] ^ 8]) + data[place + 1 :]
            with pytest.raises(MapFileError, match="truncated"):
                open_map(write(tmp_path / name, damaged, **fields)).array()
        with pytest.raises(MapFileError, match="truncated"):
            open_map(write(tmp_path / name, data[:-3], **fields)).array()


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("bzip2", bz2.compress)])
def test_a_map_without_lesions_may_be_packed_very_small(tmp_path, encoding, pack):
    empty = pack(bytes(4 * 128 * 256 * 256))
    path = nrrd(tmp_path / "map.nrrd", empty, encoding=encoding, sizes="256 256 128")
    assert path.stat().st_size < 40_000
    assert len(count_file(path).result.candidates) == 0


@pytest.mark.parametrize("size", [None, "{}", "{:.6g}"])
def test_compressed_size_of_metaimage_may_be_left_out_or_rounded(tmp_path, rng, size):
    voxels = rng.random((50, 60, 70))
    data = zlib.compress(voxels.tobytes())
    fields = {"DimSize": "70 60 50", "ElementType": "MET_DOUBLE", "CompressedData": "True"}
    said = None if size is None else size.format(len(data))
    path = meta(tmp_path / "map.mha", data, CompressedDataSize=said, **fields)
    np.testing.assert_array_equal(open_map(path).array(), voxels.T)


@pytest.mark.parametrize("ending", [".nrrd", ".nhdr", ".mha", ".mhd"])
def test_changed_voxels_in_another_file_are_counted_again(tmp_path, ending):
    """Also where the header is one that usually has its voxels inside, or has a tab before the equals sign."""
    from lesioncount.cohort.item import fingerprint

    is_nrrd = ending in (".nrrd", ".nhdr")
    path = (nrrd if is_nrrd else meta)(
        tmp_path / f"map{ending}", b"", **{"data file" if is_nrrd else "ElementDataFile": "map.raw"}
    )
    path.write_bytes(path.read_bytes().replace(b"ElementDataFile =", b"ElementDataFile\t="))
    (tmp_path / "map.raw").write_bytes(VOXELS.tobytes())
    before = fingerprint(path)
    np.testing.assert_array_equal(open_map(path).array(), VOXELS.T)
    (tmp_path / "map.raw").write_bytes((VOXELS / 2).tobytes())
    assert fingerprint(path) != before
    assert len(count_file(path).result.candidates) > 0

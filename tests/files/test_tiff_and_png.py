"""Microscopy's formats: TIFF stacks with their voxel size, page by page, and PNG with a scale."""

import io
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lesioncount as lc
from lesioncount.cli import main
from lesioncount.errors import ChannelError, MapError, MapFileError, MissingExtraError
from lesioncount.files import open_map
from lesioncount.files.formats import scan_name
from lesioncount.runs import count_file

tifffile = pytest.importorskip("tifffile", reason="needs the extra [tiff]")
Image = pytest.importorskip("PIL.Image", reason="needs the extra [tiff]")

OME_SIZE = {f"PhysicalSize{axis}": size for axis, size in zip("ZYX", (2.0, 0.5, 0.25), strict=True)}


@pytest.fixture
def probabilities(rng):
    return (rng.random((7, 20, 24)) ** 8).astype(np.float32)


def assert_counts_as(path, probabilities, **options):
    expected = lc.count_lesions(probabilities, spacing_mm=open_map(path, channel=options.get("channel")).spacing_mm)
    found = count_file(path, keep_runs=True, **options)
    np.testing.assert_allclose(found.result.existence, expected.existence, atol=1e-7)
    np.testing.assert_array_equal(found.result.candidates.label_map(), expected.candidates.label_map())


@pytest.mark.parametrize("ndim", [2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"metadata": None},
        {"bigtiff": True},
        {"byteorder": ">"},
        {"ome": True},
        {"imagej": True},
        {"tile": (16, 16)},
        {"rowsperstrip": 3},
        {"compression": "zlib"},
        {"compression": "zlib", "predictor": True, "tile": (16, 16)},
        {"compression": "lzw", "predictor": True},
        {"compression": "lzw", "byteorder": ">", "metadata": None},
        {"compression": "zstd"},
        {"compression": "packbits"},
    ],
    ids=lambda options: " ".join(options) or "plain",
)
def test_stacks_in_every_form(tmp_path, probabilities, options, ndim):
    values = probabilities if ndim == 3 else probabilities[0]
    path = tmp_path / "map.tif"
    tifffile.imwrite(path, values, photometric="minisblack", **({"metadata": {"axes": "ZYX"[-ndim:]}} | options))
    source = open_map(path)
    assert (source.shape, source.format, source.dtype.kind) == (values.shape, "TIFF", "f")
    np.testing.assert_array_equal(source.array(), values)
    assert_counts_as(path, values)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.uint8, np.uint16, np.bool_])
@pytest.mark.parametrize("compression", [None, "zlib"])
@pytest.mark.filterwarnings("ignore:This map is binary")
def test_types(tmp_path, probabilities, dtype, compression):
    most = 1 if np.dtype(dtype).kind in "fb" else np.iinfo(dtype).max
    values = (probabilities > 0.4) if dtype is np.bool_ else np.round(probabilities * most, 6 if most == 1 else 0)
    values = values.astype(dtype)
    path = tmp_path / "map.tif"
    tifffile.imwrite(path, values, compression=compression, photometric="minisblack")
    np.testing.assert_array_equal(open_map(path).array(), values)
    assert_counts_as(path, values / np.float64(most) if most > 1 else values, scale=None if most == 1 else 1 / most)


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_ome_brings_its_voxel_size(tmp_path, probabilities, compression):
    path = tmp_path / "cells.ome.tif"
    tifffile.imwrite(path, probabilities, metadata={"axes": "ZYX"} | OME_SIZE, compression=compression)
    np.testing.assert_allclose(open_map(path).spacing_mm, (2e-3, 0.5e-3, 0.25e-3))
    assert scan_name(path) == "cells"
    assert_counts_as(path, probabilities)
    named = OME_SIZE | {f"PhysicalSize{axis}Unit": "mm" for axis in "ZYX"}
    tifffile.imwrite(path, probabilities, metadata={"axes": "ZYX"} | named)
    np.testing.assert_allclose(open_map(path).spacing_mm, (2, 0.5, 0.25))
    count = count_file(path, min_volume_mm3=0.5)
    np.testing.assert_allclose(count.result.candidates.volume_mm3, count.result.candidates.n_voxels * 0.25)


@pytest.mark.parametrize("metadata", [{}, {"PhysicalSizeX": 0.5}, OME_SIZE | {"PhysicalSizeZUnit": "pixel"}])
def test_a_size_that_is_not_said_for_all_axes_is_none(tmp_path, probabilities, metadata):
    tifffile.imwrite(tmp_path / "map.ome.tif", probabilities, metadata={"axes": "ZYX"} | metadata)
    assert open_map(tmp_path / "map.ome.tif").spacing_mm is None


@pytest.mark.parametrize(
    ("unit", "mm"), [("um", 1e-3), ("micron", 1e-3), ("\\u00B5m", 1e-3), ("mm", 1.0), ("inch", 25.4)]
)
def test_imagej_brings_its_voxel_size(tmp_path, probabilities, unit, mm):
    path = tmp_path / "map.tif"
    options, axes = {"imagej": True, "resolution": (4.0, 2.0)}, {"axes": "ZYX"}
    tifffile.imwrite(path, probabilities, metadata=axes | {"unit": unit, "spacing": 3.0}, **options)
    np.testing.assert_allclose(open_map(path).spacing_mm, np.array([3, 0.5, 0.25]) * mm)
    tifffile.imwrite(path, probabilities, metadata=axes | {"unit": unit}, **options)  # ImageJ leaves out a spacing of 1
    np.testing.assert_allclose(open_map(path).spacing_mm, np.array([1, 0.5, 0.25]) * mm)
    tifffile.imwrite(path, probabilities, metadata=axes | {"unit": "pixel"}, **options)
    assert open_map(path).spacing_mm is None


def test_tags_have_the_size_of_a_plane_in_centimetres_but_not_in_dots_per_inch(tmp_path, probabilities):
    path = tmp_path / "map.tif"
    tifffile.imwrite(path, probabilities[0], resolution=(100.0, 50.0), resolutionunit="CENTIMETER")
    np.testing.assert_allclose(open_map(path).spacing_mm, (0.2, 0.1))
    tifffile.imwrite(path, probabilities[0], resolution=(72.0, 72.0), resolutionunit="INCH")
    assert open_map(path).spacing_mm is None
    tifffile.imwrite(path, probabilities, resolution=(100.0, 50.0), resolutionunit="CENTIMETER")
    assert open_map(path).spacing_mm is None  # nothing is said of the third axis


@pytest.mark.parametrize("compression", [None, "zlib"])
@pytest.mark.parametrize("axes", ["CZYX", "ZCYX", "TZYX", "CYX", "ZYXS"])
def test_one_of_several_channels(tmp_path, probabilities, axes, compression):
    maps = np.stack([probabilities, probabilities[::-1], probabilities * 0.5])  # channels first
    if "Z" not in axes:
        maps = maps[:, 0]
    order = [
        "CZYX".replace("C", next(a for a in axes if a not in "ZYX")).replace("Z", "Z" if "Z" in axes else "").index(a)
        for a in axes
    ]
    photometric = "rgb" if "S" in axes else "minisblack"
    path = tmp_path / "map.tif"
    tifffile.imwrite(
        path, maps.transpose(order), metadata={"axes": axes}, photometric=photometric, compression=compression
    )
    with pytest.raises(ChannelError, match=r"holds 3 channels, 0 to 2.*--channel N"):
        open_map(path)
    for channel in range(3):
        source = open_map(path, channel=channel)
        np.testing.assert_array_equal(source.array(), maps[channel])
    assert source.n_channels == 3


def test_more_axes_than_a_map_has(tmp_path):
    tifffile.imwrite(tmp_path / "map.ome.tif", np.zeros((2, 3, 4, 8, 9), np.float32), metadata={"axes": "TCZYX"})
    with pytest.raises(MapFileError, match="but this file has TCZYX of lengths"):
        open_map(tmp_path / "map.ome.tif")


def test_several_images_in_a_file(tmp_path):
    with tifffile.TiffWriter(tmp_path / "map.tif") as writer:
        writer.write(np.zeros((8, 9), np.float32))
        writer.write(np.zeros((3, 4), np.float32))
    with pytest.raises(MapFileError, match="holds 2 images, of shapes"):
        open_map(tmp_path / "map.tif")


@given(data=st.data())
@settings(max_examples=40)
def test_any_stack_counts_as_its_array(tmp_path_factory, data):
    shape = data.draw(st.tuples(*[st.integers(2, 9)] * data.draw(st.sampled_from((2, 3)))))
    values = np.random.default_rng(data.draw(st.integers(0, 99))).random(shape).astype(np.float32) ** 3
    path = tmp_path_factory.mktemp("any") / "map.tif"
    options = data.draw(st.sampled_from(({}, {"ome": True}, {"compression": "zlib"}, {"tile": (16, 16)})))
    tifffile.imwrite(path, values, photometric="minisblack", metadata={"axes": "ZYX"[-len(shape) :]}, **options)
    np.testing.assert_array_equal(count_file(path).result.existence, lc.count_lesions(values).existence)


def test_an_axis_that_is_not_said_to_be_depth_is_one_of_channels(tmp_path, probabilities):
    tifffile.imwrite(tmp_path / "map.tif", probabilities, imagej=True)  # which are 7 channels, by default
    with pytest.raises(ChannelError, match="holds 7 channels"):
        open_map(tmp_path / "map.tif")


def test_a_stack_of_one_plane(tmp_path, probabilities):
    tifffile.imwrite(tmp_path / "map.tif", probabilities[:1], metadata={"axes": "ZYX"}, compression="zlib")
    np.testing.assert_array_equal(open_map(tmp_path / "map.tif").array(), probabilities[0])


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_a_stack_is_never_in_memory(tmp_path, compression):
    """A process that may have a quarter of the stack more than it has at its start counts it."""
    plane = np.zeros((1024, 1024), np.float32)
    plane[500, 500] = 0.7
    planes = (plane for _ in range(80))  # 320 MB
    options = {"shape": (80, 1024, 1024), "dtype": np.float32, "photometric": "minisblack"}
    tifffile.imwrite(tmp_path / "map.tif", planes, compression=compression, **options)
    code = (
        "import resource, sys\n"
        "from lesioncount.runs import count_file\n"
        "import tifffile, imagecodecs\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "n = len(count_file(sys.argv[1]).result.candidates)\n"
        "print(n, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "map.tif")], capture_output=True, text=True, check=True
    )
    n, megabytes = map(int, done.stdout.split())
    assert n == 1
    assert megabytes < 80


class TestDamage:
    def content(self, values, **options):
        stream = io.BytesIO()
        tifffile.imwrite(stream, values, photometric="minisblack", **options)
        return stream.getvalue()

    def entry(self, content, tag):
        """Where an entry of the first directory is."""
        (at,) = struct.unpack_from("<I", content, 4)
        (n,) = struct.unpack_from("<H", content, at)
        return next(
            place
            for place in range(at + 2, at + 2 + 12 * n, 12)
            if content[place : place + 2] == struct.pack("<H", tag)
        )

    def changed(self, content, tag, value, *, count=None):
        at = self.entry(content, tag)
        head = content[at + 2 : at + 8] if count is None else content[at + 2 : at + 4] + struct.pack("<I", count)
        kind = struct.unpack_from("<H", content, at + 2)[0]
        packed = struct.pack("<H", value) + b"\0\0" if kind == 3 else struct.pack("<I", value)
        return content[: at + 2] + head + packed + content[at + 12 :]

    @pytest.mark.parametrize("options", [{}, {"compression": "zlib"}, {"compression": "zlib", "tile": (16, 16)}])
    @pytest.mark.parametrize("tag", [256, 257])
    def test_planes_that_promise_gigabytes_are_refused_before_there_is_room_for_them(
        self, tmp_path, probabilities, options, tag
    ):
        content = self.changed(self.content(probabilities[0], metadata=None, **options), tag, 2**31 - 1)
        (tmp_path / "map.tif").write_bytes(content)
        with pytest.raises(MapFileError):
            count_file(tmp_path / "map.tif")

    def test_a_directory_that_leads_to_itself(self, tmp_path, probabilities):
        content = bytearray(self.content(probabilities[0], metadata=None))
        (at,) = struct.unpack_from("<I", content, 4)
        (n,) = struct.unpack_from("<H", content, at)
        content[at + 2 + 12 * n : at + 6 + 12 * n] = struct.pack("<I", at)
        (tmp_path / "map.tif").write_bytes(content)
        with pytest.raises(MapFileError, match="lead in a circle"):
            open_map(tmp_path / "map.tif")

    def test_values_that_no_file_holds(self, tmp_path, probabilities):
        content = self.changed(self.content(probabilities[0], metadata=None), 273, 8, count=2**32 - 1)
        (tmp_path / "map.tif").write_bytes(content)
        with pytest.raises(MapFileError, match="promises 4,294,967,295 values, more than it can hold"):
            open_map(tmp_path / "map.tif")

    @pytest.mark.parametrize("options", [{}, {"compression": "zlib"}, {"compression": "lzw"}])
    def test_a_file_that_is_cut_off_anywhere_is_refused_unless_all_voxels_are_there(
        self, tmp_path, probabilities, options
    ):
        content = self.content(probabilities, **options)
        refused = 0
        for end in np.linspace(1, len(content) - 5, 25).astype(int):
            (tmp_path / "map.tif").write_bytes(content[:end])
            try:
                found = open_map(tmp_path / "map.tif").array()
            except MapFileError as error:
                assert "truncated" in str(error) or "damaged" in str(error)  # noqa: PT017 - or no voxel is missing
                refused += 1
            else:
                np.testing.assert_array_equal(found, probabilities)
        assert refused >= 20

    def test_planes_that_are_stored_in_different_ways(self, tmp_path, probabilities):
        """Read as the first one, they would be other voxels."""
        content = self.content(probabilities, compression="zlib", predictor=True)
        (tmp_path / "map.tif").write_bytes(self.changed(content, 317, 1))
        with pytest.raises(MapFileError, match="plane 1 is stored in another way than the first"):
            open_map(tmp_path / "map.tif")

    def test_planes_that_are_not_part_of_the_image(self, tmp_path, probabilities):
        """Where the first plane does not fit its description, tifffile takes it alone, and says so in a log."""
        (tmp_path / "map.tif").write_bytes(self.changed(self.content(probabilities), 262, 2))
        with pytest.raises(MapFileError, match="has 7 planes, but its image, of shape"):
            count_file(tmp_path / "map.tif")

    def test_planes_that_do_not_follow_each_other(self, tmp_path, probabilities):
        content = self.content(probabilities)
        (at,) = struct.unpack_from("<I", content, self.entry(content, 273) + 8)
        (tmp_path / "map.tif").write_bytes(self.changed(content, 273, at + 16))
        with pytest.raises(MapFileError, match="does not follow the one before"):
            count_file(tmp_path / "map.tif")

    def test_a_strip_that_becomes_far_more_than_it_should(self, tmp_path, monkeypatch):
        monkeypatch.setattr("lesioncount.files.tiff._MOST_INFLATED", 1 << 16)
        values = np.zeros((8, 128), np.float32)
        content = self.content(values, metadata=None, compression="zlib")
        bomb = zlib.compress(bytes(1 << 22))
        content = self.changed(self.changed(content, 273, len(content)), 279, len(bomb)) + bomb
        (tmp_path / "map.tif").write_bytes(content)
        with pytest.raises(MapFileError, match="a strip becomes more than 4,096 bytes"):
            open_map(tmp_path / "map.tif")

    def test_other_files_that_are_named_are_not_opened(self, tmp_path, probabilities):
        """OME-XML may say that planes are in another file."""
        tifffile.imwrite(tmp_path / "other.ome.tif", probabilities, metadata={"axes": "ZYX", "UUID": "urn:uuid:1"})
        content = self.content(probabilities, ome=True, metadata={"axes": "ZYX"}, compression="zlib")
        assert b"<TiffData" in content
        at = content.index(b"<TiffData")
        end = content.index(b">", at) + 1
        xml_end = content.index(b"\0", at)
        elsewhere = b'<TiffData FirstZ="1" IFD="0"><UUID FileName="other.ome.tif">urn:uuid:1</UUID></TiffData>'
        xml = content[content.rindex(b"<?xml", 0, at) : at] + b'<TiffData IFD="0" PlaneCount="1"/>' + elsewhere
        xml += content[end:xml_end]
        at_entry = self.entry(content, 270)
        moved = content[: at_entry + 4] + struct.pack("<II", len(xml) + 1, len(content)) + content[at_entry + 12 :]
        (tmp_path / "map.ome.tif").write_bytes(moved + xml + b"\0")
        with pytest.raises(MapFileError, match=r"is missing|do not make an image|cannot be understood"):
            open_map(tmp_path / "map.ome.tif")

    def test_numbers_that_stand_for_nothing_known_are_no_map(self):
        with pytest.raises(MapFileError, match="what its numbers stand for"):
            open_map(Path(__file__).parents[1] / "fuzz_corpus" / "maps" / "damaged_colours.tif")

    def test_a_palette_is_no_map(self, tmp_path):
        table = np.zeros((3, 256), np.uint16)
        tifffile.imwrite(tmp_path / "map.tif", np.zeros((8, 9), np.uint8), photometric="palette", colormap=table)
        with pytest.raises(MapFileError, match="stand for colours"):
            open_map(tmp_path / "map.tif")

    def test_something_else_is_no_tiff(self, tmp_path):
        for content in (b"II", b"nothing at all, but long enough", b"II*\0" + bytes(4), b"II*\0\xff\xff\xff\xff"):
            (tmp_path / "map.tif").write_bytes(content)
            with pytest.raises(MapFileError, match=r"TIFF|truncated"):
                open_map(tmp_path / "map.tif")

    def test_the_reader_says_nothing_by_itself(self, tmp_path, probabilities, capfd):
        (tmp_path / "map.tif").write_bytes(self.content(probabilities)[:1000])
        assert main(["count", str(tmp_path / "map.tif"), "-o", str(tmp_path / "out")]) == 1
        assert capfd.readouterr().err.count("\n") <= 2


class TestScale:
    @pytest.mark.parametrize(("dtype", "most"), [(np.uint8, 255), (np.uint16, 65535)])
    @pytest.mark.parametrize("ending", [".png", ".tif"])
    def test_pictures_need_a_scale(self, tmp_path, probabilities, dtype, most, ending, capsys):
        stored = np.round(probabilities[0] * most).astype(dtype)
        path = tmp_path / f"map{ending}"
        Image.fromarray(stored).save(path) if ending == ".png" else tifffile.imwrite(path, stored)
        with pytest.raises(
            MapError, match=rf"whole numbers up to {most}.*--scale 1/{most} \(from Python: scale=1/{most}"
        ):
            count_file(path)
        assert_counts_as(path, stored / np.float64(most), scale=1 / most)
        assert main(["count", str(path), "-o", str(tmp_path / "out"), "--scale", f"1/{most}", "--quiet"]) == 0
        assert main(["inspect", str(path)]) == 1
        assert f"--scale 1/{most}" in capsys.readouterr().out

    def test_a_faint_picture_does_not_pass_for_a_mask(self, tmp_path):
        Image.fromarray(np.eye(9, dtype=np.uint8)).save(tmp_path / "map.png")
        with pytest.raises(MapError, match="--scale 1/255"):
            count_file(tmp_path / "map.png")
        assert len(count_file(tmp_path / "map.png", scale=1 / 255).result.candidates) == 0

    def test_the_scale_the_other_way_round_is_guessed(self, tmp_path):
        Image.fromarray(np.full((9, 9), 200, np.uint8)).save(tmp_path / "map.png")
        with pytest.raises(MapError, match="computed with scale=255: is it the right one"):
            count_file(tmp_path / "map.png", scale=255)

    def test_masks_need_none(self, tmp_path, probabilities):
        np.save(tmp_path / "map.npy", probabilities[0])
        mask = np.zeros(probabilities[0].shape, np.uint8)
        mask[:10] = 255
        Image.fromarray(mask).save(tmp_path / "mask.png")
        found = count_file(tmp_path / "map.npy", mask=tmp_path / "mask.png").result
        np.testing.assert_array_equal(found.existence, lc.count_lesions(probabilities[0], mask=mask).existence)


class TestPng:
    def test_colours_are_channels(self, tmp_path, probabilities):
        stored = np.round(probabilities[:3] * 255).astype(np.uint8)
        Image.fromarray(np.moveaxis(stored, 0, -1)).save(tmp_path / "map.png")
        with pytest.raises(ChannelError, match="holds 3 channels"):
            open_map(tmp_path / "map.png")
        for channel in range(3):
            np.testing.assert_array_equal(open_map(tmp_path / "map.png", channel=channel).array(), stored[channel])

    def test_black_and_white(self, tmp_path, probabilities):
        Image.fromarray(probabilities[0] > 0.5).save(tmp_path / "map.png")
        source = open_map(tmp_path / "map.png")
        assert (source.dtype, source.full_scale) == (np.bool_, None)
        np.testing.assert_array_equal(source.array(), probabilities[0] > 0.5)

    def test_pictures_that_are_no_maps(self, tmp_path):
        Image.fromarray(np.zeros((4, 5), np.uint8)).convert("P").save(tmp_path / "palette.png")
        with pytest.raises(MapFileError, match="palette of colours"):
            open_map(tmp_path / "palette.png")

    def test_every_flipped_bit_is_noticed(self, tmp_path, probabilities, rng):
        stream = io.BytesIO()
        Image.fromarray(np.round(probabilities[0] * 255).astype(np.uint8)).save(stream, "PNG")
        content = stream.getvalue()
        for place in np.linspace(0, len(content) - 1, 60).astype(int):
            damaged = bytearray(content)
            damaged[place] ^= 1 << int(rng.integers(8))
            (tmp_path / "map.png").write_bytes(damaged)
            with pytest.raises(MapFileError, match=r"damaged|truncated|promises|not a PNG|palette"):
                count_file(tmp_path / "map.png", scale=1 / 255)
        for end in (1, 20, 40, len(content) - 13, len(content) - 1):
            (tmp_path / "map.png").write_bytes(content[:end])
            with pytest.raises(MapFileError):
                open_map(tmp_path / "map.png")

    @pytest.mark.parametrize("field", [0, 1])
    def test_a_header_that_promises_gigabytes(self, tmp_path, field):
        stream = io.BytesIO()
        Image.fromarray(np.zeros((20, 20), np.uint8)).save(stream, "PNG")
        content = bytearray(stream.getvalue())
        content[16 + 4 * field : 20 + 4 * field] = struct.pack(">I", 2**31 - 1)
        content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
        (tmp_path / "map.png").write_bytes(content)
        with pytest.raises(MapFileError, match="header promises"):
            open_map(tmp_path / "map.png")

    def test_previews_beside_maps_are_no_maps(self, tmp_path, probabilities):
        np.save(tmp_path / "scan.npy", probabilities)
        Image.fromarray(np.zeros((4, 5), np.uint8)).save(tmp_path / "preview.png")
        assert [row.name for row in lc.count_files(tmp_path)] == ["scan"]
        (tmp_path / "scan.npy").unlink()
        assert [row.name for row in lc.count_files(tmp_path, scale=1 / 255)] == ["preview"]


@pytest.mark.parametrize(("ending", "module"), [(".tif", "tifffile"), (".png", "PIL.Image")])
def test_without_the_package_the_message_says_what_to_install(tmp_path, monkeypatch, ending, module):
    Image.fromarray(np.zeros((4, 5), np.uint8)).save(tmp_path / f"map{ending}")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[tiff\]'"):
        count_file(tmp_path / f"map{ending}", scale=1)

"""OME-Zarr 0.4 and 0.5: axes, levels, voxel sizes, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import zarr
from ome_stores import write_group, write_ome

import lesioncount as lc
from lesioncount.errors import ChannelError, MapError, MapFileError
from lesioncount.files import open_map, volumes
from lesioncount.files.formats import scan_name
from lesioncount.runs import Settings, count_batch, count_file
from lesioncount.runs.inspection import inspect_map


@pytest.fixture
def volume():
    voxels = np.full((12, 20, 16), 0.02, np.float32)
    voxels[2:4, 3:6, 4:6] = 0.75
    voxels[8:10, 12:15, 9:12] = 0.25
    return voxels


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("axes", ["zyx", "czyx", "tczyx", "tzyx", "zcyx", "xyz", "xyzc", "zyxct"])
def test_axes_in_any_order_give_the_map_along_the_axes_of_space(tmp_path, volume, axes, version):
    space = [axis for axis in axes if axis in "zyx"]
    turned = volume.transpose(["zyx".index(axis) for axis in space])
    voxels = turned
    for place, axis in enumerate(axes):
        if axis == "c":
            voxels = np.stack([np.zeros_like(voxels), voxels], axis=place)
        elif axis == "t":
            voxels = np.expand_dims(voxels, place)
    path = write_ome(tmp_path / "image.ome.zarr", [voxels], axes=axes, version=version)
    source = open_map(path, channel=1 if "c" in axes else None)
    np.testing.assert_array_equal(source.array(), turned)
    assert source.format == f"OME-Zarr {version}"
    assert source.spacing_mm == (0.0005, 0.0005, 0.0005)
    assert source.affine is None


def test_a_picture_has_two_axes_of_space(tmp_path, volume):
    path = write_ome(tmp_path / "picture.zarr", [volume[2:3, None]], axes="zcyx")
    assert open_map(path).shape == (1, 20, 16)
    path = write_ome(tmp_path / "flat.zarr", [volume[2]], axes="yx")
    assert open_map(path).shape == (20, 16)


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_the_level_that_is_chosen_has_its_own_voxel_size(tmp_path, volume, version):
    path = write_ome(tmp_path / "image.zarr", [volume, volume[::2, ::2, ::2]], version=version)
    fine, coarse = open_map(path), open_map(path, level=1)
    assert (fine.shape, coarse.shape) == ((12, 20, 16), (6, 10, 8))
    assert coarse.spacing_mm == (0.001, 0.001, 0.001)
    assert len(count_file(path, level=1).result.candidates) == 2
    with pytest.raises(ChannelError, match="no resolution level 2: it has 0 to 1"):
        open_map(path, level=2)


def test_scales_of_a_level_and_of_all_levels_multiply(tmp_path, volume):
    shared = [{"type": "scale", "scale": [2.0, 3.0, 4.0]}, {"type": "translation", "translation": [1.0, 2.0, 3.0]}]
    path = write_ome(tmp_path / "image.zarr", [volume], unit="millimeter", scales=[[0.5, 0.25, 0.125]], shared=shared)
    source = open_map(path)
    assert source.spacing_mm == (1.0, 0.75, 0.5)
    assert source.ome.levels[0].translation == (1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("unit", "size"), [("micrometer", 0.0005), ("nanometer", 5e-7), ("meter", 500.0), ("µm", 0.0005), ("inch", 12.7)]
)
def test_units_become_millimetres(tmp_path, volume, unit, size):
    path = write_ome(tmp_path / "image.zarr", [volume], unit=unit)
    assert open_map(path).spacing_mm == (size,) * 3


@pytest.mark.parametrize("unit", [None, "furlong"])
def test_without_a_unit_of_length_the_voxel_size_is_unknown(tmp_path, volume, unit):
    path = write_ome(tmp_path / "image.zarr", [volume], unit=unit)
    assert open_map(path).spacing_mm is None
    assert "0.5 × 0.5 × 0.5 in no known unit" in str(inspect_map(path))


def test_inspect_tells_axes_levels_and_voxel_size(tmp_path, volume):
    path = write_ome(tmp_path / "image.zarr", [volume[None], volume[None, ::2, ::2, ::2]], axes="czyx")
    told = str(inspect_map(path, level=1))
    assert "OME-Zarr 0.4" in told
    assert "axes       c, z (micrometer), y (micrometer), x (micrometer)" in told
    assert "levels     0: 0.0005 × 0.0005 × 0.0005 mm; *1: 0.001 × 0.001 × 0.001 mm" in told
    assert "voxels     0.001 × 0.001 × 0.001 mm" in told


def test_several_channels_need_a_choice(tmp_path, volume):
    path = write_ome(tmp_path / "image.zarr", [np.stack([volume, volume])], axes="czyx")
    with pytest.raises(ChannelError, match="holds 2 channels"):
        open_map(path)


def test_several_points_in_time_are_refused(tmp_path, volume):
    path = write_ome(tmp_path / "image.zarr", [np.stack([volume, volume])], axes="tzyx")
    with pytest.raises(MapFileError, match="2 points in time"):
        open_map(path)


def test_a_level_of_what_has_none_is_refused(tmp_path, volume):
    np.save(tmp_path / "plain.npy", volume)
    zarr.create_array(str(tmp_path / "plain.zarr"), data=volume)
    for name in ("plain.npy", "plain.zarr"):
        with pytest.raises((MapFileError, ChannelError), match="leave --level out"):
            open_map(tmp_path / name, level=0)


def test_a_group_of_any_name_is_an_image_and_its_ending_no_part_of_the_name(tmp_path, volume):
    path = write_ome(tmp_path / "image", [volume])
    assert open_map(path).shape == volume.shape
    assert scan_name(tmp_path / "brain.ome.zarr") == "brain"


def test_an_array_inside_of_an_image_can_be_given(tmp_path, volume):
    path = write_ome(tmp_path / "image.zarr", [volume])
    assert open_map(path / "0").format == "zarr"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: one.pop("axes"), "'axes' is missing"),
        (lambda one: one["axes"].pop(), "expected a number for each of 2 axes"),
        (lambda one: one["axes"].append({"name": "w", "type": "space"}), "two or three axes of space"),
        (lambda one: one["datasets"].clear(), "no datasets"),
        (lambda one: one["datasets"][0].update(path="../../secret"), "leads out of the image"),
        (lambda one: one["datasets"][0].update(coordinateTransformations=[{"type": "affine"}]), "type affine"),
        (
            lambda one: one["datasets"][0].update(coordinateTransformations=[{"type": "scale", "scale": [0, 1, 1]}]),
            "number for each of 3 axes",
        ),
    ],
)
def test_metadata_that_are_not_as_the_format_says_are_refused(tmp_path, volume, change, message):
    path = write_ome(tmp_path / "image.zarr", [volume])
    multiscale = json.loads((path / ".zattrs").read_text())["multiscales"][0]
    change(multiscale)
    write_group(path, multiscale, "0.4")
    with pytest.raises(MapFileError, match=message):
        open_map(path)


def test_axes_that_are_not_those_of_the_array_are_refused(tmp_path, volume):
    path = write_ome(tmp_path / "image.zarr", [volume], axes="zyx")
    multiscale = json.loads((path / ".zattrs").read_text())["multiscales"][0]
    multiscale["axes"].insert(0, {"name": "c", "type": "channel"})
    multiscale["datasets"][0]["coordinateTransformations"] = [{"type": "identity"}]
    write_group(path, multiscale, "0.4")
    with pytest.raises(MapFileError, match="4 axes by its OME-Zarr metadata"):
        open_map(path)


def test_axes_without_a_type_are_known_by_their_names(tmp_path, volume):
    path = write_ome(tmp_path / "image.zarr", [volume[None]], axes="czyx")
    multiscale = json.loads((path / ".zattrs").read_text())["multiscales"][0]
    for axis in multiscale["axes"]:
        del axis["type"]
    write_group(path, multiscale, "0.4")
    assert open_map(path).spacing_mm == (0.0005,) * 3


def test_other_versions_and_collections_are_refused(tmp_path, volume):
    path = write_ome(tmp_path / "image.zarr", [volume], version="0.3")
    with pytest.raises(MapFileError, match=r"of version 0\.3"):
        open_map(path)
    (path / ".zattrs").write_text('{"plate": {}}')
    with pytest.raises(MapFileError, match="is a plate"):
        open_map(path)


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("axes", ["zyx", "tczyx"])
def test_labels_are_written_as_a_label_image_with_the_levels_of_the_image(tmp_path, volume, version, axes):
    lead = (None,) * (len(axes) - 3)
    levels = [volume[lead], volume[lead][..., ::2, ::2, ::2]]
    maps = tmp_path / "maps"
    path = write_ome(maps / "scan.ome.zarr", levels, axes=axes, version=version)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    results = count_batch([maps], tmp_path / "out", settings=Settings(save_labels=True))
    assert [scan.error for scan in results.scans] == [None]
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before
    store = tmp_path / "out" / "scan_lesions.ome.zarr"
    group = zarr.open_group(str(store), mode="r")
    attributes = group.attrs["ome"] if version == "0.5" else dict(group.attrs)
    multiscale, label = attributes["multiscales"][0], attributes["image-label"]
    assert [axis["name"] for axis in multiscale["axes"]] == list(axes)
    assert [one["label-value"] for one in label["properties"]] == [1, 2]
    assert [round(one["existence"], 2) for one in label["properties"]] == [0.75, 0.25]
    assert [group[one["path"]].shape for one in multiscale["datasets"]] == [level.shape for level in levels]
    written = open_map(store).array()
    counted = count_file(path, keep_runs=True).result.candidates.label_map()
    np.testing.assert_array_equal(written, counted)
    assert open_map(store).spacing_mm == (0.0005,) * 3
    coarse = open_map(store, level=1)
    np.testing.assert_array_equal(coarse.array(), counted[1::2, 1::2, 1::2])
    assert coarse.spacing_mm == (0.001,) * 3


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_labels_of_an_earlier_run_are_replaced_as_a_whole(tmp_path, volume, version):
    path, out = write_ome(tmp_path / "scan.zarr", [volume], version=version), tmp_path / "out"
    count_batch([path], out, settings=Settings(save_labels=True))
    store = out / "scan_lesions.ome.zarr"
    assert open_map(store).array().any()
    high = Settings(save_labels=True, protocol=Settings().protocol.components_above(0.9))
    count_batch([path], out, settings=high, overwrite=True)
    assert not open_map(store).array().any()
    count_batch([path], out, settings=Settings(), overwrite=True)
    assert not store.exists()


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_labels_of_large_images_are_label_images_too(tmp_path, volume, version, monkeypatch):
    monkeypatch.setattr(volumes, "LARGE_VOLUME", 1000)
    both = [np.stack([np.zeros_like(one), one]) for one in (volume, volume[::2, ::2, ::2])]
    path, out = write_ome(tmp_path / "scan.zarr", both, axes="czyx", version=version), tmp_path / "out"
    wanted = Settings(save_labels=True, channel=1)
    assert count_batch([path], out, settings=wanted).scans[0].error is None
    store = out / "scan_lesions.ome.zarr"
    expected = count_file(path, channel=1, keep_runs=True).result.candidates.label_map()
    np.testing.assert_array_equal(open_map(store).array(), expected)
    np.testing.assert_array_equal(open_map(store, level=1).array(), expected[1::2, 1::2, 1::2])
    assert not (out / "scan_lesions.zarr").exists()
    last = store / ("zarr.json" if version == "0.5" else ".zgroup")
    before = last.stat().st_mtime_ns
    count_batch([path], out, settings=wanted, resume=True)
    assert last.stat().st_mtime_ns == before
    last.unlink()
    count_batch([path], out, settings=wanted, resume=True)
    np.testing.assert_array_equal(open_map(store).array(), expected)
    count_batch([path], out, settings=Settings(channel=1), overwrite=True)
    assert not store.exists()


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_count_volume_takes_a_level_and_puts_labels_into_the_image(tmp_path, volume, version):
    levels = [volume, volume[::2, ::2, ::2], volume[::4, ::4, ::4]]
    path = write_ome(tmp_path / "scan.zarr", levels, version=version)
    fine = lc.count_volume(path, labels=path / "labels" / "lesions", keep_runs=True)
    coarse = lc.count_volume(str(path), level=1, labels=path / "labels" / "coarse", jobs=1)
    assert fine.candidates.spacing_mm == (0.0005,) * 3
    assert coarse.candidates.spacing_mm == (0.001,) * 3
    assert len(coarse.candidates) == 2
    group = dict(zarr.open_group(str(path / "labels"), mode="r").attrs)
    listed = group["ome"] if version == "0.5" else group
    assert listed["labels"] == ["lesions", "coarse"]
    written = open_map(path / "labels" / "lesions")
    np.testing.assert_array_equal(written.array(), fine.candidates.label_map())
    assert len(written.ome.levels) == 3
    assert [open_map(path / "labels" / "coarse", level=n).shape for n in (0, 1)] == [(6, 10, 8), (3, 5, 4)]
    lc.count_volume(path, labels=tmp_path / "elsewhere.zarr")
    assert open_map(tmp_path / "elsewhere.zarr").ome is not None
    with pytest.raises(MapFileError, match="there already"):
        lc.count_volume(path, labels=path / "labels" / "lesions")
    with pytest.raises(MapError, match="leave level out"):
        lc.count_volume(zarr.open_array(str(path / "0"), mode="r"), level=1)


def test_levels_that_are_finer_than_those_before_have_no_labels(tmp_path, volume):
    path = write_ome(tmp_path / "scan.zarr", [volume[::2, ::2, ::2], volume], scales=[[1, 1, 1], [0.5, 0.5, 0.5]])
    lc.count_volume(path, labels=tmp_path / "labels.zarr")
    assert len(open_map(tmp_path / "labels.zarr").ome.levels) == 1


def test_results_are_not_counted_as_maps(tmp_path, volume):
    write_ome(tmp_path / "scan.zarr", [volume])
    count_batch([tmp_path], tmp_path / "out", settings=Settings(save_labels=True))
    again = count_batch([tmp_path], tmp_path / "other")
    assert [scan.name for scan in again.scans] == ["scan"]


def test_the_level_is_recorded_and_another_one_is_not_resumed(tmp_path, volume):
    path, out = write_ome(tmp_path / "scan.zarr", [volume, volume[::2, ::2, ::2]]), tmp_path / "out"
    count_batch([path], out)
    assert "level" not in json.loads((out / "run.json").read_text())["settings"]
    with pytest.raises(MapFileError, match="level is 1 instead of none"):
        count_batch([path], out, settings=Settings(level=1), resume=True)
    again = count_batch([path], out, settings=Settings(level=1), overwrite=True)
    assert again.scans[0].map.shape == (6, 10, 8)
    assert again.run.settings.level == 1
    assert count_batch([path], out, settings=Settings(level=1), resume=True).scans[0].map.shape == (6, 10, 8)

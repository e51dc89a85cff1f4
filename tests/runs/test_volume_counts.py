import numpy as np
import pytest

import lesioncount as lc
from lesioncount.cli import main
from lesioncount.cohort.item import fingerprint
from lesioncount.errors import ChannelError, MapError, MapFileError, NonFiniteError, RunsNotKeptError, ShapeError
from lesioncount.files import volumes
from lesioncount.runs import volume_sweep
from lesioncount.sweep.voxel_runs import middle_voxels

zarr = pytest.importorskip("zarr")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """So that small volumes are cut into many pieces and tasks."""
    monkeypatch.setattr(volume_sweep, "_PIECE_BYTES", 1 << 12)
    monkeypatch.setattr(volume_sweep, "_TASK_BYTES", 1 << 14)


@pytest.fixture
def probabilities(rng):
    """Blobs that reach across chunks, and nothing in half of them."""
    noise = rng.random((40, 50, 60)) ** 3
    smooth = sum(np.roll(noise, step, axis) for step in (-1, 0, 1) for axis in range(3)) / 9
    smooth[:20, 20:, :] = 0
    return np.clip((smooth - 0.35) * 4, 0, 1).astype(np.float32)


def stored(path, data, chunks=(8, 16, 16), **options):
    array = zarr.create_array(str(path), shape=data.shape, chunks=chunks, dtype=data.dtype, **options)
    if options.get("fill_value", 0) == 0:
        array[...] = data
    return array


def assert_same(result, expected):
    assert str(result) == str(expected)
    assert result.candidates.n_dropped == expected.candidates.n_dropped
    columns = expected.candidates.columns()
    for name, column in result.candidates.columns().items():
        np.testing.assert_array_equal(column, columns[name], err_msg=name)


@pytest.mark.parametrize("protocol", ["paper", "peaks", "ms"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_volume_counts_as_in_memory(tmp_path, probabilities, protocol, zarr_format):
    array = stored(tmp_path / "v.zarr", probabilities, zarr_format=zarr_format)
    options = {"protocol": protocol, "spacing_mm": (1, 1, 2)}
    assert_same(lc.count_volume(array, **options), lc.count_lesions(probabilities, **options))
    assert_same(lc.count_volume(tmp_path / "v.zarr", **options), lc.count_lesions(probabilities, **options))


def test_shards_channels_and_pictures(tmp_path, probabilities):
    shards = stored(tmp_path / "s.zarr", probabilities, chunks=(4, 8, 8), shards=(8, 16, 16))
    assert_same(lc.count_volume(shards), lc.count_lesions(probabilities))
    both = np.stack([1 - probabilities, probabilities])
    channels = stored(tmp_path / "c.zarr", both, chunks=(1, 8, 16, 16))
    assert_same(lc.count_volume(channels, channel=1), lc.count_lesions(probabilities))
    with pytest.raises(ChannelError, match="holds 2 channels"):
        lc.count_volume(channels)
    flat = stored(tmp_path / "f.zarr", probabilities[30], chunks=(8, 16))
    assert_same(lc.count_volume(flat, labels=tmp_path / "l.zarr"), lc.count_lesions(probabilities[30]))
    labels = lc.find_candidates(probabilities[30]).label_map()
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "l.zarr"))[...], labels)


def test_chunks_may_hold_several_channels(tmp_path, probabilities):
    both = np.stack([np.zeros_like(probabilities), probabilities])
    array = stored(tmp_path / "c.zarr", both, chunks=(2, 16, 16, 16))
    assert_same(lc.count_volume(array, channel=1), lc.count_lesions(probabilities))


def test_bytes_and_logits(tmp_path, probabilities):
    bytes_ = np.round(probabilities * 255).astype(np.uint8)
    array = stored(tmp_path / "b.zarr", bytes_)
    assert_same(lc.count_volume(array, scale=1 / 255), lc.count_lesions(bytes_, scale=1 / 255))
    with np.errstate(divide="ignore"):
        logits = np.clip(np.log(probabilities / (1 - probabilities)), -30, 30).astype(np.float32)
    array = stored(tmp_path / "l.zarr", logits)
    assert_same(lc.count_volume(array, logits=True), lc.count_lesions(logits, logits=True))


def spy(monkeypatch):
    """The boxes that are read."""
    boxes = []
    read = volume_sweep.ChunkedVolume.read

    def reading(self, box):
        boxes.append(box)
        return read(self, box)

    monkeypatch.setattr(volume_sweep.ChunkedVolume, "read", reading)
    return boxes


@pytest.mark.parametrize(("fill", "is_read"), [(0.0, False), (0.05, False), (0.2, True)])
def test_chunks_that_are_not_stored_are_read_only_above_the_threshold(tmp_path, monkeypatch, fill, is_read):
    array = stored(tmp_path / "v.zarr", np.zeros((32, 32, 32), np.float32), (8, 8, 8), fill_value=fill)
    array[8:16, 8:16, 8:16] = np.linspace(0.3, 0.9, 512).reshape(8, 8, 8)
    boxes = spy(monkeypatch)
    result = lc.count_volume(array)
    assert (sum(box.n_voxels for box in boxes) > 8**3) == is_read
    assert_same(result, lc.count_lesions(array[...]))


def test_warnings_are_those_of_the_whole_map(tmp_path):
    for fill, warning in ((0.0, lc.errors.BinaryMapWarning), (0.05, None)):
        path = tmp_path / f"{fill}.zarr"
        array = stored(path, np.zeros((32, 32, 32), np.float32), (8, 8, 8), fill_value=fill)
        array[8:16, 8:16, 8:16] = 1
        if warning is None:
            assert lc.count_volume(array).candidates.warning is None
        else:
            with pytest.warns(warning):
                lc.count_volume(array)


def test_logits_of_minus_infinity_may_stand_for_what_is_not_stored(tmp_path):
    array = stored(tmp_path / "v.zarr", np.zeros((32, 32, 32), np.float32), (8, 8, 8), fill_value=-np.inf)
    array[8:16, 8:16, 8:16] = np.linspace(-3, 3, 512).reshape(8, 8, 8)
    whole = np.maximum(array[...], -30)
    assert_same(lc.count_volume(array, logits=True), lc.count_lesions(whole, logits=True))
    array[0, 0, 0] = 0.0
    with pytest.raises(NonFiniteError, match="large negative number"):
        lc.count_volume(array, logits=True)


def test_an_array_that_has_shrunk_leaves_chunks_behind(tmp_path, probabilities):
    array = stored(tmp_path / "v.zarr", probabilities)
    (tmp_path / "v.zarr" / "c" / "9" / "9").mkdir(parents=True)
    (tmp_path / "v.zarr" / "c" / "9" / "9" / "9").write_bytes(b"old")
    (tmp_path / "v.zarr" / "c" / "notes.txt").write_text("1 2 3")
    assert_same(lc.count_volume(array), lc.count_lesions(probabilities))


def test_a_store_that_cannot_be_listed_is_read_as_a_whole(tmp_path, probabilities, monkeypatch):
    array = stored(tmp_path / "v.zarr", probabilities)
    monkeypatch.setattr(type(array.store), "supports_listing", False)
    assert_same(lc.count_volume(array), lc.count_lesions(probabilities))


@pytest.mark.parametrize("protocol", ["paper", "peaks"])
def test_masks_of_all_kinds(tmp_path, rng, probabilities, protocol):
    mask = np.zeros(probabilities.shape, np.uint8)
    mask[5:33, 7:, 20:] = rng.random((28, 43, 40)) < 0.95
    broken = probabilities.copy()
    broken[0, 0, 0] = np.nan
    array = stored(tmp_path / "v.zarr", broken)
    expected = lc.count_lesions(broken, mask=mask, protocol=protocol)
    np.save(tmp_path / "mask.npy", mask)
    for one in (mask, tmp_path / "mask.npy", stored(tmp_path / "m.zarr", mask, (16, 8, 24)), tmp_path / "m.zarr"):
        assert_same(lc.count_volume(array, mask=one, protocol=protocol), expected)
    everywhere = stored(tmp_path / "e.zarr", mask, (16, 8, 24), fill_value=1)
    everywhere[:8] = 0
    np.testing.assert_array_equal(everywhere[8:], 1)
    expected = lc.count_lesions(broken, mask=everywhere[...], protocol=protocol)
    assert_same(lc.count_volume(array, mask=everywhere, protocol=protocol), expected)


def test_masks_of_another_shape(tmp_path, probabilities):
    array = stored(tmp_path / "v.zarr", probabilities)
    other = stored(tmp_path / "m.zarr", np.ones((4, 5, 6), np.uint8), (4, 4, 4))
    for mask in (other, tmp_path / "m.zarr", np.ones((4, 5, 6))):
        with pytest.raises(ShapeError, match=r"\(4, 5, 6\)"):
            lc.count_volume(array, mask=mask)


@pytest.mark.parametrize("protocol", ["paper", "peaks", "ms"])
def test_label_maps_are_written_chunk_by_chunk(tmp_path, probabilities, protocol):
    array = stored(tmp_path / "v.zarr", probabilities)
    options = {"protocol": protocol, "spacing_mm": (1, 1, 1)}
    result = lc.count_volume(array, labels=tmp_path / "labels.zarr", **options)
    labels = zarr.open_array(str(tmp_path / "labels.zarr"), mode="r")
    expected = lc.find_candidates(probabilities, **options).label_map()
    np.testing.assert_array_equal(labels[...], expected)
    np.testing.assert_array_equal(result.candidates.label_map(), expected)
    assert labels.chunks == array.chunks
    assert 0 < labels.nchunks_initialized < labels.nchunks
    with pytest.raises(MapFileError, match="there already"):
        lc.count_volume(array, labels=tmp_path / "labels.zarr")
    with pytest.raises(RunsNotKeptError):
        lc.count_volume(array).candidates.label_map()


def test_blocks_of_labels_of_a_map_in_any_order(probabilities):
    for array in (probabilities, np.asfortranarray(probabilities), probabilities.transpose(1, 2, 0), probabilities[3]):
        candidates = lc.find_candidates(array)
        labels = np.zeros(array.shape, np.int32)
        for place, block in candidates.label_blocks((7, 11, 13)[: array.ndim]):
            assert block.any()
            labels[place] = block
        np.testing.assert_array_equal(labels, candidates.label_map())


@pytest.mark.parametrize("shape", [(20, 25, 30), (40, 25, 30), (13, 17, 60), (1, 1, 1)])
def test_blocks_of_labels_in_fewer_voxels_are_those_in_their_middle(probabilities, shape):
    for array in (probabilities, np.asfortranarray(probabilities)):
        candidates = lc.find_candidates(array)
        middles = [middle_voxels(n, m) for n, m in zip(array.shape, shape, strict=True)]
        labels = np.zeros(shape, np.int32)
        for place, block in candidates.label_blocks((7, 11, 13), shape=shape):
            assert block.any()
            labels[place] = block
        np.testing.assert_array_equal(labels, candidates.label_map()[np.ix_(*middles)])
    with pytest.raises(ShapeError, match="fewer voxels"):
        candidates.label_blocks((7, 11, 13), shape=(41, 25, 30))


def test_processes_give_the_same(tmp_path, probabilities):
    array = stored(tmp_path / "v.zarr", probabilities)
    mask = probabilities < 0.6
    for options in ({}, {"protocol": "peaks", "mask": mask}):
        assert_same(lc.count_volume(array, jobs=2, **options), lc.count_lesions(probabilities, **options))
    empty = zarr.create_array(str(tmp_path / "e.zarr"), shape=(64, 64, 64), chunks=(16, 16, 16), dtype="f4")
    assert len(lc.count_volume(empty, jobs=2).candidates) == 0


def test_what_is_no_volume(tmp_path, probabilities):
    with pytest.raises(MapError, match="count_lesions"):
        lc.count_volume(probabilities)
    np.save(tmp_path / "map.npy", probabilities)
    with pytest.raises(MapError, match="no chunks"):
        lc.count_volume(tmp_path / "map.npy")
    with pytest.raises(MapError, match=r"Pass distributed\.Client"):
        lc.count_volume(zarr.create_array({}, shape=(5, 5), chunks=(5, 5), dtype="f4"), client="tcp://127.0.0.1:9")
    with pytest.raises(MapFileError, match="two or three axes"):
        lc.count_volume(zarr.create_array({}, shape=(5,), chunks=(5,), dtype="f4"))


def test_bad_voxels_and_damaged_chunks(tmp_path, probabilities):
    probabilities[33, 44, 55] = 7
    array = stored(tmp_path / "v.zarr", probabilities)
    with pytest.raises(lc.errors.ProbabilityRangeError, match="7"):
        lc.count_volume(array)
    (tmp_path / "v.zarr" / "c" / "4" / "2" / "3").write_bytes(b"damaged")
    with pytest.raises(MapFileError, match="a chunk is damaged"):
        lc.count_volume(array)


@pytest.fixture
def large(monkeypatch, tmp_path, probabilities):
    """A volume that is too large to be held."""
    monkeypatch.setattr(volumes, "LARGE_VOLUME", 1000)
    stored(tmp_path / "v.zarr", probabilities)
    return tmp_path / "v.zarr"


def test_files_of_large_volumes_are_counted_in_boxes(large, monkeypatch, tmp_path, probabilities):
    boxes = spy(monkeypatch)
    count = lc.count_file(large, thresholds=[0.3], keep_runs=True, keep_shades=True)
    assert len(boxes) > 4
    np.save(tmp_path / "v.npy", probabilities)
    expected = lc.count_file(tmp_path / "v.npy", thresholds=[0.3], keep_runs=True)
    assert_same(count.result, expected.result)
    assert (count.component_count, count.counts_at) == (expected.component_count, expected.counts_at)
    assert count.warnings == expected.warnings
    np.testing.assert_array_equal(count.result.candidates.label_map(), expected.result.candidates.label_map())


def test_labels_of_large_volumes_are_zarr(large, tmp_path, probabilities, capsys):
    out = tmp_path / "out"
    command = ["count", str(large), "-o", str(out), "--quiet"]
    assert main([*command, "--write=labels"]) == 0
    labels = out / "v_lesions.zarr"
    np.testing.assert_array_equal(zarr.open_array(str(labels))[...], lc.find_candidates(probabilities).label_map())
    before = {path.name: path.stat().st_mtime_ns for path in labels.iterdir()}
    assert main([*command, "--write=labels", "--resume"]) == 0
    assert before == {path.name: path.stat().st_mtime_ns for path in labels.iterdir()}
    assert main([*command, "--write=labels", "--overwrite", "--threshold", "0.8"]) == 0
    expected = lc.find_candidates(probabilities, threshold=0.8).label_map()
    np.testing.assert_array_equal(zarr.open_array(str(labels))[...], expected)
    assert len(before) > len(list(labels.iterdir()))
    (labels / ".zarray").unlink()
    assert main([*command, "--write=labels", "--resume", "--threshold", "0.8"]) == 0
    np.testing.assert_array_equal(zarr.open_array(str(labels))[...], expected)
    assert main([*command, "--overwrite"]) == 0
    assert not labels.exists()
    assert capsys.readouterr().err == ""


def test_what_others_have_put_into_a_label_map_stays(large, tmp_path, capsys):
    labels = tmp_path / "out" / "v_lesions.zarr"
    labels.mkdir(parents=True)
    (labels / ".zarray").write_text("mine")
    command = ["count", str(large), "-o", str(tmp_path / "out"), "--quiet", "--write=labels"]
    assert main(command) == 2
    assert "would be replaced" in capsys.readouterr().err
    assert (labels / ".zarray").read_text() == "mine"


@pytest.mark.parametrize("option", ["--write=existence", "--write=bids"])
def test_what_is_written_as_a_whole_is_refused_for_large_volumes(large, tmp_path, option, capsys):
    large = large.rename(tmp_path / "sub-1_v.zarr")
    assert main(["count", str(large), "-o", str(tmp_path / "out"), "--quiet", option]) == 1
    assert f"too many voxels for {option.replace('=', ' ')}" in capsys.readouterr().err


def test_large_volumes_that_cannot_be_opened_are_failures(large, tmp_path, capsys):
    (large / "zarr.json").write_text("{")
    assert main(["count", str(large), "-o", str(tmp_path / "out"), "--quiet"]) == 1
    assert "not the description of an array" in capsys.readouterr().err


def test_large_volumes_are_known_by_the_times_of_their_files(large):
    before = fingerprint(large)
    chunk = large / "c" / "4" / "2" / "3"
    content = chunk.read_bytes()
    chunk.chmod(0)
    assert fingerprint(large) == before
    chunk.unlink()
    assert fingerprint(large) != before
    chunk.write_bytes(content[::-1])
    assert fingerprint(large) != before

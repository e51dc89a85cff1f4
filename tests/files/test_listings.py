"""A zarr store is listed once for one count, here or elsewhere, and what changes meanwhile is noticed all the same."""

import os
import shutil
from collections import Counter

import numpy as np
import pytest
import zarr
from ome_stores import write_ome

from lesioncount.files import open_map
from lesioncount.runs import Settings, count_batch, count_file

WAYS = {"array": None, "OME-Zarr 0.4": "0.4", "OME-Zarr 0.5": "0.5"}


@pytest.fixture(params=WAYS)
def store(request, tmp_path):
    voxels = np.zeros((16, 16, 16), np.float32)
    voxels[1:3, 2:4, 1:6] = 0.7
    voxels[9:12, 9:11, 3] = 0.4
    path, version = tmp_path / "maps" / "a.zarr", WAYS[request.param]
    if version is not None:
        return write_ome(path, [voxels, voxels[::2, ::2, ::2]], version=version)
    array = zarr.create_array(str(path), shape=voxels.shape, dtype="f4", chunks=(8, 8, 8), zarr_format=2)
    array[...] = voxels
    return path


@pytest.fixture
def meanwhile(monkeypatch):
    """Have something done when a map has been opened, before it is read."""

    def do(change):
        def opened(*arguments, **options):
            source = open_map(*arguments, **options)
            change()
            return source

        monkeypatch.setattr("lesioncount.runs.file_counts.open_map", opened)

    return do


class TestHere:
    """On this machine."""

    @pytest.fixture
    def looks(self, store, monkeypatch):
        """How often folders are listed, and files looked at, in the store."""
        found = {"listed": Counter(), "stat": Counter()}

        def counted(function, kind):
            def call(path=".", *arguments, **options):
                if isinstance(path, str | os.PathLike) and str(path).startswith(str(store)):
                    found[kind][os.path.relpath(path, store)] += 1
                return function(path, *arguments, **options)

            return call

        for name, kind in (("scandir", "listed"), ("listdir", "listed"), ("stat", "stat"), ("lstat", "stat")):
            monkeypatch.setattr(os, name, counted(getattr(os, name), kind))
        return found

    @pytest.mark.parametrize("settings", [Settings(), Settings(save_labels=True)], ids=["plain", "labels"])
    def test_a_run_lists_a_store_once(self, store, tmp_path, looks, settings):
        assert not count_batch([store], tmp_path / "out", settings=settings).failed
        looks = {kind: Counter(found) for kind, found in looks.items()}
        chunks = [name for name in looks["stat"] if name[-1].isdigit() and (store / name).is_file()]
        assert set(looks["listed"].values()) == {1}
        assert {looks["stat"][name] for name in chunks} == {2}  # before it is counted, and afterwards

    def test_a_file_lists_a_store_once(self, store, looks):
        count_file(store)
        assert set(looks["listed"].values()) == {1}

    @pytest.mark.parametrize("change", ["rewritten", "added", "gone"])
    def test_what_changes_meanwhile_is_noticed(self, store, tmp_path, meanwhile, change):
        chunk = next(path for path in sorted(store.rglob("*")) if path.is_file() and path.name[-1].isdigit())

        def changed():
            if change == "rewritten":
                chunk.write_bytes(chunk.read_bytes())
            elif change == "added":
                shutil.copy(chunk, chunk.with_name("7"))
            else:
                chunk.unlink()

        meanwhile(changed)
        (scan,) = count_batch([store], tmp_path / "out").failed
        assert "was changed while it was counted" in scan.error


class TestElsewhere:
    """In a bucket."""

    @pytest.fixture
    def asked(self, monkeypatch):
        """What the bucket was asked for."""
        import obstore

        found = Counter()

        def counted(function):
            def call(store, key=None, *arguments, **options):
                found[function.__name__, key] += 1
                return function(store, key, *arguments, **options)

            return call

        for name in ("list", "list_with_delimiter", "get"):
            monkeypatch.setattr(obstore, name, counted(getattr(obstore, name)))
        return found

    def listings(self, asked):
        return sum(asked[kind, key] for kind, key in asked if kind != "get")

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_a_run_lists_a_store_once(self, store, bucket, asked, tmp_path, jobs):
        address = bucket.put_tree(store, "maps/a.zarr")
        results = count_batch([address], tmp_path / "out", jobs=jobs)
        assert results.scans[0].counted.candidates.n_candidates == 2
        assert self.listings(asked) == 1
        if jobs == 1:  # chunks that are not stored are not asked for
            assert sum(key[-1].isdigit() for kind, key in asked if kind == "get") == 2

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_with_a_mask_chunks_that_are_not_stored_are_background(self, store, bucket, tmp_path, jobs):
        address = bucket.put_tree(store, "maps/a.zarr")
        np.save(tmp_path / "mask.npy", np.ones((16, 16, 16), np.uint8))
        results = count_batch([address], tmp_path / "out", mask=tmp_path / "mask.npy", jobs=jobs)
        assert results.scans[0].counted.candidates.n_candidates == 2

    def test_shards_are_listed_again_to_see_whether_they_have_changed(self, bucket, asked, tmp_path):
        array = zarr.create_array(
            str(tmp_path / "a.zarr"), shape=(8, 8, 8), dtype="f4", chunks=(2, 2, 2), shards=(4, 4, 4)
        )
        array[...] = np.float32(0.3)
        address = bucket.put_tree(tmp_path / "a.zarr", "maps/a.zarr")
        assert not count_batch([address], tmp_path / "out").failed
        assert self.listings(asked) == 2

    @pytest.mark.parametrize("jobs", [1, 2])
    @pytest.mark.parametrize("change", ["a chunk", "a chunk is gone", "the description"])
    def test_what_changes_meanwhile_is_noticed(self, store, bucket, tmp_path, meanwhile, change, jobs):
        address = bucket.put_tree(store, "maps/a.zarr")
        files = sorted(path for path in store.rglob("*") if path.is_file())
        is_chunk = change != "the description"
        file = next(path for path in files if is_chunk == path.name[-1].isdigit())
        key = f"maps/a.zarr/{file.relative_to(store).as_posix()}"

        def changed():
            if change == "a chunk is gone":
                bucket.client.delete_object(Bucket="scans", Key=key)
            else:
                bucket.put(key, file.read_bytes() + b" ")

        meanwhile(changed)
        (scan,) = count_batch([address], tmp_path / "out", jobs=jobs).failed
        assert "was changed while it was counted" in scan.error

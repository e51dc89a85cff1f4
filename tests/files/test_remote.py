"""Maps that live elsewhere: addresses, single objects over http, buckets, and what goes wrong on the way."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import zarr
from local_servers import KEY, KEY_ID, SIGNATURE
from ome_stores import write_ome

import lesioncount as lc
from lesioncount.errors import MapFileError
from lesioncount.files import open_map, remote_objects, volumes
from lesioncount.files.ahead import ahead
from lesioncount.files.formats import version_of
from lesioncount.files.remote_listing import list_folder, matches, objects_below, walk
from lesioncount.files.remote_path import RemotePath, absolute_text, is_elsewhere, to_path, why_gone, without_secrets
from lesioncount.folder.output import OutputFolder
from lesioncount.runs import count_file, volume_sweep


@pytest.fixture
def volume(rng):
    voxels = rng.uniform(0, 0.05, (24, 20, 16)).astype(np.float32)
    voxels[2:5, 3:6, 4:6] = 0.75
    voxels[15:18, 12:15, 9:12] = 0.25
    return voxels


def nifti(path: Path, voxels: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(voxels, np.diag([1, 2, 3, 1])), path)
    return path


class TestAddresses:
    def test_a_path_says_the_address_without_its_query(self):
        path = to_path(f"https://example.org:8080/a%20b/scan.nii.gz?X-Amz-Signature={SIGNATURE}#part")
        assert isinstance(path, RemotePath)
        assert str(path) == absolute_text(path) == str(path.absolute()) == "https://example.org:8080/a%20b/scan.nii.gz"
        assert SIGNATURE not in repr(path)
        assert path.secret_address.endswith(f"?X-Amz-Signature={SIGNATURE}")
        assert path.name == "scan.nii.gz"
        assert str(path.parent) == "https://example.org:8080/a%20b"
        assert to_path(path) is path

    def test_other_processes_get_the_query_as_well(self):
        path = to_path(f"https://example.org/scan.nii.gz?{SIGNATURE}")
        again = pickle.loads(pickle.dumps(path))  # noqa: S301 - our own
        assert again == path
        assert again.secret_address == path.secret_address

    def test_what_lies_in_a_store_is_read_with_its_query_and_nothing_else(self):
        path = to_path(f"https://example.org/x.zarr?{SIGNATURE}")
        assert path.inside("0/c/1").secret_address == f"https://example.org/x.zarr/0/c/1?{SIGNATURE}"
        assert SIGNATURE not in (path.parent / "other").secret_address

    @pytest.mark.parametrize("text", ["s3://scans/a/b.nii.gz", "gs://scans/a/b.nii.gz", "S3://scans/a//b.nii.gz"])
    def test_buckets(self, text):
        path = to_path(text)
        assert (path.host, path.key, path.is_listed) == ("scans", "a/b.nii.gz", True)
        assert path.below(RemotePath.of(f"{path.scheme}://scans")).as_posix() == "a/b.nii.gz"
        with pytest.raises(ValueError, match="not below"):
            path.below(RemotePath.of("s3://others"))

    @pytest.mark.parametrize(
        "text",
        [
            f"https://user:{SIGNATURE}@example.org/x.nii.gz",
            f"s3://{SIGNATURE}:{SIGNATURE}@scans/x.nii.gz",
            f"https://user:{SIGNATURE}/with@example.org/x.nii.gz",
            f"https:///{SIGNATURE}",
            f"s3://*/{SIGNATURE}",
        ],
    )
    def test_addresses_with_passwords_or_without_a_host_are_refused_and_not_repeated(self, text):
        with pytest.raises(MapFileError, match=r"password|name of a (host|bucket)") as refused:
            to_path(text)
        assert SIGNATURE not in str(refused.value)

    def test_other_schemes_are_refused(self):
        with pytest.raises(MapFileError, match="begins with ftp://"):
            to_path("ftp://example.org/x.nii.gz")

    def test_files_stay_files(self, tmp_path):
        assert to_path("a/b.nii.gz") == Path("a/b.nii.gz")
        assert absolute_text(tmp_path / ".." / "x") == str(tmp_path.parent / "x")

    def test_what_pathlib_has_made_of_an_address_is_never_fetched(self):
        path = Path("s3://scans/x.nii.gz")
        assert is_elsewhere(path)
        assert not is_elsewhere(Path())
        assert "fetched only while it is counted" in why_gone(path)
        assert why_gone(Path("x.nii.gz")) == "is no longer there"
        with pytest.raises(MapFileError, match="give it as text"):
            open_map(path)

    def test_texts_are_freed_of_secrets(self):
        said = without_secrets(f"s3://a:{SIGNATURE}@b/c, https://h/x.nii.gz?s={SIGNATURE} and 'http://u:{SIGNATURE}@h'")
        assert said == "s3://b/c, https://h/x.nii.gz and 'http://h'"

    @pytest.mark.parametrize(
        ("address", "is_open"),
        [
            ("http://example.org/x", True),
            ("http://127.0.0.1:80/x", False),
            ("http://localhost/x", False),
            ("http://[::1]:80/x", False),
            ("https://example.org/x", False),
            ("http://127.0.0.1.example.org/x", True),
        ],
    )
    def test_only_http_to_others_is_open_to_all(self, address, is_open):
        assert to_path(address).is_open_to_all is is_open

    def test_results_are_written_here(self):
        with pytest.raises(MapFileError, match="aws s3 sync out/ s3://scans/out"):
            OutputFolder("s3://scans/out")
        with pytest.raises(MapFileError, match=r"on this machine, but https://example.org/out is elsewhere"):
            OutputFolder("https://example.org/out")


class TestServers:
    @pytest.mark.parametrize("ending", [".nii", ".nii.gz"])
    def test_a_file_is_counted_as_if_it_were_here(self, server, volume, ending):
        here = nifti(server.folder / f"scan{ending}", volume)
        there = count_file(f"{server.address}/scan{ending}")
        local = count_file(here)
        np.testing.assert_array_equal(there.result.existence, local.result.existence)
        np.testing.assert_array_equal(there.source.affine, local.source.affine)
        assert there.warnings == local.warnings

    def test_a_large_file_is_streamed_and_never_stored(self, server, rng, tmp_path, monkeypatch):
        voxels = rng.integers(0, 255, (128, 128, 160), dtype=np.uint8)  # noise, which does not compress
        here = nifti(server.folder / "large.nii.gz", voxels)
        monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
        source = open_map(f"{server.address}/large.nii.gz")
        np.testing.assert_array_equal(source.array(), voxels)
        np.testing.assert_array_equal(open_map(here).array(), voxels)
        assert not (tmp_path / "none").exists()
        assert len([one for one in server.requests if "large" in one]) <= 5

    def test_a_channel_further_back_is_skipped_to(self, server, volume):
        nifti(server.folder / "both.nii", np.stack([volume * 0, volume], axis=-1))
        np.testing.assert_array_equal(open_map(f"{server.address}/both.nii", channel=1).array(), volume)

    def test_names_with_spaces_and_percent_signs(self, server, volume):
        nifti(server.folder / "a b%c.nii.gz", volume)
        assert open_map(f"{server.address}/a%20b%25c.nii.gz").shape == volume.shape

    def test_the_query_is_sent(self, server, volume):
        nifti(server.folder / "scan.nii.gz", volume)
        open_map(f"{server.address}/scan.nii.gz?signature={SIGNATURE}").array()
        assert all(one == f"GET /scan.nii.gz?signature={SIGNATURE}" for one in server.requests)

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_zarr(self, server, volume, zarr_format):
        array = zarr.create_array(
            str(server.folder / "x.zarr"), shape=volume.shape, chunks=(8, 20, 8), dtype="f4", zarr_format=zarr_format
        )
        array[...] = volume
        source = open_map(f"{server.address}/x.zarr?signature={SIGNATURE}")
        np.testing.assert_array_equal(source.array(), volume)
        assert all(SIGNATURE in one for one in server.requests)
        assert version_of(to_path(f"{server.address}/x.zarr")) is None

    def test_an_array_in_an_ome_image_and_the_image(self, server, volume):
        write_ome(server.folder / "image.ome.zarr", [volume], version="0.5")
        assert open_map(f"{server.address}/image.ome.zarr").spacing_mm == (0.0005,) * 3
        assert open_map(f"{server.address}/image.ome.zarr/0").spacing_mm is None

    @pytest.mark.parametrize(
        ("status", "message"),
        [
            (404, "does not exist: the server answers 404"),
            (403, r"access is denied \(403\). If the address was signed"),
            (401, r"access is denied \(401\)"),
            (500, "the server answers 500"),
        ],
    )
    @pytest.mark.usefixtures("impatient")
    def test_errors_are_told_without_what_the_server_says(self, server, status, message):
        server.broken["x.nii.gz"] = status
        with pytest.raises(MapFileError, match=message) as refused:
            open_map(f"{server.address}/x.nii.gz?{SIGNATURE}")
        assert SIGNATURE not in str(refused.value)
        assert "told by the server" not in str(refused.value)

    @pytest.mark.usefixtures("impatient")
    @pytest.mark.parametrize(
        ("address", "message"),
        [
            ("http://127.0.0.1:9", "refuses connections"),
            ("http://no-such-host.invalid", "name of its host is not known"),
        ],
    )
    def test_a_server_that_is_not_there(self, address, message):
        with pytest.raises(MapFileError, match=message):
            open_map(f"{address}/x.nii.gz")

    @pytest.mark.parametrize("ending", [".nii", ".nii.gz"])
    @pytest.mark.parametrize("patience", ["impatient", "server"])
    def test_a_connection_that_is_cut_is_an_error(self, server, rng, ending, patience, request):
        request.getfixturevalue(patience)
        nifti(server.folder / f"x{ending}", rng.integers(0, 255, (128, 128, 160), dtype=np.uint8))
        server.broken[f"x{ending}"] = "cut"
        with pytest.raises(MapFileError, match="connection was cut"):
            count_file(f"{server.address}/x{ending}", scale=1 / 255)

    def test_a_file_that_changes_while_it_is_read_is_an_error(self, server, rng):
        nifti(server.folder / "x.nii", rng.integers(0, 255, (128, 128, 160), dtype=np.uint8))
        source = open_map(f"{server.address}/x.nii")
        nifti(server.folder / "x.nii", rng.integers(0, 255, (128, 128, 160), dtype=np.uint8))
        with pytest.raises(MapFileError, match="was changed while it was read"):
            source.array()

    def test_formats_that_are_not_read_as_they_come_are_refused(self, server):
        with pytest.raises(MapFileError, match=r"only NIfTI .* and zarr are read from elsewhere, not \.npy"):
            open_map(f"{server.address}/x.npy")
        with pytest.raises(MapFileError, match=r"not a kind of file that is known.* cannot be listed"):
            open_map(f"{server.address}/folder/")
        assert not [one for one in server.requests if "npy" in one]

    def test_an_empty_file_is_refused(self, server):
        (server.folder / "x.nii.gz").write_bytes(b"")
        with pytest.raises(MapFileError, match="is empty"):
            open_map(f"{server.address}/x.nii.gz")

    def test_damaged_metadata_and_promises_are_refused(self, server):
        store = server.folder / "x.zarr"
        store.mkdir()
        (store / "zarr.json").write_text("{")
        with pytest.raises(MapFileError, match="not the description of an array"):
            open_map(f"{server.address}/x.zarr")
        (store / "zarr.json").write_text("[]")
        with pytest.raises(MapFileError, match="is not a zarr array"):
            open_map(f"{server.address}/x.zarr")
        zarr.create_array(str(store), shape=(10**4,) * 3, chunks=(10,) * 3, dtype="u1", overwrite=True)
        with pytest.raises(MapFileError, match="no more than 10,000,000 chunks are read from a server"):
            open_map(f"{server.address}/x.zarr")

    @pytest.mark.usefixtures("impatient")
    def test_a_chunk_that_is_denied_is_an_error(self, server, volume):
        array = zarr.create_array(str(server.folder / "x.zarr"), shape=volume.shape, chunks=(8, 20, 16), dtype="f4")
        array[...] = volume
        server.broken["x.zarr/c/1/0/0"] = 403
        with pytest.raises(MapFileError, match="access is denied") as refused:
            open_map(f"{server.address}/x.zarr?{SIGNATURE}").array()
        assert SIGNATURE not in str(refused.value)

    def test_patterns_and_folders_cannot_be_asked_for(self, server):
        with pytest.raises(MapFileError, match="cannot be listed"):
            matches(f"{server.address}/*.nii.gz")
        assert not to_path(server.address).is_dir()
        assert not to_path(server.address).is_symlink()

    def test_versions_are_tags_or_unknown(self, server, volume):
        nifti(server.folder / "x.nii.gz", volume)
        path = to_path(f"{server.address}/x.nii.gz")
        assert version_of(path).startswith("etag ")
        server.tags = False
        assert version_of(path) is None

    def test_a_stream_goes_forward_only(self, server, volume):
        nifti(server.folder / "x.nii", volume)
        with to_path(f"{server.address}/x.nii").open("rb") as stream:
            assert stream.read(4) == (348).to_bytes(4, "little")
            stream.seek(100_000)  # beyond the end
            assert stream.read() == b""
            assert stream.readable()
            with pytest.raises(io.UnsupportedOperation):
                stream.raw.seek(0)

    def test_http_to_others_is_a_warning(self, server, volume, monkeypatch):
        nifti(server.folder / "x.nii.gz", volume)
        monkeypatch.setattr(RemotePath, "is_open_to_all", True)
        assert "not encrypted" in count_file(f"{server.address}/x.nii.gz").warnings[-1]


class TestBuckets:
    def test_nifti_and_zarr(self, bucket, tmp_path, volume):
        here = nifti(tmp_path / "x.nii.gz", volume)
        address = bucket.put("maps/a b%20c.nii.gz", here.read_bytes())
        np.testing.assert_array_equal(open_map(address).array(), volume)
        array = zarr.create_array(str(tmp_path / "x.zarr"), shape=volume.shape, chunks=(8, 20, 8), dtype="f4")
        array[...] = volume
        address = bucket.put_tree(tmp_path / "x.zarr", "maps/x.zarr")
        np.testing.assert_array_equal(open_map(address).array(), volume)
        assert len(open_map(address).files) == len([one for one in (tmp_path / "x.zarr").rglob("*") if one.is_file()])

    def test_the_version_of_a_store_is_that_of_all_its_chunks(self, bucket, tmp_path, volume):
        array = zarr.create_array(str(tmp_path / "x.zarr"), shape=volume.shape, chunks=(8, 20, 8), dtype="f4")
        array[...] = volume
        path = to_path(bucket.put_tree(tmp_path / "x.zarr", "x.zarr"))
        before = version_of(path)
        assert before == version_of(path)
        bucket.put("x.zarr/c/1/0/0", b"changed")
        assert version_of(path) != before

    def test_listing_and_patterns(self, bucket):
        for key in (
            "a/1.nii.gz",
            "a/2.nii.gz",
            "a/b/3.nii.gz",
            "a/.hidden.nii.gz",
            "a/.h/4.nii.gz",
            "z.zarr/0/.zarray",
        ):
            bucket.put(key, b"x")
        bucket.put("z.zarr/.zgroup", b"{}")
        bucket.put("a/", b"")

        def names(pattern):
            return [str(path).removeprefix("s3://scans/") for path in matches(f"s3://scans/{pattern}")]

        assert names("a/*.nii.gz") == ["a/1.nii.gz", "a/2.nii.gz"]
        assert names("a/[2-9].nii.gz") == ["a/2.nii.gz"]
        assert names("*/?.nii.gz") == ["a/1.nii.gz", "a/2.nii.gz"]
        assert names("**/*.nii.gz") == ["a/1.nii.gz", "a/2.nii.gz", "a/b/3.nii.gz"]
        assert names("*.zarr") == ["z.zarr"]
        assert names("a/b/**") == ["a/b/3.nii.gz"]
        assert names("*/b") == ["a/b"]
        assert names("*/c") == []
        assert [path.name for path in walk(to_path("s3://scans"))] == ["1.nii.gz", "2.nii.gz", "3.nii.gz", "z.zarr"]
        assert [one.name for one in list_folder(to_path("s3://scans/a")).folders] == [".h", "b"]
        assert list(objects_below(to_path("s3://scans/nothing"))) == []

    def test_a_large_volume_is_fetched_box_by_box_without_credentials_in_what_other_processes_get(
        self, bucket, tmp_path, volume, monkeypatch
    ):
        monkeypatch.setattr(volumes, "LARGE_VOLUME", 1000)
        monkeypatch.setattr(volume_sweep, "_PIECE_BYTES", 1 << 12)
        array = zarr.create_array(str(tmp_path / "x.zarr"), shape=volume.shape, chunks=(8, 8, 8), dtype="f4")
        array[...] = np.where(volume > 0.1, volume, 0)  # chunks of zeros are not stored
        address = bucket.put_tree(tmp_path / "x.zarr", "x.zarr")
        opened = open_map(address).volume
        assert opened.is_elsewhere
        assert not opened.is_stored.all()
        carried = pickle.dumps(opened)
        assert not any(secret.encode() in carried for secret in (KEY, KEY_ID))
        here, there = (lc.count_volume(one, keep_runs=True) for one in (array, address))
        np.testing.assert_array_equal(there.candidates.label_map(), here.candidates.label_map())
        assert len(lc.count_file(address, mask=address).result.candidates) == 2

    def test_buckets_of_the_other_kind_are_read_alike(self, bucket, tmp_path, volume, monkeypatch):
        key = {"gcs_base_url": bucket.address, "disable_oauth": True, "client_email": "", "private_key": ""}
        (tmp_path / "key.json").write_text(json.dumps(key | {"private_key_id": ""}))
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(tmp_path / "key.json"))
        options = remote_objects._client_options
        monkeypatch.setattr(remote_objects, "_client_options", lambda **_: options(allow_http=True))
        bucket.put("maps/x.nii.gz", nifti(tmp_path / "x.nii.gz", volume).read_bytes())
        array = zarr.create_array(str(tmp_path / "x.zarr"), shape=volume.shape, chunks=(8, 20, 8), dtype="f4")
        array[...] = volume
        bucket.put_tree(tmp_path / "x.zarr", "maps/x.zarr")
        bucket.open_to_all()  # it knows the signatures of its own kind only
        np.testing.assert_array_equal(open_map("gs://scans/maps/x.nii.gz").array(), volume)
        np.testing.assert_array_equal(open_map("gs://scans/maps/x.zarr").array(), volume)
        assert [path.name for path in walk(to_path("gs://scans/maps"))] == ["x.nii.gz", "x.zarr"]

    def test_what_is_not_there(self, bucket):
        with pytest.raises(MapFileError, match="no such object in the bucket"):
            open_map("s3://scans/x.nii.gz")
        with pytest.raises(MapFileError, match="nothing lies below that name"):
            open_map("s3://scans/x.zarr")
        with pytest.raises(MapFileError, match="nothing lies below that name"):
            version_of(to_path("s3://scans/x.zarr"))
        with pytest.raises(MapFileError, match="there is no such bucket"):
            matches("s3://others/*.nii.gz")
        with pytest.raises(MapFileError, match="not a kind of file"):
            open_map("s3://scans/nothing")
        assert not to_path("s3://scans").is_file()
        assert bucket.address

    @pytest.mark.usefixtures("bucket")
    def test_without_credentials_the_message_says_which_are_needed(self, monkeypatch):
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        remote_objects._bucket.cache_clear()
        with pytest.raises(MapFileError, match=r"no credentials in the environment.*AWS_SKIP_SIGNATURE"):
            open_map("s3://scans/x.nii.gz")

    def test_a_damaged_chunk_is_told(self, bucket, tmp_path, volume):
        array = zarr.create_array(str(tmp_path / "x.zarr"), shape=volume.shape, chunks=(24, 20, 16), dtype="f4")
        array[...] = volume
        bucket.put_tree(tmp_path / "x.zarr", "x.zarr")
        bucket.put("x.zarr/c/0/0/0", b"damaged")
        with pytest.raises(MapFileError, match="a chunk is damaged"):
            open_map("s3://scans/x.zarr").array()


class TestErrors:
    """By what the errors of the package say."""

    @pytest.mark.parametrize(
        ("text", "scheme", "message"),
        [
            ("retry_timeout: 5s, operation timed out", "https", "did not answer in time"),
            ("invalid peer certificate", "https", "certificate"),
            ("Received redirect without LOCATION", "s3", "AWS_REGION"),
            ("<Code>RequestTimeTooSkewed</Code>", "s3", "clock"),
            ("Error performing PUT http://169.254.169.254/latest/api/token", "s3", "AWS_ACCESS_KEY_ID"),
            ("error getting credentials", "gs", "GOOGLE_APPLICATION_CREDENTIALS"),
            ("status code: 403 Forbidden", "gs", "GOOGLE_APPLICATION_CREDENTIALS"),
            ("something else", "https", "cannot be reached. Is there a network"),
        ],
    )
    def test_kinds(self, text, scheme, message):
        from obstore.exceptions import GenericError

        with (
            pytest.raises(MapFileError, match=message),
            remote_objects.explained(RemotePath.of(f"{scheme}://somewhere/x.nii.gz")),
        ):
            raise GenericError(text)

    def test_mistakes_of_ours_are_not_hidden(self):
        with pytest.raises(TypeError), remote_objects.explained(RemotePath.of("s3://scans/x")):
            raise TypeError


def test_results_come_in_order_and_no_more_is_done_than_is_asked_for():
    done = []
    calls = (lambda n=n: done.append(n) or n for n in range(100))
    results = ahead(calls, n_threads=2, n_ahead=3)
    assert [next(results), next(results)] == [0, 1]
    results.close()
    assert len(done) <= 6


def test_without_the_package_the_message_names_the_extra(monkeypatch):
    import sys

    from lesioncount.errors import MissingExtraError

    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[remote\]'"):
        open_map("https://example.org/x.nii.gz")

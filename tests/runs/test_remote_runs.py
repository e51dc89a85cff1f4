"""Runs over data that lives elsewhere: what is found, named, resumed and recorded, and that no secret is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import zarr
from local_servers import KEY, KEY_ID, SIGNATURE

from lesioncount.cli import main
from lesioncount.cohort.inputs import find_maps, root_of
from lesioncount.errors import MapFileError
from lesioncount.files.remote_path import to_path
from lesioncount.runs import Selection, Settings, count_batch, count_files


@pytest.fixture
def scan(tmp_path, rng):
    voxels = rng.uniform(0, 0.05, (16, 16, 16)).astype(np.float32)
    voxels[2:5, 3:6, 4:6] = 0.75
    nib.save(nib.Nifti1Image(voxels, np.eye(4)), tmp_path / "scan.nii.gz")
    return (tmp_path / "scan.nii.gz").read_bytes()


def names(results):
    return [scan.name for scan in results.scans]


def test_folders_patterns_and_single_maps_of_a_bucket(bucket, scan, tmp_path):
    for key in ("maps/sub-01/a.nii.gz", "maps/sub-02/a.nii.gz", "maps/notes.txt"):
        bucket.put(key, scan)
    array = zarr.create_array(str(tmp_path / "z.zarr"), shape=(8, 8, 8), dtype="f4")
    array[...] = 0.3
    bucket.put_tree(tmp_path / "z.zarr", "maps/z.zarr")
    assert names(count_batch(["s3://scans/maps"], tmp_path / "1")) == ["sub-01__a", "sub-02__a", "z"]
    assert names(count_batch(["s3://scans/maps/*/*.nii.gz"], tmp_path / "2")) == ["sub-01__a", "sub-02__a"]
    assert names(count_batch(["s3://scans/maps/sub-02/a.nii.gz"], tmp_path / "3")) == ["sub-02__a"]
    rooted = count_batch(["s3://scans/maps/z.zarr"], tmp_path / "4", selection=Selection(root="s3://scans"))
    assert names(rooted) == ["maps__z"]
    table = count_files("s3://scans/maps/sub-01/a.nii.gz")
    assert len(table) == 1
    with pytest.raises(MapFileError, match="does not exist, and matches no file"):
        find_maps(["s3://scans/none"])
    bucket.put("others/notes.txt", b"")
    with pytest.raises(MapFileError, match="There are no maps in the folder s3://scans/others"):
        find_maps(["s3://scans/others"])


def test_in_a_bids_dataset_only_maps_of_probabilities_are_maps(bucket, scan):
    bucket.put("data/dataset_description.json", b"{}")
    for suffix in ("probseg", "mask", "T1w"):
        bucket.put(f"data/sub-01/anat/sub-01_{suffix}.nii.gz", scan)
    assert [path.name for path in find_maps(["s3://scans/data"])] == ["sub-01_probseg.nii.gz"]
    assert [path.name for path in find_maps(["s3://scans/data/sub-01"])] == ["sub-01_probseg.nii.gz"]


def test_results_that_were_copied_to_a_bucket_are_no_maps(bucket, scan, tmp_path):
    bucket.put("maps/a.nii.gz", scan)
    count_batch(["s3://scans/maps"], tmp_path / "out", settings=Settings(save_labels=True))
    bucket.put_tree(tmp_path / "out", "maps/out")
    assert [path.name for path in find_maps(["s3://scans/maps"])] == ["a.nii.gz"]


def test_masks_and_regions_may_live_elsewhere_too(bucket, scan, tmp_path):
    for key in ("maps/a.nii.gz", "maps/b.nii.gz"):
        bucket.put(key, scan)
    labels = np.zeros((16, 16, 16), np.uint8)
    labels[:8] = 3
    nib.save(nib.Nifti1Image(labels, np.eye(4)), tmp_path / "labels.nii.gz")
    for key in ("masks/a.nii.gz", "masks/b.nii.gz", "atlas.nii.gz"):
        bucket.put(key, (tmp_path / "labels.nii.gz").read_bytes())
    for number, mask in enumerate(("s3://scans/masks", "s3://scans/masks/{name}.nii.gz", "s3://scans/atlas.nii.gz")):
        results = count_batch(["s3://scans/maps"], tmp_path / str(number), mask=mask, regions="s3://scans/atlas.nii.gz")
        assert [scan.error for scan in results.scans] == [None, None]
        assert results.scans[0].files.regions == "s3://scans/atlas.nii.gz"
        assert results.scans[0].files.mask_sha256.startswith("etag ")


def test_images_of_a_report_may_live_elsewhere_and_are_known_by_their_versions(bucket, scan, tmp_path):
    pytest.importorskip("matplotlib")
    from lesioncount.report import SectionWriter, write_report

    for number in range(2):
        bucket.put(f"maps/sub-{number}_probseg.nii.gz", scan)
        bucket.put(f"images/sub-{number}_FLAIR.nii.gz", scan)
    out, selection = tmp_path / "out", Selection(images="s3://scans/images", images_suffix="_FLAIR")
    results = count_batch(["s3://scans/maps"], out, selection=selection, show=SectionWriter(to_path(selection.images)))
    page = write_report(results, images="s3://scans/images", images_suffix="_FLAIR").read_text()
    assert "there is no image" not in page
    assert "lives elsewhere" not in page


@pytest.mark.parametrize("resampled", [False, True])
@pytest.mark.parametrize("maps", ["here", "elsewhere"])
def test_images_of_a_page_of_changes_may_live_elsewhere(bucket, scan, tmp_path, maps, resampled):
    pytest.importorskip("matplotlib")
    larger = tmp_path / "larger.nii.gz"
    nib.save(nib.Nifti1Image(np.zeros((16, 16, 20), np.float32), np.eye(4)), larger)
    contents = {"ses-01": scan, "ses-02": larger.read_bytes() if resampled else scan}
    for session, content in contents.items():
        bucket.put(f"maps/{session}/sub-1_probseg.nii.gz", content)
        bucket.put(f"images/{session}/sub-1_FLAIR.nii.gz", content)
        (tmp_path / "maps" / session).mkdir(parents=True)
        (tmp_path / "maps" / session / "sub-1_probseg.nii.gz").write_bytes(content)
    root = str(tmp_path / "maps") if maps == "here" else "s3://scans/maps"
    out = str(tmp_path / "out")
    command = ["compare", *(f"{root}/{session}" for session in contents), "-o", out, "--quiet", "--report"]
    images = ["--images", "s3://scans/images", "--images-suffix", "_FLAIR"]
    assert main([*command, *images]) == 0
    page = (tmp_path / "out" / "changes.html").read_text("utf-8")
    assert "Shown on the images." in page
    assert main([*command, *images, "--resume"]) == 0
    assert (tmp_path / "out" / "changes.html").read_text("utf-8") == page
    if maps == "here":  # else they are fetched only while they are compared
        from lesioncount.report import write_report

        again = write_report(out, images="s3://scans/images/{folder}/sub-1_FLAIR.nii.gz")
        assert "Shown on the images." in again.read_text("utf-8")


def test_a_run_is_resumed_by_the_versions_of_objects(bucket, scan, tmp_path):
    out = tmp_path / "out"
    for key in ("maps/a.nii.gz", "maps/b.nii.gz"):
        bucket.put(key, scan)
    first = count_batch(["s3://scans/maps"], out)
    assert first.scans[0].files.sha256.startswith("etag ")
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("?.json")}
    bucket.put("maps/b.nii.gz", scan + bytes(10))
    count_batch(["s3://scans/maps"], out, resume=True)
    after = {path.name: path.stat().st_mtime_ns for path in out.glob("?.json")}
    assert before["a.json"] == after["a.json"]
    assert before["b.json"] != after["b.json"]


@pytest.mark.parametrize("tags", [True, False])
def test_without_versions_everything_is_counted_again(server, scan, tmp_path, tags):
    (server.folder / "a.nii.gz").write_bytes(scan)
    server.tags = tags
    count_batch([f"{server.address}/a.nii.gz"], tmp_path / "out")
    before = (tmp_path / "out" / "a.json").stat().st_mtime_ns
    count_batch([f"{server.address}/a.nii.gz"], tmp_path / "out", resume=True)
    assert ((tmp_path / "out" / "a.json").stat().st_mtime_ns == before) is tags


@pytest.mark.usefixtures("impatient")
def test_one_bad_address_is_a_scan_that_fails_and_the_others_are_counted(server, scan, tmp_path):
    for name in ("good", "denied", "cut"):
        (server.folder / f"{name}.nii.gz").write_bytes(scan)
    server.broken = {"denied.nii.gz": 403, "cut.nii.gz": "cut"}
    addresses = [f"{server.address}/{name}.nii.gz" for name in ("missing", "denied", "cut", "good")]
    results = count_batch(addresses, tmp_path / "out")
    assert [scan.name for scan in results.counted] == ["good"]
    errors = {scan.name: scan.error for scan in results.failed}
    assert "404" in errors["missing"]
    assert "403" in errors["denied"]
    assert "cut" in errors["cut"]


def test_inputs_of_several_places_are_refused(tmp_path):
    for other in ("s3://others/x.nii.gz", str(tmp_path)):
        with pytest.raises(MapFileError, match="in several places"):
            root_of(["s3://scans/x.nii.gz", other])
    assert str(root_of(["s3://scans/a/b/x.nii.gz", "s3://scans/a/c/x.nii.gz"])) == "s3://scans/a"
    assert str(root_of(["s3://scans/sub-01/anat/x.nii.gz"])) == "s3://scans"


def test_addresses_that_differ_only_in_their_query_are_refused():
    with pytest.raises(MapFileError, match="given twice, with two queries"):
        find_maps(["https://example.org/x.nii.gz?a", "https://example.org/x.nii.gz?b"])
    assert len(find_maps(["https://example.org/x.nii.gz?a", "https://example.org/x.nii.gz?a"])) == 1


def test_maps_elsewhere_are_not_fetched_because_a_record_names_them(server, scan, tmp_path, capsys):
    (server.folder / "a.nii.gz").write_bytes(scan)
    (tmp_path / "truth").mkdir()
    nib.save(nib.Nifti1Image(np.ones((16, 16, 16), np.uint8), np.eye(4)), tmp_path / "truth" / "a.nii.gz")
    out = str(tmp_path / "out")
    assert main(["count", f"{server.address}/a.nii.gz", "-o", out, "--quiet"]) == 0
    server.requests.clear()
    assert main(["evaluate", out, "--truth", str(tmp_path / "truth"), "-o", str(tmp_path / "e")]) != 0
    assert "fetched only while it is counted" in capsys.readouterr().err
    from lesioncount.report import write_report

    write_report(out)
    assert server.requests == []


def everything_in(folder: Path) -> bytes:
    return b"\n".join(name + b"\n" + file.read_bytes() for file in folder.rglob("*") if file.is_file()
                      for name in [str(file).encode()])  # fmt: skip


@pytest.mark.slow  # ten processes, one after the other
def test_no_credential_is_written_or_printed(bucket, server, scan, tmp_path):
    """Whole runs in processes of their own: all files, all that is printed, and what goes wrong."""
    bucket.put("maps/sub-01_probseg.nii.gz", scan)
    (server.folder / "b.nii.gz").write_bytes(scan)
    (server.folder / "denied.nii.gz").write_bytes(scan)
    server.broken["denied.nii.gz"] = 403
    out, printed = tmp_path / "out", ""
    signed = f"?X-Amz-Signature={SIGNATURE}"
    runs = {
        0: ["count", "s3://scans/maps", "s3://scans/maps/sub-01_probseg.nii.gz", "-o", out / "1", "--report",
            "--write=bids", "-v"],
        1: ["count", f"{server.address}/b.nii.gz{signed}", f"{server.address}/denied.nii.gz{signed}", "-j", "2",
            "-o", out / "2", "--write=labels", "--report", "-v", "--mask", f"{server.address}/b.nii.gz{signed}"],
        2: ["count", f"https://user:{KEY}@127.0.0.1/x.nii.gz", "-o", out / "3", "--verbose"],
    }  # fmt: skip
    more = [
        (2, ["count", "s3://scans/maps", "--mask", f"https://user:{KEY}@h/x.nii.gz", "-o", out / "4"]),
        (0, ["inspect", f"{server.address}/b.nii.gz{signed}", "-v"]),
        (2, ["inspect", f"{server.address}/denied.nii.gz{signed}", "-v"]),
        (2, ["inspect", f"{server.address}/denied.nii.gz{signed}", f"https://user:{KEY}@h/x.nii.gz{signed}"]),
        (2, ["count", f"{server.address}/b.nii.gz{signed}", "-o", f"https://user:{KEY}@h/x{signed}"]),
        (2, ["count", f"{server.address}/b.nii.gz{signed}", "-o", f"https://h/x{signed}"]),
        (1, ["count", f"{server.address}/denied.nii.gz{signed}", "-o", out / "5", "-v"]),
    ]
    for code, arguments in [*runs.items(), *more]:
        done = subprocess.run(
            [sys.executable, "-m", "lesioncount", *map(str, arguments)], capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
        printed += done.stdout + done.stderr
    written = everything_in(out)
    assert b"s3://scans/maps/sub-01_probseg.nii.gz" in written
    assert b"/b.nii.gz" in written
    for secret in (KEY_ID, KEY, SIGNATURE, "X-Amz-Signature"):
        assert secret not in printed
        assert secret.encode() not in written

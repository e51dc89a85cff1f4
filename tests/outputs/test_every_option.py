"""Which files each option writes, and that they go when they are no longer wanted or no longer right."""

from pathlib import Path

import numpy as np
import pytest
from nifti_files import save
from ome_stores import write_ome
from two_kinds import COMPARE, COUNT

from lesioncount.cli import main
from lesioncount.files import volumes

ALWAYS = {
    "count": {"run.json", "runs.jsonl", "counts.tsv", "lesions.tsv", "sub-1.json", "sub-2.json"},
    "compare": {"run.json", "runs.jsonl", "changes.tsv", "lineages.tsv", "sub-1.json", "sub-2.json"},
}

# What options add: names with the name of a patient in their place, and names of the run.
ADDED = {
    "count": {
        "--write=labels": {"{}_lesions.nii.gz"},
        "--write=existence": {"{}_existence.nii.gz"},
        "--write=colours": {f"{{}}_lesions{ending}" for ending in (".nii.gz", ".label", ".ctbl", ".lut")},
        "--write=bids": {
            "{}/anat/{}_seg-lesions_dseg.nii.gz", "{}/anat/{}_seg-lesions_dseg.tsv",
            "{}/anat/{}_seg-lesions_dseg.json", "{}/anat/{}_desc-existence_probseg.nii.gz",
            ".bidsignore", "README", "dataset_description.json", "participants.tsv", "participants.json",
            "probseg.json",
        },
        "--write=parquet": {"counts.parquet", "lesions.parquet"},
        "--csv=semicolon": {"counts.csv", "lesions.csv"},
        "--report": {"report.html"},
    },
    "compare": {
        "--write=labels": {"{}__1_lineages.nii.gz", "{}__2_lineages.nii.gz", "{}_changes.nii.gz"},
        "--write=parquet": {"changes.parquet", "lineages.parquet"},
        "--csv=comma": {"changes.csv", "lineages.csv"},
        "--report": {"changes.html"},
    },
}  # fmt: skip

NEEDS = {"--write=parquet": "pyarrow", "--report": "matplotlib"}

# Each option alone, and all together.
WAYS = [
    (kind, one)
    for kind in (COUNT, COMPARE)
    for one in (*((name,) for name in ADDED[kind.name]), tuple(ADDED[kind.name]))
]
ways = pytest.mark.parametrize(("kind", "options"), WAYS, ids=str)


def names(out):
    return {path.relative_to(out).as_posix() for path in Path(out).rglob("*") if path.is_file()}


def added(kind, options, patients):
    wanted = {name for option in options for name in ADDED[kind.name][option]}
    return {name.replace("{}", patient) for name in wanted for patient in patients}


@pytest.fixture
def maps(tmp_path, kind):
    return kind.cohort(tmp_path / "maps", ("sub-1", "sub-2"))


@pytest.fixture
def out(tmp_path, options):
    for option in options:
        if option in NEEDS:
            pytest.importorskip(NEEDS[option])
    return tmp_path / "out"


@ways
def test_an_option_writes_its_files_and_no_others(kind, options, maps, out):
    assert kind.run(maps, out, *options) == 0
    assert names(out) == ALWAYS[kind.name] | added(kind, options, ("sub-1", "sub-2"))


@ways
def test_files_that_are_no_longer_wanted_go_when_a_run_is_replaced(kind, options, maps, out):
    assert kind.run(maps, out, *options) == 0
    assert kind.run(maps, out, "--overwrite") == 0
    assert names(out) == ALWAYS[kind.name]


@ways
def test_files_of_a_patient_who_is_gone_go_when_a_run_is_replaced(kind, options, maps, out):
    assert kind.run(maps, out, *options) == 0
    for time in kind.times:
        (maps / time / "sub-2.nii.gz").unlink()
    assert kind.run(maps, out, *options, "--overwrite") == 0
    assert names(out) == (ALWAYS[kind.name] | added(kind, options, ("sub-1",))) - {"sub-2.json"}


@ways
def test_files_of_a_patient_who_fails_now_go(kind, options, maps, out):
    assert kind.run(maps, out, *options) == 0
    (maps / kind.times[-1] / "sub-2.nii.gz").write_bytes(b"broken since")
    assert kind.run(maps, out, *options, "--resume") == 1
    assert names(out) == ALWAYS[kind.name] | added(kind, options, ("sub-1",))


@ways
def test_files_that_are_missing_are_made_again_and_the_same(kind, options, maps, out):
    assert kind.run(maps, out, *options) == 0
    before = {name: (out / name).read_bytes() for name in names(out)}
    of_run = ("run.json", "runs.jsonl")
    for name in names(out) - ALWAYS[kind.name]:
        (out / name).unlink()
    assert kind.run(maps, out, *options, "--resume") == 0
    pages = {"report.html", "changes.html"}  # which say when they were written
    assert names(out) == set(before)
    assert all((out / name).read_bytes() == before[name] for name in set(before) - pages - {*of_run})


@ways
def test_an_option_of_a_resumed_run_adds_its_files(kind, options, maps, out):
    assert kind.run(maps, out) == 0
    assert kind.run(maps, out, *options, "--resume") == 0
    assert names(out) == ALWAYS[kind.name] | added(kind, options, ("sub-1", "sub-2"))


class TestZarr:
    """Label maps of zarr stores are images, or stores, or both."""

    ALWAYS = ALWAYS["count"] - {"sub-1.json", "sub-2.json"} | {"a.json"}

    def store(self, folder, version):
        zarr = pytest.importorskip("zarr")
        voxels = np.zeros((8, 8, 8), np.float32)
        voxels[1:3, 2:4, 1:6] = 0.7
        if version is not None:
            return write_ome(folder / "a.zarr", [voxels], version=version)
        zarr.create_array(str(folder / "a.zarr"), shape=voxels.shape, dtype="f4", chunks=(4, 4, 4))[...] = voxels
        return folder / "a.zarr"

    @pytest.mark.parametrize("large", [False, True])
    @pytest.mark.parametrize(("version", "last"), [(None, None), ("0.4", ".zgroup"), ("0.5", "zarr.json")])
    def test_label_maps_are_written_and_removed(self, tmp_path, monkeypatch, version, last, large):
        store, out = self.store(tmp_path, version), str(tmp_path / "out")
        monkeypatch.setattr(volumes, "LARGE_VOLUME", 100 if large else 1 << 20)
        command = ["count", str(store), "-o", out, "--quiet"]
        assert main([*command, "--write=labels"]) == 0
        expected = {"a_lesions.nii.gz"} if not large else set() if last else {"a_lesions.zarr/.zarray"}
        expected |= {f"a_lesions.ome.zarr/{last}"} if last else set()
        made = {name for name in names(out) if name.rpartition("/")[2] in ("a_lesions.nii.gz", ".zarray", last)}
        assert {name for name in made if name.count("/") < 2} == expected
        before = (tmp_path / "out" / "a.json").stat().st_mtime_ns
        assert main([*command, "--write=labels", "--resume"]) == 0
        assert (tmp_path / "out" / "a.json").stat().st_mtime_ns == before
        assert main([*command, "--overwrite"]) == 0
        assert names(out) == self.ALWAYS
        assert not [path for path in Path(out).iterdir() if path.is_dir()]

    def test_a_store_of_a_scan_that_is_gone_goes(self, tmp_path):
        store, out = self.store(tmp_path / "maps", "0.5"), tmp_path / "out"
        save(tmp_path / "maps" / "b.nii.gz", np.zeros((4, 5, 6), np.float32))
        command = ["count", str(tmp_path / "maps"), "-o", str(out), "--write=labels", "--quiet"]
        assert main(command) == 0
        assert (out / "a_lesions.ome.zarr").is_dir()
        store.rename(tmp_path / "away.zarr")
        assert main([*command, "--overwrite"]) == 0
        assert names(out) == self.ALWAYS - {"a.json"} | {"b.json", "b_lesions.nii.gz"}
        assert not [path for path in out.iterdir() if path.is_dir()]

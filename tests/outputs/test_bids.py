"""Results as a BIDS derivative."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import pytest
from nifti_files import AFFINE, save

import lesioncount as lc
from lesioncount.cli import main
from lesioncount.cohort.whose import Whose
from lesioncount.errors import MapFileError
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.nifti import nifti_bytes
from lesioncount.outputs.bids import _COLUMNS, _MEANING, BidsPlace
from lesioncount.runs import Selection, Settings, count_batch

SHAPE = (9, 10, 11)


def probabilities(rng):
    return (rng.random(SHAPE) ** 8).astype(np.float32)


@pytest.fixture
def maps(tmp_path, rng):
    """Two participants, one of them with two visits."""
    for sub, ses in (("01", "01"), ("01", "02"), ("02", "01")):
        base = f"sub-{sub}/ses-{ses}/anat/sub-{sub}_ses-{ses}"
        save(tmp_path / "maps" / f"{base}_label-lesion_probseg.nii.gz", probabilities(rng))
    return tmp_path / "maps"


def files_in(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def table(path):
    header, *lines = path.read_text().splitlines()
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


def issues_of(dataset):
    """What the validator of BIDS says: severity and the rest."""
    program = Path(sys.executable).with_name("bids-validator-deno")
    found = shutil.which(program) or shutil.which("bids-validator-deno")
    if found is None:
        pytest.skip("bids-validator-deno is not installed: it is in the dependency group test")
    run = subprocess.run([found, str(dataset), "--json"], capture_output=True, text=True, check=False)
    return json.loads(run.stdout)["issues"]["issues"]


def test_candidates_go_where_bids_has_them(maps, tmp_path):
    out = tmp_path / "out"
    assert main(["count", str(maps), "-o", str(out), "--write=bids", "--quiet"]) == 0
    base = out / "sub-01/ses-02/anat/sub-01_ses-02"
    source = maps / "sub-01/ses-02/anat/sub-01_ses-02_label-lesion_probseg.nii.gz"
    result = lc.count_lesions(np.asarray(nibabel.load(source).dataobj))
    labels = nibabel.load(f"{base}_seg-lesions_dseg.nii.gz")
    np.testing.assert_array_equal(labels.dataobj, result.candidates.label_map())
    np.testing.assert_array_equal(labels.affine, AFFINE)
    assert labels.header.get_intent()[0] == "label"
    existence = nibabel.load(f"{base}_desc-existence_probseg.nii.gz")
    np.testing.assert_array_equal(existence.dataobj, result.candidates.existence_map())
    rows = table(Path(f"{base}_seg-lesions_dseg.tsv"))
    assert [int(row["index"]) for row in rows] == list(range(1, len(result.candidates) + 1))
    assert [float(row["existence"]) for row in rows] == pytest.approx(result.existence, rel=1e-5)
    sidecar = json.loads(Path(f"{base}_seg-lesions_dseg.json").read_text())
    assert sidecar["LesionCount"]["Mode"] == result.distribution.mode()
    assert sidecar["Sources"] == [f"bids:maps:{source.relative_to(maps).as_posix()}"]
    described = json.loads((out / "dataset_description.json").read_text())
    assert described["GeneratedBy"][0]["Name"] == "lesioncount"
    assert described["DatasetLinks"] == {"maps": "../maps"}
    assert [row["participant_id"] for row in table(out / "participants.tsv")] == ["sub-01", "sub-02"]
    assert [row["session_id"] for row in table(out / "counts.tsv")] == ["ses-01", "ses-02", "ses-01"]


def test_every_column_of_candidates_has_a_meaning():
    assert set(_COLUMNS) <= set(_MEANING)


def test_the_validator_finds_no_error(maps, tmp_path, rng):
    extra = "acq-3D_ce-gd_rec-norm_run-1_space-MNI152NLin2009cAsym_desc-net"
    save(maps / f"sub-03/anat/sub-03_{extra}_probseg.nii.gz", probabilities(rng))
    save(maps / "sub-04/anat/sub-04_probseg.nii.gz", np.zeros(SHAPE, np.float32))
    out = tmp_path / "out"
    options = ["--write=bids", "--quiet", "--report", "--write=labels", "--protocol", "peaks"]
    assert main(["count", str(maps), "-o", str(out), *options]) == 0
    issues = issues_of(out)
    assert not [issue for issue in issues if issue["severity"] == "error"]
    assert {issue["code"] for issue in issues} <= {"TOO_FEW_AUTHORS", "SIDECAR_KEY_RECOMMENDED"}
    (out / "sub-01" / "sub-01_wrong.nii.gz").touch()
    assert [issue for issue in issues_of(out) if issue["severity"] == "error"], "it does find errors"


def test_participants_of_a_pattern_get_names_that_bids_allows(tmp_path, rng):
    for path in ("PAT 7/2024-01-31/prob.nii.gz", "PAT 8/2024-02-01/prob.nii.gz"):
        save(tmp_path / "in" / path, probabilities(rng))
    pattern = r"(?P<participant>PAT \d+)/(?P<session>[\d-]+)"
    out = tmp_path / "out"
    assert (
        main(["count", str(tmp_path / "in"), "-o", str(out), "--write=bids", "--quiet", "--name-pattern", pattern]) == 0
    )
    assert (out / "sub-PAT7/ses-20240131/anat/sub-PAT7_ses-20240131_seg-lesions_dseg.nii.gz").exists()
    assert table(out / "participants.tsv")[1] == {"participant_id": "sub-PAT8", "source_id": "PAT 8"}


@pytest.mark.parametrize(
    ("paths", "pattern", "message"),
    [
        (["case_1.nii.gz"], None, "it must be known whose scans they are, but case_1.nii.gz does not say so"),
        (["P-1.nii.gz", "P_1.nii.gz"], "(?P<participant>P.1)", "P-1 and P_1 would both be sub-P1"),
        (["P1_a.nii.gz", "P1_b.nii.gz"], "(?P<participant>P1)", "would have the same files in BIDS, sub-P1/anat/"),
    ],
)  # fmt: skip
def test_scans_without_a_place_of_their_own_are_refused(tmp_path, rng, paths, pattern, message):
    for path in paths:
        save(tmp_path / "in" / path, probabilities(rng))
    with pytest.raises(MapFileError, match=message):
        count_batch(
            [tmp_path / "in"],
            tmp_path / "out",
            settings=Settings(bids=True),
            selection=Selection(name_pattern=pattern),
        )
    assert not (tmp_path / "out").exists()


def test_names_follow_the_order_of_bids():
    whose = Whose("sub-01", None, {"space": "MNI", "desc": "net", "acq": "3D", "run": "2", "label": "lesion"})
    place = BidsPlace.of(whose)
    assert place.labels == "sub-01/anat/sub-01_acq-3D_run-2_space-MNI_seg-lesions_desc-net_dseg"
    assert place.existence == "sub-01/anat/sub-01_acq-3D_run-2_space-MNI_desc-netexistence_probseg"


def test_our_own_derivative_is_no_input(maps, tmp_path):
    out = maps / "derivatives" / "lesioncount"
    for option in ("--write=bids", "--overwrite"):
        assert main(["count", str(maps), "-o", str(out), "--write=bids", "--quiet", option]) == 0
        assert len(table(out / "counts.tsv")) == 3
    assert main(["count", str(maps), "-o", str(tmp_path / "other"), "--quiet"]) == 0
    assert len(table(tmp_path / "other" / "counts.tsv")) == 3
    shutil.copytree(out, tmp_path / "copy", ignore=shutil.ignore_patterns("run.json", "runs.jsonl"))
    assert main(["count", str(tmp_path / "copy"), "-o", str(tmp_path / "again"), "--quiet"]) == 2


def test_resume_makes_maps_that_are_missing_or_empty(maps, tmp_path):
    out = tmp_path / "out"
    count_batch([maps], out, settings=Settings(bids=True))
    base = "sub-01/ses-01/anat/sub-01_ses-01_seg-lesions_dseg"
    before = {name: (out / name).read_bytes() for name in files_in(out)}
    kept = (out / "sub-02/ses-01/anat/sub-02_ses-01_seg-lesions_dseg.nii.gz").stat().st_mtime_ns
    (out / f"{base}.nii.gz").unlink()
    for name in ("desc-existence_probseg.nii.gz", "seg-lesions_dseg.tsv"):  # as a power cut leaves them
        (out / f"sub-01/ses-02/anat/sub-01_ses-02_{name}").write_bytes(b"")
    count_batch([maps], out, settings=Settings(bids=True), resume=True)
    after = {name: (out / name).read_bytes() for name in files_in(out)}
    assert {name for name in before if before[name] != after[name]} <= {"run.json", "runs.jsonl"}
    assert (out / "sub-02/ses-01/anat/sub-02_ses-01_seg-lesions_dseg.nii.gz").stat().st_mtime_ns == kept


def test_overwriting_without_bids_leaves_nothing_of_it_but_what_others_wrote(maps, tmp_path):
    out = tmp_path / "out"
    count_batch([maps], out, settings=Settings(bids=True))
    (out / "sub-01" / "ses-01" / "anat" / "notes.txt").write_text("mine")
    count_batch([maps], out, overwrite=True)
    left = {name for name in files_in(out) if not name.endswith("probseg.json")}
    assert left == {"counts.tsv", "lesions.tsv", "run.json", "runs.jsonl", "sub-01/ses-01/anat/notes.txt"}


def test_files_of_others_in_the_dataset_are_never_written_over(maps, tmp_path, capsys):
    out = tmp_path / "out"
    other = out / "sub-01/ses-01/anat/sub-01_ses-01_seg-lesions_dseg.nii.gz"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"by hand")
    assert main(["count", str(maps), "-o", str(out), "--write=bids"]) == 2
    assert "is not a result of an earlier run" in capsys.readouterr().err
    assert other.read_bytes() == b"by hand"


def test_a_link_that_leads_out_of_the_dataset_is_not_followed(maps, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (out / "sub-01").symlink_to(tmp_path / "elsewhere")
    results = count_batch([maps], out, settings=Settings(bids=True))
    assert len(results.failed) == 2
    assert "is a link that leads out of" in results.failed[0].error
    assert not list((tmp_path / "elsewhere").rglob("*"))


def test_calibrated_existence_is_what_the_map_shows(maps, tmp_path):
    calibration = tmp_path / "w.json"
    assert main(["calibrate", "--positive-weight", "3", "-o", str(calibration), "--quiet"]) == 0
    out = tmp_path / "out"
    assert main(["count", str(maps), "-o", str(out), "--write=bids", "--quiet", "--calibration", str(calibration)]) == 0
    base = out / "sub-02/ses-01/anat/sub-02_ses-01"
    labels, existence = (
        np.asarray(nibabel.load(f"{base}_{kind}.nii.gz").dataobj)
        for kind in ("seg-lesions_dseg", "desc-existence_probseg")
    )
    for row in table(Path(f"{base}_seg-lesions_dseg.tsv")):
        assert float(row["existence_calibrated"]) < float(row["existence"])
        assert existence[labels == int(row["index"])] == pytest.approx(float(row["existence_calibrated"]), rel=1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.float32])
@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 6), (40000, 2, 1)])
def test_nifti_files_are_read_back(tmp_path, rng, shape, dtype):
    voxels = (rng.random(shape) * 200).astype(dtype)
    affine = np.array([[0.0, -2, 0, 5], [1, 0, 0, -7], [0, 0, 3, 9], [0, 0, 0, 1]])
    grids = {
        "placed": VoxelGrid.placed(tmp_path, shape, affine),
        "sized": VoxelGrid(tmp_path, shape, None, (1.0, 2.0, 3.0)[: len(shape)]),
        "unknown": VoxelGrid(tmp_path, shape),
    }
    for name, grid in grids.items():
        path = tmp_path / f"{name}.nii.gz"
        path.write_bytes(nifti_bytes(voxels, grid, intent="label"))
        image = nibabel.load(path)
        np.testing.assert_array_equal(np.asarray(image.dataobj), voxels)
        assert image.get_data_dtype() == dtype
        if name == "placed":
            np.testing.assert_array_equal(image.affine, affine)
        assert lc.files.open_map(path).spacing_mm == (grid.spacing_mm or (1.0,) * len(shape))
        assert (lc.files.open_map(path).affine is None) == (grid.affine is None)


def test_detections_are_a_table_without_images(tmp_path):
    table_of = tmp_path / "d.csv"
    table_of.write_text("scan,x_mm,y_mm,z_mm,score\ncase_1,10,20,30,0.75\ncase_2,1,2,3,0.5\ncase_2,9,20,3,0.25\n")
    out = tmp_path / "out"
    run = ["count", str(table_of), "-o", str(out), "--write", "bids", "--quiet"]
    assert main(run) == 2  # nothing says whose scans they are
    assert main([*run, "--name-pattern", "(?P<participant>case_[0-9]+)"]) == 0
    assert {name for name in files_in(out) if name.startswith("sub-")} == {
        f"sub-case{n}/anat/sub-case{n}_seg-lesions_dseg.{ending}" for n in (1, 2) for ending in ("tsv", "json")
    }
    rows = table(out / "sub-case2" / "anat" / "sub-case2_seg-lesions_dseg.tsv")
    assert [(row["index"], row["existence"], row["peak_x_mm"]) for row in rows] == [
        ("1", "0.5", "1"),
        ("2", "0.25", "9"),
    ]
    described = json.loads((out / "sub-case2" / "anat" / "sub-case2_seg-lesions_dseg.json").read_text())
    assert described["LesionCount"]["Candidates"] == 2
    assert "DatasetLinks" not in json.loads((out / "dataset_description.json").read_text())
    assert [one for one in issues_of(out) if one["severity"] == "error"] == []

"""The network and the maps that ship with the package."""

from importlib.resources import files
from pathlib import Path

import nibabel
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from learning.test_training import tiny, train  # noqa: E402 - after the checks

import lesioncount  # noqa: E402
from lesioncount.learning.config import TrainingConfig  # noqa: E402
from lesioncount.learning.prediction import load_checkpoint, predict  # noqa: E402
from lesioncount_reproduction import samples  # noqa: E402
from lesioncount_reproduction.cohort_files import write_cohort  # noqa: E402
from lesioncount_reproduction.sources import synthetic_cohorts  # noqa: E402
from lesioncount_reproduction.synthetic import GadCohort  # noqa: E402

SAMPLES = Path(str(files("lesioncount") / "samples"))


def test_they_are_small():
    assert (SAMPLES / "network.ckpt").stat().st_size < 1 << 20
    assert sum(path.stat().st_size for path in SAMPLES.rglob("*.nii.gz")) < 1 << 20


def test_there_are_enough_to_calibrate_on():
    assert len(list((SAMPLES / "probs").iterdir())) >= 40
    patients = [{path.name[:7] for path in (SAMPLES / name).iterdir()} for name in ("probs", "new")]
    assert not set.intersection(*patients)


def test_the_maps_are_those_of_the_network():
    trained = load_checkpoint(SAMPLES / "network.ckpt")
    cohort = synthetic_cohorts(TrainingConfig.load("laptop").data)["test"]
    path = min((SAMPLES / "probs").iterdir())
    scan = next(scan for scan in cohort if f"{scan.name}.nii.gz" == path.name)
    assert scan.shape == trained.shape
    with torch.inference_mode():
        p = torch.sigmoid(trained.network.segment(torch.from_numpy(scan.images)[None]))[0, 0].numpy()
    stored = np.asarray(nibabel.load(path).dataobj).T
    np.testing.assert_allclose(stored, p, atol=0.05)  # bytes, and weights of half precision
    mask = np.asarray(nibabel.load(SAMPLES / "masks" / path.name).dataobj).T
    np.testing.assert_array_equal(mask, scan.lesions)


# Mean, largest value and sum of squares of the maps of a cohort, as the network has always predicted them.
PREDICTED = {
    "sub-001_ses-01": (5.167690e-05, 0.0338192, 0.0074502),
    "sub-002_ses-01": (8.350896e-05, 0.0545358, 0.0345966),
    "sub-002_ses-02": (1.781625e-04, 0.2712217, 0.5051405),
    "sub-003_ses-01": (1.008000e-03, 0.9957181, 27.7379505),
    "sub-003_ses-02": (1.702579e-03, 0.9993537, 56.5032240),
    "sub-003_ses-03": (5.206650e-05, 0.0177557, 0.0064795),
}


def test_the_network_predicts_the_same_maps_from_files_as_ever(tmp_path):
    write_cohort(tmp_path / "cohort", GadCohort(3, seed=5, shape=(24, 48, 40)))
    written = predict(SAMPLES / "network.ckpt", tmp_path / "cohort", tmp_path / "maps")
    assert [path.relative_to(tmp_path / "maps").as_posix() for path in written] == [
        f"{one}.nii.gz" for one in PREDICTED
    ]
    for path, expected in zip(written, PREDICTED.values(), strict=True):
        found = np.asarray(nibabel.load(path).dataobj, dtype=np.float64)
        assert (found.mean(), found.max(), (found**2).sum()) == pytest.approx(expected, rel=1e-4), path.name


def test_samples_can_be_made_again(tmp_path, monkeypatch):
    train(tiny(data={"patients": (4, 2, 12)}, run={"epochs": 0}), tmp_path / "net", progress=False)
    monkeypatch.setattr(samples, "_NEW", 2)
    assert samples.main([str(tmp_path / "net" / "best.ckpt"), str(tmp_path / "out")]) == 0
    folders = ("probs", "masks", "new", "new_masks", "images", "member01", "member03")
    names = {folder: {path.name for path in (tmp_path / "out" / folder).iterdir()} for folder in folders}
    assert names["probs"] == names["masks"]
    assert names["new"] == names["new_masks"] == names["images"] == names["member01"] == names["member03"]
    n_scans = len(names["probs"]) + len(names["new"])
    assert len((tmp_path / "out" / "counts.tsv").read_text().splitlines()) == n_scans + 1
    members = [
        np.asarray(nibabel.load(path).dataobj) for path in sorted(tmp_path.glob("out/member0*/sub-012_*1.nii.gz"))
    ]
    assert not np.array_equal(*members[:2])
    assert load_checkpoint(tmp_path / "out" / "network.ckpt").shape == (8, 16, 16)
    over_time = [{path.name[:7] for path in (tmp_path / "out" / name).iterdir()} for name in ("baseline", "followup")]
    assert over_time[0] == over_time[1] == {line[:7] for line in lines_of(tmp_path / "out" / "changes.tsv")}
    atlas = np.asarray(nibabel.load(tmp_path / "out" / "atlas.nii.gz").dataobj)
    assert {str(label) for label in np.unique(atlas)} <= {
        "0",
        *(line[0] for line in lines_of(tmp_path / "out" / "names.tsv")),
    }
    assert {line.split("\t")[1] for line in lines_of(tmp_path / "out" / "participants.tsv")} == {"placebo", "treated"}


def lines_of(table):
    return table.read_text().splitlines()[1:]


def test_patients_who_were_scanned_twice_have_new_lesions_as_the_table_says():
    truth = {line.split("\t")[0]: int(line.split("\t")[1]) for line in lines_of(SAMPLES / "changes.tsv")}
    expected = {}
    for path in sorted((SAMPLES / "baseline").iterdir()):
        later = SAMPLES / "followup" / path.name.replace("ses-01", "ses-02")
        expected[path.name[:7]] = lesioncount.compare_files(path, later).new.mean()
    assert list(expected) == list(truth)
    assert np.mean([abs(expected[name] - truth[name]) for name in truth]) < 0.6

"""From a trained network to maps, members and counts."""

import csv
import subprocess
import sys

import nibabel
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from learning.test_training import TINY, tiny, train  # noqa: E402 - after the checks

from lesioncount.cli import main  # noqa: E402
from lesioncount.errors import ConfigError  # noqa: E402
from lesioncount.learning.cohort_files import write_cohort  # noqa: E402
from lesioncount.learning.prediction import load_network  # noqa: E402
from lesioncount.paper.synthetic import GadCohort  # noqa: E402


def run(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A network that has hardly learned, and a cohort of a few scans."""
    folder = tmp_path_factory.mktemp("trained")
    train(tiny(run={"epochs": 0}), folder / "net", progress=False)
    write_cohort(folder / "cohort", GadCohort(2, seed=5, shape=(8, 16, 16)))
    return folder


def test_maps_are_those_of_the_network_on_the_grid_of_the_images(trained, tmp_path):
    assert run("predict", trained / "net" / "best.ckpt", trained / "cohort", "-o", tmp_path / "maps", "--quiet") == 0
    network, _ = load_network(trained / "net" / "best.ckpt")
    for scan in GadCohort(2, seed=5, shape=(8, 16, 16)):
        image = nibabel.load(tmp_path / "maps" / f"{scan.name}.nii.gz")
        expected = torch.sigmoid(network.segment(torch.from_numpy(scan.images)[None]))[0, 0].detach().numpy()
        np.testing.assert_allclose(np.asarray(image.dataobj), expected.T, atol=1e-5)
        np.testing.assert_allclose(image.affine, scan.affine)


def test_the_whole_chain_to_counts(trained, tmp_path, capsys):
    out = tmp_path / "counts"
    assert run("predict", trained / "net" / "best.ckpt", trained / "cohort", "-o", tmp_path / "m", "--count", out) == 0
    assert (out / "report.html").exists()
    assert "maps written" in capsys.readouterr().out
    truth = trained / "cohort" / "scans.tsv"
    assert run("evaluate", out, "--truth-counts", truth, "-o", tmp_path / "e", "--quiet") == 0


@pytest.mark.parametrize(("option", "n"), [(["--mc-dropout", "3"], 3), (["--tta"], 8)])
def test_members_are_counted_as_an_ensemble(trained, tmp_path, option, n):
    out = tmp_path / "counts"
    arguments = ["predict", trained / "net" / "best.ckpt", trained / "cohort", "-o", tmp_path / "m", "--count", out]
    assert run(*arguments, *option, "--quiet") == 0
    assert len(list((tmp_path / "m").iterdir())) == n
    with (out / "counts.tsv").open() as file:
        assert {row["n_members"] for row in csv.DictReader(file, delimiter="\t")} == {str(n)}
    maps = [np.asarray(nibabel.load(path).dataobj) for path in sorted((tmp_path / "m").glob("*/sub-001_ses-01.nii.gz"))]
    assert not np.array_equal(maps[0], maps[1])


def test_what_cannot_predict_is_refused(trained, tmp_path, capsys):
    assert run("predict", trained / "net" / "config.json", trained / "cohort", "-o", tmp_path / "m") == 2
    assert "no checkpoint of lesioncount train" in capsys.readouterr().err
    assert run("predict", trained / "net" / "best.ckpt", tmp_path, "-o", tmp_path / "m") == 2
    start = ["predict", trained / "net" / "best.ckpt", trained / "cohort", "-o"]
    assert run(*start, tmp_path / "m", "--mc-dropout", "1") == 2
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    assert run(*start, tmp_path / "full") == 2
    assert "--overwrite" in capsys.readouterr().err


def test_a_cohort_on_disk_can_be_learned_from(tmp_path):
    write_cohort(tmp_path / "cohort", GadCohort(6, seed=1, shape=(8, 16, 16)))
    config = tiny(data={"source": "folder", "path": str(tmp_path / "cohort")}, run={"epochs": 0})
    assert "test_accuracy" in train(config, tmp_path / "t", progress=False)
    write_cohort(tmp_path / "small", GadCohort(1, seed=1, shape=(8, 16, 16)))
    config = tiny(data={"source": "folder", "path": str(tmp_path / "small")}, run={"epochs": 0})
    with pytest.raises(ConfigError, match="no scan in the part"):
        train(config, tmp_path / "u", progress=False)


def test_two_processes_train_together(tmp_path):
    (tmp_path / "two.toml").write_text(TINY.replace("epochs = 3", "epochs = 1") + "processes = 2\n")
    command = [sys.executable, "-m", "lesioncount", "train", str(tmp_path / "two.toml"), "-o", str(tmp_path / "t")]
    done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "t" / "scores.json").exists()

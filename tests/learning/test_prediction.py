"""From a trained network to maps, members and counts."""

import csv
import json
import shutil
import subprocess
import sys
from dataclasses import replace

import nibabel
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytest.importorskip("lesioncount_reproduction", reason="needs the reproduction: pip install ./reproduction")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from learning.test_training import TINY, tiny, train  # noqa: E402 - after the checks

from lesioncount.cli import main  # noqa: E402
from lesioncount.errors import CohortError, ConfigError, LesionCountError, MapFileError  # noqa: E402
from lesioncount.folder.output import OutputFolder  # noqa: E402
from lesioncount.integrations.torchmetrics import CountAccuracy  # noqa: E402
from lesioncount.learning.checkpoints import write_checkpoint  # noqa: E402
from lesioncount.learning.config import TrainingConfig  # noqa: E402
from lesioncount.learning.expected import z_scored  # noqa: E402
from lesioncount.learning.module import BestVoxelF1  # noqa: E402
from lesioncount.learning.networks import counting_network  # noqa: E402
from lesioncount.learning.prediction import load_checkpoint, predict, probability_maps  # noqa: E402
from lesioncount.learning.sources import sources_of  # noqa: E402
from lesioncount_reproduction.cohort import SEQUENCES, Cohort  # noqa: E402
from lesioncount_reproduction.cohort_files import write_cohort  # noqa: E402
from lesioncount_reproduction.sources import sources_of as paper_sources  # noqa: E402
from lesioncount_reproduction.synthetic import GadCohort  # noqa: E402


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
    network = load_checkpoint(trained / "net" / "best.ckpt").network
    for scan in GadCohort(2, seed=5, shape=(8, 16, 16)):
        image = nibabel.load(tmp_path / "maps" / f"{scan.name}.nii.gz")
        images = torch.from_numpy(z_scored(scan.images, scan.brain))
        expected = torch.sigmoid(network.segment(images[None]))[0, 0].detach().numpy()
        np.testing.assert_allclose(np.asarray(image.dataobj), expected.T, atol=1e-5)
        np.testing.assert_allclose(image.affine, scan.affine)


@pytest.mark.parametrize("batch_size", [1, 2, 8])
def test_a_batch_of_images_gets_the_maps_that_files_get(trained, tmp_path, batch_size):
    checkpoint = trained / "net" / "best.ckpt"
    predict(checkpoint, trained / "cohort", tmp_path / "maps")
    cohort = GadCohort(2, seed=5, shape=(8, 16, 16))
    scans = [replace(scan, images=z_scored(scan.images, scan.brain)) for scan in cohort]
    maps = list(probability_maps(load_checkpoint(checkpoint), (scan.images for scan in scans), batch_size=batch_size))
    assert len(maps) == len(scans) > 2
    for scan, found in zip(scans, maps, strict=True):
        written = np.asarray(nibabel.load(tmp_path / "maps" / f"{scan.name}.nii.gz").dataobj).T
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, written, atol=1e-5)


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
    assert len(list((tmp_path / "m").glob("member*"))) == n
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


def in_folder(folder, **options):
    """A training on the scans of a BIDS-like folder."""
    data = {
        "source": "files",
        "images": str(folder),
        "channels": tuple(f"_{sequence}" for sequence in SEQUENCES),
        "counts": str(folder / "scans.tsv"),
        "masks": str(folder / "derivatives" / "masks"),
        "mask_suffix": "_label-lesion_mask",
        "nonzero": True,
    }
    return tiny(data=data | options, run={"epochs": 0})


def test_a_cohort_on_disk_can_be_learned_from(tmp_path):
    cohort = GadCohort(6, seed=1, shape=(8, 16, 16))
    write_cohort(tmp_path / "cohort", cohort)
    config = in_folder(tmp_path / "cohort")
    parts = sources_of(config)
    for name, part in parts.items():
        for mine, yours in zip(cohort.split(name), (part[i] for i in range(len(part))), strict=True):
            assert (yours.name, yours.patient, yours.at_least) == (mine.name, f"sub-{mine.patient}", mine.count)
            np.testing.assert_array_equal(yours.mask, mine.lesions)
            np.testing.assert_allclose(yours.images, z_scored(mine.images, mine.brain), atol=1e-6)
    assert "test_accuracy" in train(config, tmp_path / "t", progress=False)
    write_cohort(tmp_path / "small", GadCohort(1, seed=1, shape=(8, 16, 16)))
    with pytest.raises(CohortError, match="puts no picture into"):
        train(in_folder(tmp_path / "small"), tmp_path / "u", progress=False)


class Scanner(Cohort):
    """The same patients from a scanner whose values have another unit and offset."""

    def __init__(self, cohort):
        self._cohort = cohort

    def __len__(self):
        return len(self._cohort)

    def split(self, name, /):
        return type(self)(self._cohort.split(name))

    def scan(self, index, /):
        scan = self._cohort.scan(index)
        return replace(scan, images=np.where(scan.brain, 400 + 70 * scan.images, 0).astype(np.float32))


@pytest.fixture(scope="module")
def raw_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw") / "cohort"
    write_cohort(folder, Scanner(GadCohort(6, seed=1, shape=(8, 16, 16))))
    return folder


@pytest.mark.parametrize("normalize", [True, False])
def test_images_of_a_folder_are_normalised_in_training_and_prediction_alike(raw_folder, normalize, tmp_path):
    config = in_folder(raw_folder, normalize=normalize)
    learned = sources_of(config)["train"][0]
    inside = learned.images[0][learned.images[0] != 0]
    assert (abs(inside.mean()) < 0.01) == (abs(inside.std() - 1) < 0.01) == normalize
    train(config, tmp_path / "t", progress=False)
    trained = load_checkpoint(tmp_path / "t" / "best.ckpt")
    assert trained.expected.intensities == ("brain" if normalize else "unit")
    assert TrainingConfig().data.normalize
    maps = predict(tmp_path / "t" / "best.ckpt", raw_folder, tmp_path / "maps")
    path = next(path for path in maps if path.name == f"{learned.name}.nii.gz")
    images = torch.from_numpy(learned.images)[None]
    expected = torch.sigmoid(trained.network.segment(images))[0, 0].detach().numpy()
    np.testing.assert_allclose(np.asarray(nibabel.load(path).dataobj), expected.T, atol=1e-5)


def test_checkpoints_that_do_not_say_how_images_were_scaled_take_them_as_they_are(trained, tmp_path):
    content = torch.load(trained / "net" / "best.ckpt", weights_only=True)
    del content["expects"], content["checksum"]
    torch.save(content, tmp_path / "old.ckpt")
    expected = load_checkpoint(tmp_path / "old.ckpt").expected
    assert (expected.intensities, expected.resize, expected.suffixes) == ("stored", False, ())


def train_in_two_processes(folder, text):
    (folder / "two.toml").write_text(text + "processes = 2\n")
    command = [sys.executable, "-m", "lesioncount", "train", str(folder / "two.toml"), "-o", str(folder / "t")]
    done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads((folder / "t" / "scores.json").read_text())


@pytest.mark.usefixtures("installed_reproduction")
@pytest.mark.slow
def test_two_processes_train_together(tmp_path):
    train_in_two_processes(tmp_path, TINY.replace("epochs = 3", "epochs = 1"))


@pytest.mark.usefixtures("installed_reproduction")
def test_two_processes_with_hardly_any_scans(tmp_path):
    """Fewer training scans than a batch, one process without a scan to validate, and an odd number to test."""
    text = TINY.replace("epochs = 3", "epochs = 1").replace("batch_size = 2", "batch_size = 3")
    text = text.replace("patients = [4, 2, 2]", "patients = [2, 1, 2]\nseed = 2")
    parts = paper_sources(TrainingConfig.from_toml(text))
    assert len(parts["val"]) == 1
    assert len(parts["test"]) % 2 == 1
    scores = train_in_two_processes(tmp_path, text)
    network = load_checkpoint(tmp_path / "t" / "best.ckpt").network
    f1, accuracy = BestVoxelF1(), CountAccuracy()
    for scan in (parts["test"][i] for i in range(len(parts["test"]))):
        logits, log_probs = network(torch.from_numpy(scan.images)[None])
        f1.update(logits, torch.from_numpy(scan.mask)[None, None])
        accuracy.update(log_probs, torch.tensor([scan.at_least]))
    assert scores["test_voxel_f1"] == pytest.approx(f1.compute().item(), rel=1e-4)
    assert scores["test_accuracy"] == pytest.approx(accuracy.compute().item())


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("[!.]*") if path.is_file()}


def test_nothing_is_replaced_before_everything_is_there(trained, tmp_path, capsys):
    good, cohort, out = trained / "net" / "best.ckpt", trained / "cohort", tmp_path / "m"
    predict(good, cohort, out, mc_dropout=2)
    before = files_of(out)
    assert run("predict", tmp_path / "missing.ckpt", cohort, "-o", out, "--overwrite") == 2
    assert "There is no checkpoint" in capsys.readouterr().err
    assert run("predict", good, tmp_path / "nowhere", "-o", out, "--overwrite") == 2
    damaged = shutil.copytree(cohort, tmp_path / "damaged")
    last = max(damaged.glob("sub-*/**/*_T2w.nii.gz"))
    last.write_bytes(last.read_bytes()[:200])
    assert run("predict", good, damaged, "-o", out, "--overwrite", "--mc-dropout", 2, "--seed", 3) == 2
    assert files_of(out) == before
    assert not list(out.rglob(".lesioncount-*"))


def test_only_maps_of_an_earlier_prediction_are_replaced_or_removed(trained, tmp_path):
    good, cohort, out = trained / "net" / "best.ckpt", trained / "cohort", tmp_path / "m"
    predict(good, cohort, out, mc_dropout=3)
    mine = {"member03/mine.nii.gz", "member07/sub-001_ses-01.nii.gz", "notes.txt", "sub-009.nii.gz"}
    changed = out / "member03" / "sub-001_ses-01.nii.gz"
    for name in mine:
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("mine")
    changed.write_text("edited")
    with pytest.raises(ConfigError, match="--overwrite"):
        predict(good, cohort, out, mc_dropout=2)
    predict(good, cohort, out, mc_dropout=2, overwrite=True)
    assert all((out / name).read_text() == "mine" for name in mine)
    assert {path.name for path in (out / "member03").iterdir()} == {"mine.nii.gz", changed.name}
    before = files_of(out)
    with pytest.raises(MapFileError, match=r"member03/sub-001_ses-01\.nii\.gz is not a result"):
        predict(good, cohort, out, mc_dropout=3, overwrite=True)
    assert files_of(out) == before


def test_two_predictions_do_not_share_a_folder(trained, tmp_path):
    pytest.importorskip("fcntl", reason="runs are not told apart on this system")
    with OutputFolder(tmp_path / "m").alone(), pytest.raises(MapFileError, match="in use by process"):
        predict(trained / "net" / "best.ckpt", trained / "cohort", tmp_path / "m")


def test_a_folder_that_a_failed_prediction_has_left_can_be_used(trained, tmp_path):
    damaged = shutil.copytree(trained / "cohort", tmp_path / "damaged")
    first = min(damaged.glob("sub-*/**/*_T2w.nii.gz"))
    first.write_bytes(b"")
    with pytest.raises(LesionCountError):
        predict(trained / "net" / "best.ckpt", damaged, tmp_path / "m", tta=True)
    predict(trained / "net" / "best.ckpt", trained / "cohort", tmp_path / "m")


def test_networks_for_other_images_are_refused(trained, tmp_path):
    network = counting_network("map", spatial_dims=2, in_channels=3, filters=2, levels=2)
    content = {"network_options": network.options, "network": network.state_dict(), "shape": [16, 16]}
    write_checkpoint(content, tmp_path / "leaf.ckpt")
    with pytest.raises(ConfigError, match="trained on images with 3 channels and 2 axes"):
        predict(tmp_path / "leaf.ckpt", trained / "cohort", tmp_path / "m")
    assert not (tmp_path / "m").exists()

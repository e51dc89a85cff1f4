"""The folder of a training: files of others stay as they are, and one training at a time writes there."""

import os
import shutil
from pickle import PicklingError

import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from learning.test_training import TINY, tiny, train  # noqa: E402 - after the checks

from lesioncount.cli import main  # noqa: E402
from lesioncount.errors import ConfigError, LesionCountError, MapFileError  # noqa: E402
from lesioncount.folder.output import OutputFolder  # noqa: E402
from lesioncount.learning.checkpoints import write_checkpoint  # noqa: E402
from lesioncount.learning.training_folder import TrainingFolder  # noqa: E402

CONFIG = {"run": {"epochs": 0}}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "t"
    train(tiny(**CONFIG), folder)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "t")


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["best.ckpt", "last.ckpt", "config.json", "scores.json"])
@pytest.mark.parametrize("how", [{}, {"resume": True}, {"overwrite": True}])
def test_files_of_others_are_never_replaced(name, how, tmp_path):
    (tmp_path / name).write_text("mine")
    with pytest.raises(LesionCountError):
        train(tiny(**CONFIG), tmp_path, **how)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: "mine"}


@pytest.mark.parametrize("name", ["best.ckpt", "scores.json"])
def test_files_that_were_exchanged_stop_a_new_training(name, folder):
    (folder / name).write_text("mine")
    before = files_of(folder)
    with pytest.raises(MapFileError, match=f"{name} is not a result"):
        train(tiny(**CONFIG), folder, overwrite=True)
    assert files_of(folder) == before


def test_checkpoints_of_another_training_are_files_of_others(folder, tmp_path):
    train(tiny(run={"epochs": 0, "seed": 5}), tmp_path / "other")
    shutil.copy(tmp_path / "other" / "best.ckpt", folder / "best.ckpt")
    before = files_of(folder)
    for how in ({"resume": True}, {"overwrite": True}):
        with pytest.raises(LesionCountError, match=r"best\.ckpt"):
            train(tiny(**CONFIG), folder, **how)
    assert files_of(folder) == before


def test_logs_and_other_files_of_others_stay(tmp_path):
    mine = {"logs/metrics.csv": "mine", "logs/hparams.yaml": "mine", "notes.txt": "mine", "tensorboard/a": "mine"}
    for name, text in mine.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    train(tiny(**CONFIG), tmp_path)
    train(tiny(**CONFIG), tmp_path, overwrite=True)
    train(tiny(**CONFIG), tmp_path, resume=True)
    assert {name: (tmp_path / name).read_text() for name in mine} == mine
    assert "val_voxel_f1" in (tmp_path / "logs" / "metrics-2.csv").read_text()


def test_a_training_that_begins_again_removes_its_logs_of_before_and_no_others(folder):
    TrainingFolder(folder).files.write_text("logs/metrics-2.csv", "resumed")
    (folder / "logs" / "metrics-3.csv").write_text("mine")
    train(tiny(**CONFIG), folder, overwrite=True)
    assert not (folder / "logs" / "metrics-2.csv").exists()
    assert (folder / "logs" / "metrics-3.csv").read_text() == "mine"


def test_a_folder_without_its_ledger_can_be_resumed_and_begun_again(folder):
    (folder / ".lesioncount.tsv").unlink()
    shutil.rmtree(folder / "logs")
    train(tiny(**CONFIG), folder, resume=True)
    (folder / ".lesioncount.tsv").unlink()
    train(tiny(**CONFIG), folder, overwrite=True)


@pytest.mark.parametrize("name", ["best.ckpt", "last.ckpt"])
def test_a_damaged_checkpoint_is_not_resumed(name, folder, tmp_path, capsys):
    (tmp_path / "tiny.toml").write_text(TINY.replace("epochs = 3", "epochs = 0"))
    damaged = bytearray((folder / name).read_bytes())
    for bad in (bytes(len(damaged)), damaged[: len(damaged) // 2], b"", b"\x80\x02cos\nsystem\n(S'false'\ntR."):
        (folder / name).write_bytes(bad)
        before = files_of(folder)
        assert main(["train", str(tmp_path / "tiny.toml"), "-o", str(folder), "--resume", "--quiet"]) == 2
        said = capsys.readouterr().err
        assert name in said
        assert "weights_only" not in said
        assert files_of(folder) == before


def test_a_best_epoch_that_is_gone_is_missed_before_the_training_goes_on(folder):
    (folder / "best.ckpt").unlink()
    with pytest.raises(MapFileError, match=r"best\.ckpt, the best epoch so far, is missing"):
        train(tiny(**CONFIG), folder, resume=True)


def test_a_checkpoint_that_does_not_fit_is_refused(folder):
    content = torch.load(folder / "last.ckpt", weights_only=True)
    content["state_dict"].popitem()
    write_checkpoint(content, folder / "last.ckpt")
    with pytest.raises(ConfigError, match="does not fit this training"):
        train(tiny(**CONFIG), folder, resume=True)


@pytest.mark.parametrize(
    "text",
    ["", "7", "[]", "{}", '{"network": 3}', "[" * 100_000, '{"a":' * 100_000, "\xff", '{"network": {"method": []}}'],
)
def test_a_configuration_that_is_none_is_named(text, folder):
    (folder / "config.json").write_text(text)
    for how in ({"resume": True}, {"overwrite": True}):
        with pytest.raises(ConfigError, match=r"config\.json is not the configuration of a training"):
            train(tiny(**CONFIG), folder, **how)
    assert (folder / "config.json").read_text() == text


def test_two_trainings_do_not_share_a_folder(tmp_path):
    pytest.importorskip("fcntl", reason="runs are not told apart on this system")
    with (
        OutputFolder(tmp_path).alone(),
        pytest.raises(MapFileError, match=f"in use by process {os.getpid()}"),
    ):
        train(tiny(**CONFIG), tmp_path)
    assert not (tmp_path / "config.json").exists()


def test_a_checkpoint_that_cannot_be_finished_leaves_the_one_before(folder):
    """As when the process is killed, or the disk is full, while it is written."""
    before = (folder / "last.ckpt").read_bytes()
    with pytest.raises((AttributeError, TypeError, RuntimeError, PicklingError)):
        TrainingFolder(folder).write_checkpoint({"network": lambda: None}, "last.ckpt")
    assert (folder / "last.ckpt").read_bytes() == before
    assert not list(folder.glob(".lesioncount-*"))

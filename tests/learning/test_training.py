"""Trainings that are small, but whole: they run, they resume, and they predict."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytest.importorskip("lesioncount_reproduction", reason="needs the reproduction: pip install ./reproduction")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from lesioncount.cli import main  # noqa: E402 - after the checks
from lesioncount.errors import ConfigError, MapFileError  # noqa: E402
from lesioncount.learning.batches import EpochSampler, ScanDataset, loader  # noqa: E402
from lesioncount.learning.config import TrainingConfig  # noqa: E402
from lesioncount.learning.module import BestVoxelF1, CountingModule  # noqa: E402
from lesioncount.learning.prediction import load_checkpoint  # noqa: E402
from lesioncount.learning.scans import Kept, LearningScan, Memory  # noqa: E402
from lesioncount.learning.training import train as train_on  # noqa: E402
from lesioncount_reproduction.sources import data_of, sources_of  # noqa: E402

TINY = """
[data]
source = "synthetic"
patients = [4, 2, 2]
shape = [8, 16, 16]
[network]
filters = 2
levels = 2
[run]
pretrain_epochs = 1
epochs = 3
batch_size = 2
threads = 1
"""


def tiny(**sections):
    config = TrainingConfig.from_toml(TINY)
    return replace(config, **{name: replace(getattr(config, name), **values) for name, values in sections.items()})


def train(config, out, **options):
    """Train on the data that the configuration names, those of the paper included."""
    return train_on(config, out, **{"progress": False, "data": data_of(config)} | options)


def weights(path):
    return torch.load(path, weights_only=True)["network"]


def assert_same(a, b):
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)


class Scans(list):
    """A list of scans is a source of them."""


def some_scans(n=5, shape=(12, 14)):
    rng = np.random.default_rng(0)
    return Scans(
        LearningScan(f"s{i}", f"p{i}", rng.normal(size=(2, *shape)).astype(np.float32), np.zeros(shape, np.uint8), i, i)
        for i in range(n)
    )


@pytest.mark.parametrize("method", ["map", "bottleneck", "multihead", "downstream"])
def test_every_method_trains(method, tmp_path):
    scores = train(tiny(network={"method": method}, run={"epochs": 1}), tmp_path / "t", progress=False)
    assert {"test_accuracy", "test_voxel_f1", "test_rps", "test_voxel_ece"} <= set(scores)
    written = json.loads((tmp_path / "t" / "scores.json").read_text())
    assert {name: written[name] for name in scores} == pytest.approx(scores)
    trained = load_checkpoint(tmp_path / "t" / "best.ckpt")
    assert trained.shape == (8, 16, 16)
    assert trained.network(torch.zeros(1, 5, 8, 16, 16)).log_probs.shape == (1, 5)


def test_the_same_seed_gives_the_same_network(tmp_path):
    config = tiny(run={"epochs": 1})
    for name in "ab":
        train(config, tmp_path / name, progress=False)
    train(tiny(run={"epochs": 1, "seed": 1}), tmp_path / "c", progress=False)
    assert_same(weights(tmp_path / "a" / "last.ckpt"), weights(tmp_path / "b" / "last.ckpt"))
    other = weights(tmp_path / "c" / "last.ckpt")
    assert any(not torch.equal(value, other[name]) for name, value in weights(tmp_path / "a" / "last.ckpt").items())


@pytest.mark.usefixtures("installed_reproduction")
def test_a_killed_training_goes_on_as_if_nothing_had_happened(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    command = ["train", str(tmp_path / "tiny.toml"), "--quiet", "-o"]
    assert main([*command, str(tmp_path / "whole")]) == 0
    victim = subprocess.Popen(
        [sys.executable, "-m", "lesioncount", *command, str(tmp_path / "killed")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    last, deadline = tmp_path / "killed" / "last.ckpt", time.monotonic() + 120
    while time.monotonic() < deadline and not (last.exists() and last.stat().st_size):
        time.sleep(0.01)
    os.kill(victim.pid, signal.SIGKILL)  # in the middle of some epoch after the first
    victim.wait()
    assert not (tmp_path / "killed" / "scores.json").exists()
    assert main([*command, str(tmp_path / "killed"), "--resume"]) == 0
    assert_same(weights(tmp_path / "whole" / "last.ckpt"), weights(last))
    assert (tmp_path / "whole" / "scores.json").read_text() == (tmp_path / "killed" / "scores.json").read_text()


def test_folders_with_a_training_are_not_written_over(tmp_path):
    train(tiny(run={"epochs": 0}), tmp_path / "t", progress=False)
    with pytest.raises(ConfigError, match="--resume"):
        train(tiny(run={"epochs": 0}), tmp_path / "t", progress=False)
    with pytest.raises(ConfigError, match="another configuration"):
        train(tiny(run={"epochs": 1}), tmp_path / "t", resume=True, progress=False)
    train(tiny(run={"epochs": 0}), tmp_path / "t", overwrite=True, progress=False)


def test_a_configuration_that_fails_leaves_the_old_training_alone(tmp_path):
    train(tiny(run={"epochs": 0}), tmp_path / "t", progress=False)
    with pytest.raises(ConfigError):
        train(tiny(data={"source": "tape"}), tmp_path / "t", overwrite=True, progress=False)
    assert (tmp_path / "t" / "best.ckpt").exists()
    assert json.loads((tmp_path / "t" / "config.json").read_text())["data"]["source"] == "synthetic"


def test_order_and_changes_depend_on_seed_and_epoch_alone():
    first, again = (ScanDataset(some_scans(), augment=True, seed=3) for _ in range(2))
    again[4], again[1]
    assert torch.equal(first[2]["images"], again[2]["images"])
    before = first[2]["images"]
    EpochSampler(first, shuffle=True).set_epoch(1)
    assert not torch.equal(first[2]["images"], before)
    assert list(EpochSampler(first, shuffle=True)) != list(EpochSampler(again, shuffle=True))


def test_processes_share_the_scans_of_an_epoch():
    dataset = ScanDataset(some_scans(5), augment=False, seed=0)
    shares = [list(EpochSampler(dataset, shuffle=True, rank=rank, n_processes=2)) for rank in range(2)]
    assert sorted({*shares[0], *shares[1]}) == list(range(5))
    assert len(shares[0]) == len(shares[1]) == 3


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 9])
@pytest.mark.parametrize("n_processes", [1, 2, 3])
def test_no_scan_is_scored_twice_and_all_processes_have_as_many_batches(n, n_processes):
    loaders = [
        loader(some_scans(n), batch_size=2, seed=0, training=False, rank=rank, n_processes=n_processes)
        for rank in range(n_processes)
    ]
    assert len({len(batches) for batches in loaders}) == 1
    scored = [
        int(count)
        for batches in loaders
        for batch in batches
        for count, again in zip(batch["at_least"], batch["is_repeated"], strict=True)
        if not again
    ]
    assert sorted(scored) == list(range(n))


@pytest.mark.parametrize(("n", "n_processes"), [(5, 2), (1, 1), (1, 2), (4, 2), (9, 2), (3, 4)])
def test_every_process_takes_a_step_however_few_scans_there_are(n, n_processes):
    for rank in range(n_processes):
        batches = loader(some_scans(n), batch_size=4, seed=0, training=True, rank=rank, n_processes=n_processes)
        assert len(batches) == len(list(batches)) >= 1
        assert not any(batch["is_repeated"].any() for batch in batches)


def test_scans_are_kept_as_far_as_memory_allows():
    class Read(list):
        asked = 0

        def __getitem__(self, index):
            self.asked += 1
            return super().__getitem__(index)

    scans = Read(some_scans(5))
    size = scans[0].images.nbytes + scans[0].mask.nbytes
    for n_fit, again in ((5, 0), (2, 3), (0, 5)):
        kept = Kept(scans, Memory(n_fit * size + size // 2))
        first = [kept[i] for i in range(5)]
        scans.asked = 0
        assert [kept[i].name for i in range(5)] == [scan.name for scan in first]
        assert scans.asked == again
    shared = Memory(3 * size)
    for part in (Kept(scans, shared), Kept(scans, shared)):
        part[0], part[1]
    assert shared.n_bytes_left == 0
    assert Memory.of_gb(0.5).n_bytes_left == 500_000_000


@pytest.mark.parametrize("method", ["map", "downstream"])
def test_output_that_overflowed_ends_no_training(method):
    config = tiny(network={"method": method}, data={"mask_share": 0.0})
    module = CountingModule(config.to_dict(), in_channels=5, prevalence=0.01, steps_per_epoch=2)
    logged = {}
    module.log_dict = lambda values, **_: logged.update(values)
    module.count_weight = lambda _: 1.0
    module.is_warmup = lambda _: False
    batch = next(iter(loader(sources_of(config)["train"], batch_size=2, seed=0, training=False)))
    batch["images"][1, 0, 3, 4, 5] = torch.inf
    module.training_step(batch, 0)
    assert logged["not_finite"] == 0.5
    assert logged["count_loss"].isfinite()
    assert logged["voxel_loss"] == 0


def test_scans_without_masks_teach_their_count_only():
    config = tiny(data={"mask_share": 0.0})
    parts = sources_of(config)
    assert all(parts["train"][i].mask is None for i in range(len(parts["train"])))
    assert all(parts["val"][i].mask is not None for i in range(len(parts["val"])))
    module = CountingModule(config.to_dict(), in_channels=5, prevalence=0.01, steps_per_epoch=2)
    batch = next(iter(loader(parts["train"], batch_size=2, seed=0, training=False)))
    logits = module.network.segment(batch["images"])
    assert module._voxel_loss(logits, batch).item() == 0


def test_a_share_of_patients_is_a_share_of_patients():
    whole = sources_of(tiny(data={"patients": (12, 2, 2)}))["train"]
    part = sources_of(tiny(data={"patients": (12, 2, 2), "share": 0.25}))["train"]
    names = {part[i].patient for i in range(len(part))}
    assert len(names) == 3
    assert len(part) == sum(whole[i].patient in names for i in range(len(whole)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"source": "tape"}, "files, .*but got 'tape'"),
        ({"share": 0.0}, "share"),
        ({"patients": (3,)}, "training, validation and test"),
    ],
)
def test_data_that_makes_no_sense_is_refused(data, message):
    with pytest.raises(ConfigError, match=message):
        sources_of(tiny(data=data))


def test_count_weight_follows_the_paper():
    paper = TrainingConfig.load("paper").to_dict() | {"network": {"filters": 2, "levels": 2}}
    module = CountingModule(paper, in_channels=1, prevalence=0.01, steps_per_epoch=1)
    assert module.count_weight(19) == 0
    assert module.count_weight(20) == pytest.approx(0.001)
    assert module.count_weight(119) == pytest.approx(0.001 * np.exp(0.06 * 99))


def test_best_voxel_f1_is_the_maximum_over_thresholds():
    logits = torch.tensor([[-2.0, -1.0, 0.5, 2.0]])
    mask = torch.tensor([[0, 1, 0, 1]])
    metric = BestVoxelF1()
    metric.update(logits, mask)
    assert metric.compute().item() == pytest.approx(0.8)  # above -1.5: two hits, one false alarm


def test_files_that_are_no_checkpoints_are_refused(tmp_path):
    (tmp_path / "x.ckpt").write_bytes(b"no checkpoint")
    with pytest.raises(MapFileError, match="no checkpoint of lesioncount train"):
        load_checkpoint(tmp_path / "x.ckpt")


@pytest.mark.usefixtures("installed_reproduction")
def test_command_prints_the_scores(tmp_path, capsys):
    (tmp_path / "tiny.toml").write_text(TINY.replace("epochs = 3", "epochs = 0"))
    assert main(["train", str(tmp_path / "tiny.toml"), "-o", str(tmp_path / "t"), "--seed", "2"]) == 0
    assert "test_accuracy" in capsys.readouterr().out
    assert json.loads((tmp_path / "t" / "config.json").read_text())["run"]["seed"] == 2
    assert main(["train", "nothing.toml", "-o", str(tmp_path / "u")]) == 2
    assert "is no preset" in capsys.readouterr().err

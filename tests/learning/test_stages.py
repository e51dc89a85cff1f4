"""The stages of a training: what it begins with, what learns in each, and which epoch is kept."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from learning.test_training import tiny, train, weights  # noqa: E402 - after the checks

from lesioncount.errors import ConfigError, MapFileError  # noqa: E402
from lesioncount.learning.config import TrainingConfig  # noqa: E402
from lesioncount.learning.module import CountingModule  # noqa: E402
from lesioncount.learning.training import _module  # noqa: E402
from lesioncount.paper.sources import sources_of  # noqa: E402

# A learning rate that ruins a network: later epochs do worse than the first.
HARMFUL = 30.0


def part_of(checkpoint, name):
    return {key: value for key, value in checkpoint.items() if key.startswith(name)}


def is_same(a, b):
    assert a.keys() == b.keys()
    return all(torch.equal(a[key], b[key]) for key in a)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """The folder of a network that has learned segmentation for an epoch."""
    folder = tmp_path_factory.mktemp("pretrained") / "net"
    train(tiny(run={"epochs": 0}), folder, progress=False)
    return folder


def module_of(config):
    return _module(config, sources_of(config)["train"], 2)


def test_training_begins_with_the_unet_of_the_given_checkpoint(pretrained):
    start = str(pretrained / "last.ckpt")
    before = part_of(weights(start), "unet.")
    started = module_of(tiny(network={"method": "multihead"}, run={"start": start}))
    assert is_same(part_of(started.network.state_dict(), "unet."), before)
    alone = module_of(tiny(network={"method": "multihead"}))
    assert not is_same(part_of(alone.network.state_dict(), "unet."), before)
    assert is_same(part_of(alone.network.state_dict(), "head."), part_of(started.network.state_dict(), "head."))


def test_warm_up_leaves_the_unet_alone_and_teaches_the_head(pretrained, tmp_path):
    start = str(pretrained / "last.ckpt")
    stages = {"pretrain_epochs": 0, "warmup_epochs": 2, "epochs": 0, "start": start}
    config = tiny(network={"method": "bottleneck"}, run=stages)
    train(config, tmp_path / "t", progress=False)
    after = weights(tmp_path / "t" / "last.ckpt")
    assert is_same(part_of(after, "unet."), part_of(weights(start), "unet."))
    assert not is_same(part_of(after, "head."), part_of(module_of(config).network.state_dict(), "head."))


def test_after_the_warm_up_all_of_it_learns(pretrained, tmp_path):
    start = str(pretrained / "last.ckpt")
    stages = {"pretrain_epochs": 0, "warmup_epochs": 1, "epochs": 1, "start": start}
    train(tiny(network={"method": "bottleneck"}, run=stages), tmp_path / "t", progress=False)
    assert not is_same(part_of(weights(tmp_path / "t" / "last.ckpt"), "unet."), part_of(weights(start), "unet."))


@pytest.mark.parametrize("network", [{"filters": 3}, {"levels": 3}])
def test_a_network_of_another_kind_is_no_beginning(pretrained, tmp_path, network):
    config = tiny(network=network, run={"start": str(pretrained / "last.ckpt")})
    with pytest.raises(ConfigError, match=r"does not fit.*same number of filters, levels and channels"):
        train(config, tmp_path / "t", progress=False)
    assert not (tmp_path / "t" / "config.json").exists()


def test_a_checkpoint_that_is_not_there_is_no_beginning(tmp_path):
    with pytest.raises(MapFileError, match="There is no checkpoint"):
        train(tiny(run={"start": str(tmp_path / "x.ckpt")}), tmp_path / "t", progress=False)


def test_the_weight_of_the_count_goes_by_stages():
    sections = {
        "network": {"method": "downstream", "filters": 2, "levels": 2},
        "run": {"pretrain_epochs": 2, "warmup_epochs": 3, "epochs": 4},
    }
    config = TrainingConfig.from_dict(sections).to_dict()
    module = CountingModule(config, in_channels=1, prevalence=0.01, steps_per_epoch=1)
    assert [module.is_warmup(epoch) for epoch in range(9)] == [False] * 2 + [True] * 3 + [False] * 4
    found = [module.count_weight(epoch) for epoch in range(9)]
    assert found[:5] == [0, 0, 1, 1, 1]
    np.testing.assert_allclose(found[5:], 0.001 * np.exp(0.06 * 100 * np.arange(4) / 4))


def test_cosine_falls_from_the_top_to_almost_nothing():
    config = tiny(network={"method": "downstream"}, optimizer={"schedule": "cosine", "head_learning_rate": 0.5})
    module = CountingModule(config.to_dict(), in_channels=1, prevalence=0.01, steps_per_epoch=5)
    [optimizer], [schedule] = module.configure_optimizers()
    assert schedule["interval"] == "step"
    rates = []
    for _ in range(config.run.n_epochs * 5):
        rates.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        schedule["scheduler"].step()
    unet, head = np.transpose(rates)
    assert (unet[0], head[0]) == (1e-4, 0.5)
    assert (np.diff(unet) < 0).all()
    assert unet[-1] < 0.01 * unet[0]
    np.testing.assert_allclose([group["lr"] for group in optimizer.param_groups], 0, atol=1e-12)


@pytest.mark.parametrize(
    ("method", "stages", "first"),
    [
        ("map", {"pretrain_epochs": 2, "epochs": 2}, 2),
        ("bottleneck", {"pretrain_epochs": 0, "warmup_epochs": 1, "epochs": 2}, 1),
        ("map", {"pretrain_epochs": 2, "epochs": 2, "validate_every": 2}, 2),
    ],
)
def test_the_best_epoch_is_one_with_segmentation_and_count(method, stages, first, tmp_path):
    """However well the map did before: then a head had not learned, or not what it will be given."""
    config = tiny(
        network={"method": method}, optimizer={"learning_rate": HARMFUL, "schedule": "exponential"}, run=stages
    )
    train(config, tmp_path / "t", progress=False)
    assert torch.load(tmp_path / "t" / "best.ckpt", weights_only=True)["epoch"] >= first


def test_without_counts_the_best_epoch_is_one_of_pre_training(tmp_path):
    train(tiny(run={"pretrain_epochs": 2, "epochs": 0}), tmp_path / "t", progress=False)
    assert torch.load(tmp_path / "t" / "best.ckpt", weights_only=True)["epoch"] in (0, 1)


def test_without_a_test_part_there_are_no_scores(tmp_path):
    config = tiny(run={"epochs": 0})
    parts = {name: scans for name, scans in sources_of(config).items() if name != "test"}
    assert train(config, tmp_path / "t", progress=False, parts=parts) == {}
    assert (tmp_path / "t" / "best.ckpt").exists()
    assert not (tmp_path / "t" / "scores.json").exists()


def test_parts_that_are_given_are_those_that_are_learned_from(tmp_path):
    config = tiny(run={"epochs": 0})
    other = sources_of(tiny(data={"seed": 9}))
    for name, parts in (("own", None), ("same", sources_of(config)), ("other", other)):
        train(config, tmp_path / name, **({} if parts is None else {"parts": parts}))
    own, same, others = (weights(tmp_path / name / "last.ckpt") for name in ("own", "same", "other"))
    assert is_same(own, same)
    assert not is_same(own, others)


def test_dropout_of_a_head_can_be_chosen():
    usual, none = (
        CountingModule(
            tiny(network={"method": "downstream", "head_dropout": given}).to_dict(),
            in_channels=1,
            prevalence=0.01,
            steps_per_epoch=1,
        ).network.head.dropout.p
        for given in (-1.0, 0.0)
    )
    assert (usual, none) == (0.3, 0.0)

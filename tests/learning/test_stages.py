"""The stages of a training: what it begins with, what learns in each, and which epoch is kept."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
pytest.importorskip("lightning", reason="needs the extra [train]")
pytest.importorskip("monai", reason="needs the extra [train]")
pytest.importorskip("lesioncount_reproduction", reason="needs the reproduction: pip install ./reproduction")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Lightning and MONAI

from learning.test_training import tiny, train, weights  # noqa: E402 - after the checks

from lesioncount.errors import ConfigError, MapFileError  # noqa: E402
from lesioncount.learning.config import TrainingConfig  # noqa: E402
from lesioncount.learning.module import CountingModule  # noqa: E402
from lesioncount.learning.networks import NetworkOptions  # noqa: E402
from lesioncount.learning.training import _module  # noqa: E402
from lesioncount_reproduction.sources import sources_of  # noqa: E402

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
        "data": {"shape": (8, 8)},
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


def test_a_frozen_unet_does_not_spend_its_cosine():
    stages = {"pretrain_epochs": 0, "warmup_epochs": 3, "epochs": 2}
    config = tiny(network={"method": "downstream"}, optimizer={"schedule": "cosine"}, run=stages)
    module = CountingModule(config.to_dict(), in_channels=1, prevalence=0.01, steps_per_epoch=4)
    [optimizer], [schedule] = module.configure_optimizers()
    rates = []
    for _ in range(20):
        rates.append([group["lr"] / 1e-4 for group in optimizer.param_groups])
        optimizer.step()
        schedule["scheduler"].step()
    unet, head = np.transpose(rates)
    np.testing.assert_allclose(unet[:13], 1)
    np.testing.assert_allclose(unet[12:], 0.5 * (1 + np.cos(np.pi * np.arange(8) / 8)))
    np.testing.assert_allclose(head, 0.5 * (1 + np.cos(np.pi * np.arange(20) / 20)))


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


def module_with(**sections):
    return CountingModule(tiny(**sections).to_dict(), in_channels=1, prevalence=0.01, steps_per_epoch=1)


def test_a_head_can_tell_ranges_of_counts_apart(tmp_path):
    sections = {"network": {"method": "bottleneck"}, "loss": {"bins": (0, 2, 5)}}
    module = module_with(**sections)
    counts = torch.tensor([0, 1, 2, 4, 5, 300])
    assert module._class_of(counts).tolist() == [0, 0, 1, 1, 2, 2]
    assert module.network(torch.zeros(1, 1, 8, 16, 16)).log_probs.shape == (1, 3)
    assert torch.equal(module_with(loss={"bins": (0, 2, 5)})._class_of(counts), counts)  # a map counts by itself
    scores = train(tiny(**sections, run={"epochs": 1}), tmp_path / "t")
    assert np.isfinite(scores["test_rps"])


def test_the_count_of_a_map_may_be_that_of_its_peaks():
    assert module_with().count_loss.protocol.candidates == "regions"
    peaks = module_with(network={"protocol": "peaks"})
    assert peaks.count_loss.protocol == peaks.network.head.protocol
    assert peaks.network.head.protocol.candidates == "peaks"


def test_a_head_may_look_for_the_largest_value():
    mean, largest = (module_with(network={"method": "bottleneck", "head_readout": of}) for of in ("mean", "max"))
    largest.load_state_dict(mean.state_dict())
    images = torch.randn(2, 1, 8, 16, 16)
    assert not torch.allclose(mean.eval().network(images).log_probs, largest.eval().network(images).log_probs)
    with pytest.raises(ValueError, match="head_readout to be one of mean, max"):
        module_with().network.__class__(NetworkOptions(head_readout="median"))


@pytest.mark.parametrize("method", ["map", "downstream"])
def test_half_as_many_bits_learn_as_well(method, tmp_path):
    scores = train(tiny(network={"method": method}, run={"epochs": 1, "precision": "bfloat16"}), tmp_path / "t")
    kept = weights(tmp_path / "t" / "last.ckpt")
    assert all(value.dtype == torch.float32 and value.isfinite().all() for value in kept.values())
    full = train(tiny(network={"method": method}, run={"epochs": 1}), tmp_path / "full")
    assert scores["test_voxel_ece"] == pytest.approx(full["test_voxel_ece"], rel=0.1)


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

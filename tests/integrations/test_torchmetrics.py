"""Metrics with the real torchmetrics, alone and in two processes."""

import pytest
from two_processes import in_two_processes

torch = pytest.importorskip("torch", reason="needs the extra [torch]")
torchmetrics = pytest.importorskip("torchmetrics", reason="needs the extra [torch]")

from torchmetrics.classification import (  # noqa: E402 - after the check for torchmetrics
    BinaryCalibrationError,
    MulticlassAccuracy,
    MulticlassF1Score,
)

from lesioncount.integrations.torchmetrics import (  # noqa: E402
    CountAccuracy,
    CountCalibrationError,
    CountF1,
    CountNLL,
    CountRPS,
    VoxelCalibrationError,
)
from lesioncount.learning.module import BestVoxelF1  # noqa: E402
from lesioncount.torch import count_log_probs  # noqa: E402

COUNT_METRICS = (CountAccuracy, CountF1, CountNLL, CountRPS, CountCalibrationError)


def batch(n=60, seed=3):
    """Log-probabilities of five bins, and counts of which some are above the last bin."""
    generator = torch.Generator().manual_seed(seed)
    log_p = torch.log_softmax(torch.randn(n, 5, generator=generator, dtype=torch.float64) * 2, dim=1)
    return log_p, torch.randint(0, 8, (n,), generator=generator)


def values(metric):
    found = metric.compute()
    return list(found.values()) if isinstance(found, dict) else [found]


@pytest.mark.parametrize("kind", COUNT_METRICS)
def test_batches_add_up(kind):
    log_p, counts = batch()
    whole, parts = kind(), kind()
    whole.update(log_p, counts)
    for begin in range(0, 60, 7):
        parts.update(log_p[begin : begin + 7], counts[begin : begin + 7])
    torch.testing.assert_close(values(parts), values(whole))


def test_accuracy_and_f1_are_those_of_torchmetrics():
    log_p, counts = batch()
    for ours, theirs in (
        (CountAccuracy(), MulticlassAccuracy(5, average="micro")),
        (CountF1(), MulticlassF1Score(5, average="macro")),
    ):
        ours.update(log_p, counts)
        theirs.update(log_p, counts.clamp(max=4))
        assert ours.compute().item() == pytest.approx(theirs.compute().item(), abs=1e-6)


@pytest.mark.parametrize(("name", "norm"), [("ece", "l1"), ("mce", "max")])
def test_voxel_calibration_is_that_of_torchmetrics(name, norm):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 1, 6, 20, 20, generator=generator) * 3
    masks = torch.bernoulli(torch.sigmoid(logits * 0.5), generator=generator)
    ours, theirs = VoxelCalibrationError(), BinaryCalibrationError(n_bins=10, norm=norm)
    ours.update(logits, masks)
    theirs.update(torch.sigmoid(logits), masks.long())
    assert ours.compute()[name].item() == pytest.approx(theirs.compute().item(), abs=1e-6)


def test_scores_of_maps_whose_truth_is_known():
    logits = torch.full((2, 6, 9, 9), -8.0)
    logits[1, 3, 3, 3] = 8.0
    log_p = count_log_probs(logits, spatial_dims=3)
    metrics = torchmetrics.MetricCollection([CountAccuracy(), CountRPS(), CountNLL()])
    metrics.update(log_p, torch.tensor([0, 1]))
    found = metrics.compute()
    assert found["CountAccuracy"] == 1
    assert found["CountRPS"] < 1e-6
    metrics.reset()
    metrics.update(log_p, torch.tensor([1, 1]))  # the first map has no candidate: an impossible label stays finite
    assert metrics.compute()["CountNLL"].isfinite()
    assert metrics.compute()["CountRPS"] == pytest.approx(0.5, abs=1e-3)


def test_scores_of_peaks_that_touch():
    logits = torch.full((1, 1, 5, 7), -6.0)
    logits[0, 0, 2, 1:6] = torch.logit(torch.tensor([0.9, 0.5, 0.2, 0.4, 0.8]))
    metric = CountNLL()
    metric.update(count_log_probs(logits, protocol="peaks"), torch.tensor([2]))
    assert metric.compute().exp().item() == pytest.approx(1 / (0.9 * 0.6), rel=1e-5)


def test_other_numbers_of_bins_are_refused():
    with pytest.raises(ValueError, match="Expected 5 log-probabilities, but got 3: see max_count"):
        CountAccuracy().update(torch.zeros(2, 3), torch.tensor([0, 1]))


@pytest.mark.parametrize("kind", [*COUNT_METRICS, VoxelCalibrationError, BestVoxelF1])
def test_sums_stay_on_the_cpu_where_a_device_has_no_double_precision(kind, monkeypatch):
    dtypes = {"meta": torch.float32, "cpu": torch.float64}
    monkeypatch.setattr("lesioncount.integrations.torchmetrics.working_dtype", lambda device: dtypes[device.type])
    metric = kind().to("meta")
    assert {getattr(metric, name).device.type for name in metric._defaults} == {"cpu"}
    metric.update(*batch() if kind in COUNT_METRICS else (torch.tensor([1.0, -1.0]), torch.tensor([1, 0])))
    metric.reset()
    assert {getattr(metric, name).device.type for name in metric._defaults} == {"cpu"}


def scores_of_my_part(rank):
    log_p, counts = batch()
    mine = slice(0, 25) if rank == 0 else slice(25, 60)  # processes may have different numbers of scans
    metrics = [kind() for kind in COUNT_METRICS]
    for metric in metrics:
        metric.update(log_p[mine], counts[mine])
    return [value.item() for metric in metrics for value in values(metric)]


def test_states_sum_across_processes(tmp_path):
    first, second = in_two_processes(__file__, "scores_of_my_part", tmp_path)
    alone = [kind() for kind in COUNT_METRICS]
    for metric in alone:
        metric.update(*batch())
    expected = [value.item() for metric in alone for value in values(metric)]
    assert first == pytest.approx(expected, abs=1e-6)
    assert first == second

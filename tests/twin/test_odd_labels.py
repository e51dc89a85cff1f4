"""Labels and limits that do not fit: a sentence instead of an allocation, or of torch's own words."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from lesioncount.errors import DistributionError, NoGradientWarning, ShapeError  # noqa: E402 - after the check
from lesioncount.torch import CountLoss, PoissonBinomial, count_log_probs  # noqa: E402


@pytest.fixture
def logits():
    maps = torch.full((2, 16, 16), -6.0)
    maps[0, 4, 4], maps[0, 9, 9], maps[1, 2, 2] = 2.0, 0.5, -1.0
    return maps.requires_grad_()


@pytest.mark.filterwarnings("ignore:The count loss has no gradient")
@pytest.mark.parametrize("labels", [[2, 0], [0, 1], [3, 700], [10**9, 1]])
def test_a_limit_beyond_all_candidates_is_no_limit_and_costs_nothing(logits, labels):
    counts = torch.tensor(labels)
    for bounds in ({"counts": counts}, {"at_least": counts}, {"at_most": counts}):
        losses, gradients = [], []
        for max_count in (10**9, 10**4, None):
            loss = CountLoss(max_count, reduction="none")
            found = loss(logits, **bounds)
            losses.append(found.detach())
            gradients.append(torch.autograd.grad(found.sum(), logits)[0])
        assert all(torch.allclose(found, losses[0]) for found in losses)
        assert all(torch.allclose(found, gradients[0]) for found in gradients)


def test_bins_that_fit_into_no_memory_are_refused(logits):
    with pytest.raises(DistributionError, match="fits into memory, but 1000000001 bins"):
        count_log_probs(logits, max_count=10**9)


def test_an_enormous_count_is_impossible():
    count = PoissonBinomial(probs=torch.tensor([0.5, 0.25]))
    found = count.log_prob(torch.tensor([0, 2, 3, 10**12])).exp()
    torch.testing.assert_close(found, torch.tensor([0.375, 0.125, 0.0, 0.0]))


@pytest.mark.parametrize("max_count", [0, -1, 1.5, "4"])
def test_limits_that_make_no_sense_are_refused(max_count):
    with pytest.raises(ValueError, match="Expected max_count to be a whole number of at least 1"):
        CountLoss(max_count)


def test_a_wrong_number_of_labels_is_named_with_both_shapes(logits):
    with pytest.raises(ShapeError, match=r"counts of shape \(2,\), one for each map, but counts has shape \(3,\)"):
        CountLoss(4)(logits, torch.tensor([1, 2, 3]))
    with pytest.raises(ShapeError, match=r"counts of shape \(1, 2\), one for each map and class, but .* \(3,\)"):
        CountLoss(4, spatial_dims=2)(logits[None], torch.tensor([1, 2, 3]))
    with pytest.raises(ShapeError, match=r"counts of shape \(1,\), one for each map, but counts has shape \(2,\)"):
        CountLoss().of_log_probs(torch.zeros(1, 3), torch.tensor([1, 2]))
    with pytest.raises(ShapeError, match=r"of one shape, but got \(2,\) and \(3,\)"):
        CountLoss(4)(logits, at_least=torch.tensor([1, 2]), at_most=torch.tensor([1, 2, 3]))
    with pytest.raises(TypeError, match="as a tensor of whole numbers, but got list"):
        CountLoss(4)(logits, [1, 2])


def test_metrics_say_what_does_not_fit():
    torchmetrics = pytest.importorskip("lesioncount.integrations.torchmetrics", reason="needs the extra [torch]")
    with pytest.raises(ShapeError, match=r"each of \(2,\) scans, but got \(3,\)"):
        torchmetrics.CountNLL().update(torch.zeros(2, 5), torch.tensor([1, 2, 3]))
    with pytest.raises(ValueError, match="at most 10000"):
        torchmetrics.CountF1(10**9)


def test_maps_without_a_known_count_are_left_out_of_loss_mean_and_gradient(logits):
    alone = CountLoss(reduction="sum")(logits[:1], torch.tensor([1]))
    for labels in ({"counts": [1, -100]}, {"at_least": [1, -100], "at_most": [1, 7]}):
        found = CountLoss()(logits, **{name: torch.tensor(of) for name, of in labels.items()})
        torch.testing.assert_close(found, alone)
    [gradient] = torch.autograd.grad(found, logits)
    assert gradient[0].any()
    assert not gradient[1].any()
    every = CountLoss(reduction="none")(logits, torch.tensor([-100, 0]))
    assert every[0] == 0
    assert every[1] > 0
    ours = CountLoss(ignore_index=-1, rescue=True)
    assert ours(logits, torch.tensor([-1, -1])) == 0
    log_probs = torch.tensor([[0.5, 0.5], [0.1, 0.9]]).log()
    assert CountLoss().of_log_probs(log_probs, torch.tensor([0, -100])) == pytest.approx(np.log(2))
    with pytest.raises(ValueError, match="at least 0, or -100 where nothing is known"):
        CountLoss()(logits, torch.tensor([1, -1]))


def test_a_batch_of_impossible_labels_is_warned_about_once(logits):
    loss = CountLoss()
    loss(logits, torch.tensor([3, 1]))
    with torch.no_grad():
        loss(logits, torch.tensor([3, 3]))
    with pytest.warns(NoGradientWarning, match=r"no label of this batch \(1 known\) is possible"):
        loss(logits, torch.tensor([3, -100])).backward()
    loss(logits, torch.tensor([3, 3]))  # warnings are errors here: it is said once
    nothing = torch.full((2, 16, 16), -6.0, requires_grad=True)
    with pytest.warns(NoGradientWarning, match="pass rescue=True"):
        CountLoss()(nothing, torch.tensor([1, 2]))
    CountLoss(rescue=True)(nothing, torch.tensor([0, 0]))

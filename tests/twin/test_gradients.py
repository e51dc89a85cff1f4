"""What the gradient of a count must not do: go wrong silently, end a training, or need double precision everywhere."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from twin.test_twin import LOW, logits_with  # noqa: E402 - after the check for torch

from lesioncount import CountingProtocol  # noqa: E402
from lesioncount.integrations import nnunet_loss  # noqa: E402
from lesioncount.torch import CountLoss, CountWeight, LesionCounter, PoissonBinomial, count_log_probs  # noqa: E402
from lesioncount.torch.counting import count_distribution  # noqa: E402
from lesioncount.torch.poisson_binomial import log_bins  # noqa: E402


class TestSecondDerivatives:
    def test_hessian_is_refused_rather_than_0(self):
        peaks = torch.tensor([[0.3, -1.2]], dtype=torch.float64)
        with pytest.raises(NotImplementedError, match="second derivatives are not implemented"):
            torch.autograd.functional.hessian(lambda x: log_bins(x, 3)[0, 1], peaks)

    def test_gradient_penalty_is_refused_where_the_gradient_from_above_is_constant(self):
        peaks = torch.tensor([0.3, -1.2], dtype=torch.float64, requires_grad=True)
        [gradient] = torch.autograd.grad(PoissonBinomial(peaks).log_prob(torch.tensor(1)), peaks, create_graph=True)
        with pytest.raises(NotImplementedError, match="second derivatives are not implemented"):
            (gradient.square().sum() + peaks.square().sum()).backward()

    def test_a_graph_that_is_kept_but_not_differentiated_again_is_fine(self):
        peaks = torch.tensor([0.3, -1.2], dtype=torch.float64, requires_grad=True)
        value = PoissonBinomial(peaks).log_prob(torch.tensor(1))
        [kept] = torch.autograd.grad(value, peaks, create_graph=True)
        [plain] = torch.autograd.grad(value, peaks)
        torch.testing.assert_close(kept.detach(), plain)


def test_writing_into_the_logits_afterwards_does_not_change_the_gradient():
    def gradient(*, write):
        peaks = torch.tensor([[0.3, -1.2, 2.0]], dtype=torch.float64, requires_grad=True)
        value = log_bins(peaks, 3)[0, 1]
        if write:
            with torch.no_grad():
                peaks.fill_(7.0)
        value.backward()
        return peaks.grad

    torch.testing.assert_close(gradient(write=True), gradient(write=False))


class TestDeviceWithoutDoublePrecision:
    """As on Apple's GPUs: no tensor of ours may be double there. Only the recursion is, in numpy."""

    @pytest.fixture
    def single(self, monkeypatch):
        for module in ("existence", "poisson_binomial"):
            monkeypatch.setattr(f"lesioncount.torch.{module}.working_dtype", lambda _: torch.float32)

    @staticmethod
    def results(**options):
        logits = torch.stack([logits_with(1.0, -3.0, 2.0), logits_with(0.5, 3.0)]).requires_grad_()
        loss = CountLoss(max_count=4, spatial_dims=3, rescue=True, **options)
        value = loss(logits if loss.logits else logits.sigmoid(), torch.tensor([3, 1]))
        value.backward()
        count = LesionCounter(spatial_dims=3)(logits)
        numbers = [count.mean, count.variance, count.entropy(), count.log_prob(torch.tensor([1, 1]))]
        return [value, logits.grad, *numbers, count.cdf(torch.tensor([1, 1])), count.log_bins(2)], count

    @pytest.mark.parametrize("options", [{}, {"logits": False}])
    def test_results_and_gradients_agree(self, options, request):
        double, _ = self.results(**options)
        request.getfixturevalue("single")
        single, count = self.results(**options)
        assert count.logits.dtype == torch.float32
        assert {value.dtype for value in single} == {torch.float32}
        torch.testing.assert_close(single, double, rtol=1e-5, atol=1e-6)

    @pytest.mark.usefixtures("single")
    def test_no_step_makes_a_double_tensor(self):
        made = []

        class Watch(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                result = function(*args, **(kwargs or {}))
                if isinstance(result, torch.Tensor) and result.dtype == torch.float64:
                    made.append(str(function))
                return result

        with Watch():
            self.results()
        assert set(made) <= {"aten.detach.default", "aten._to_copy.default", "aten.lift_fresh.default"}, made

    def test_apples_devices_have_single_precision(self):
        from lesioncount.torch.precision import working_dtype

        assert working_dtype(torch.device("mps")) == torch.float32
        assert working_dtype(torch.device("cpu")) == working_dtype(torch.device("cuda")) == torch.float64


class TestMapsThatAreNotFinite:
    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
    def test_they_have_neither_loss_nor_gradient_and_the_others_are_untouched(self, value, reduction):
        good, bad = logits_with(1.0, 2.0), logits_with(1.0)
        bad[7, 7, 7] = value
        batch = torch.stack([bad, good, bad]).requires_grad_()
        loss = CountLoss(max_count=4, spatial_dims=3, reduction=reduction)
        found = loss(batch, torch.tensor([9, 1, 1]))
        assert (loss.n_not_finite, loss.n_impossible) == (2, 0)
        found.sum().backward()
        alone = good[None].clone().requires_grad_()
        expected = CountLoss(max_count=4, spatial_dims=3)(alone, torch.tensor([1]))
        expected.backward()
        assert found.sum().item() == pytest.approx(expected.item())
        torch.testing.assert_close(batch.grad[1], alone.grad[0])
        assert not batch.grad[0].any()
        assert not batch.grad[2].any()

    def test_none_left_is_0_with_a_gradient(self):
        logits = torch.full((2, 9, 9), math.nan).requires_grad_()
        loss = CountLoss()
        value = loss(logits, torch.tensor([1, 0]))
        value.backward()
        assert value.item() == 0
        assert not logits.grad.any()
        assert loss.n_not_finite == 2

    def test_voxels_outside_the_mask_may_be_anything(self):
        logits = logits_with(1.0)[None]
        logits[0, 7, 7, 7] = math.nan
        mask = torch.ones_like(logits)
        mask[0, 7] = 0
        loss = CountLoss(spatial_dims=3)
        assert loss(logits, torch.tensor([1]), mask=mask).item() == pytest.approx(math.log(1 + math.exp(-1)))
        assert loss.n_not_finite == 0

    def test_half_precision_that_overflows_does_not_end_a_training(self):
        logits = (logits_with(300.0)[None].half() * 300).requires_grad_()
        assert logits.isinf().any()
        loss = CountLoss(spatial_dims=3)
        loss(logits, torch.tensor([1])).backward()
        assert loss.n_not_finite == 1

    def test_each_class_is_by_itself(self):
        logits = torch.full((1, 2, 9, 9), LOW)
        logits[0, 0, 1, 1], logits[0, 1, 1, 1] = math.inf, 1.0
        loss = CountLoss(spatial_dims=2, reduction="none")
        assert loss(logits, torch.tensor([[1, 1]])).tolist() == [[0, pytest.approx(math.log(1 + math.exp(-1)))]]

    def test_patches_of_a_softmax(self):
        output = torch.zeros(2, 3, 5, 6)
        output[:, 1:] = -5
        output[0, 1, 2, 2], output[1, 1, 2, 2] = math.inf, 3.0
        output.requires_grad_()
        loss = nnunet_loss.SegmentationAndCountLoss(lambda out, _: out.new_zeros(()), CountLoss(4, spatial_dims=2))
        loss.weight = 1.0
        loss(output, torch.ones(2, 1, 5, 6)).backward()
        assert not output.grad[0].any()
        assert output.grad[1].isfinite().all()
        assert output.grad[1].any()
        assert (loss.tally.n_labels, loss.tally.n_not_finite) == (4, 2)
        assert str(loss.tally).endswith("0 of 4 labels impossible, 2 left out because the output was not finite")


class TestLossOfLogProbabilities:
    @pytest.mark.parametrize(
        "labels",
        [
            {"counts": torch.tensor([6, 1])},
            {"at_least": torch.tensor([1, 0])},
            {"at_most": torch.tensor([3, 0])},
            {"at_least": torch.tensor([2, 0]), "at_most": torch.tensor([1 << 30, 1])},
        ],
    )
    @pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
    def test_is_the_loss_of_the_map(self, labels, reduction):
        logits = torch.stack([logits_with(0.5, 1.0, -0.5, 2.0, 0.1), logits_with(0.3)])
        loss = CountLoss(max_count=4, spatial_dims=3, reduction=reduction)
        torch.testing.assert_close(
            loss.of_log_probs(count_log_probs(logits, spatial_dims=3), **labels), loss(logits, **labels)
        )

    def test_impossible_and_broken_rows_are_counted(self):
        log_probs = torch.tensor([[0.0, -math.inf], [math.nan, -1.0], [-0.5, -1.0]], requires_grad=True)
        loss = CountLoss(1)
        value = loss.of_log_probs(log_probs, torch.tensor([1, 1, 1]))
        value.backward()
        assert (loss.n_impossible, loss.n_not_finite) == (1, 1)
        assert value.item() == pytest.approx((100 + 1) / 2)
        assert torch.nonzero(log_probs.grad).tolist() == [[2, 1]]

    def test_labels_and_bins_are_checked(self):
        with pytest.raises(ValueError, match="Expected 5 log-probabilities, of 0 to 4 or more, but got 3"):
            CountLoss(4).of_log_probs(torch.zeros(1, 3), torch.tensor([1]))
        with pytest.raises(ValueError, match="whole numbers"):
            CountLoss().of_log_probs(torch.zeros(1, 3), torch.tensor([1.0]))


@pytest.mark.parametrize("options", [{}, {"logits": False}])
@pytest.mark.filterwarnings("ignore:The count loss has no gradient")
def test_rescue_at_threshold_0(options):
    logits = logits_with(1.0, 2.0)[None].requires_grad_()
    loss = CountLoss(protocol=CountingProtocol(threshold=0.0), spatial_dims=3, rescue=True, **options)
    loss(logits if not options else logits.sigmoid(), torch.tensor([2])).backward()
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("rescue", [False, True])
def test_nan_in_a_mask_is_outside(rescue):
    logits = logits_with(1.0, 2.0)[None]
    mask = torch.ones_like(logits)
    mask[:, :, :3] = math.nan
    zero = mask.nan_to_num(0.0)
    loss = CountLoss(spatial_dims=3, rescue=rescue, reduction="none")
    for count in (0, 1, 2):
        torch.testing.assert_close(
            loss(logits, torch.tensor([count]), mask=mask), loss(logits, torch.tensor([count]), mask=zero)
        )
    assert count_distribution(logits, mask=mask, spatial_dims=3).n_trials.tolist() == [1]


def test_nan_in_a_region_of_the_target_is_outside():
    target = torch.tensor([[1.0, math.nan, 0.0]]).reshape(1, 1, 1, 3)
    masks, _ = nnunet_loss.foreground_masks(target, [0], regions=True, ignore_label=None)
    assert masks.flatten().tolist() == [True, False, False]


def test_there_is_one_count_weight():
    assert nnunet_loss.CountWeight is CountWeight
    assert np.isclose(CountWeight(masks_only=0, epochs=100).at(99, 100), 0.001 * math.exp(0.06 * 99))

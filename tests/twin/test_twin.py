"""The torch side says what the numpy side says, and its gradient goes where it should."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import maps

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

import lesioncount as lc  # noqa: E402 - after the check for torch
from lesioncount.errors import ProtocolError, ShapeError  # noqa: E402
from lesioncount.torch import CountLoss, LesionCounter, PoissonBinomial, count_log_probs  # noqa: E402
from lesioncount.torch.poisson_binomial import log_bins  # noqa: E402

LOW = -6.0


def logits_with(*peaks, shape=(8, 9, 10), dtype=torch.float32):
    """A faint map with single voxels of these logits, far apart."""
    logits = torch.full(shape, LOW, dtype=dtype)
    for i, peak in enumerate(peaks):
        logits[(1 + 2 * (i // 3), 1 + 3 * (i % 3), 5)] = peak
    return logits


@pytest.mark.filterwarnings("ignore::lesioncount.errors.MapWarning")  # some random maps are hard maps
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
@given(probabilities=maps(dtypes=(np.float64,), ndims=(3,)))
@settings(max_examples=60)
def test_numbers_are_those_of_the_core(dtype, tolerance, probabilities):
    clipped = np.clip(probabilities, 0.02, 0.98)
    logits = torch.from_numpy(np.log(clipped / (1 - clipped))).to(dtype)
    ours = count_log_probs(logits[None], spatial_dims=3)[0].exp()
    core = lc.count_lesions(logits.numpy(), logits=True, protocol="paper")
    np.testing.assert_allclose(ours.numpy(), core.distribution.binned(4), atol=tolerance)


def test_worked_example_of_the_paper():
    logits = logits_with(*torch.logit(torch.tensor([0.5189, 0.7840])).tolist())[None]
    log_p = count_log_probs(logits, max_count=2, spatial_dims=3)
    np.testing.assert_allclose(log_p.exp()[0], [0.1039, 0.4892, 0.4068], atol=1e-4)
    for count, loss in ((1, 0.7149), (2, 0.8994)):
        assert CountLoss(max_count=4, spatial_dims=3)(logits, torch.tensor([count])).item() == pytest.approx(
            loss, abs=5e-5
        )


def test_gradient_reaches_the_peaks_and_nothing_else():
    logits = logits_with(2.0, 0.5)
    logits[1, 1, 6] = 1.5  # beside the first peak, and lower
    logits[3, 3, 3] = logits[3, 3, 4] = 0.7  # a tie: the first in C order
    logits = logits[None].requires_grad_()
    CountLoss(max_count=4, spatial_dims=3)(logits, torch.tensor([2])).backward()
    assert torch.nonzero(logits.grad).tolist() == [[0, 1, 1, 5], [0, 1, 4, 5], [0, 3, 3, 3]]


def test_gradcheck_in_double_precision():
    peaks = torch.tensor([[0.3, -1.2, 2.5, -0.1], [1.0, 0.2, -math.inf, -math.inf]], dtype=torch.float64)
    finite = peaks.clamp(min=-50).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: log_bins(x, 3), finite)
    assert torch.autograd.gradcheck(lambda x: log_bins(x, 5), finite)
    assert torch.autograd.gradcheck(lambda x: log_bins(x, 1), finite)


def test_empty_maps_have_no_lesion_and_no_gradient():
    logits = logits_with()[None].requires_grad_()
    log_p = count_log_probs(logits, spatial_dims=3)
    assert log_p[0].tolist() == [0.0] + [-math.inf] * 4
    CountLoss(max_count=4, spatial_dims=3)(logits, torch.tensor([0])).backward()
    assert logits.grad is not None
    assert not logits.grad.any()


@pytest.mark.parametrize("value", [30.0, 100.0])
@pytest.mark.parametrize("label", [0, 1, 2])
def test_saturated_logits_give_finite_loss_and_gradient(value, label):
    logits = logits_with(value, value)[None].requires_grad_()
    loss = CountLoss(max_count=4, spatial_dims=3)(logits, torch.tensor([label]))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(logits.grad).all()
    if label == 0:
        assert loss.item() == pytest.approx(2 * value, rel=1e-5)
        assert logits.grad.abs().max() == pytest.approx(1.0)


def test_a_batch_equals_its_items_in_any_order():
    items = [logits_with(), logits_with(1.0, 2.0, 0.1, -1.0, 0.4), logits_with(0.5), logits_with(3.0, -2.0)]
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        batch = torch.stack([items[i] for i in order]).requires_grad_()
        log_p = count_log_probs(batch, spatial_dims=3)
        log_p[:, 1].clamp(min=-50).sum().backward()
        for row, i in enumerate(order):
            alone = items[i][None].clone().requires_grad_()
            expected = count_log_probs(alone, spatial_dims=3)
            torch.testing.assert_close(log_p[row], expected[0], rtol=0, atol=0)
            expected[:, 1].clamp(min=-50).sum().backward()
            torch.testing.assert_close(batch.grad[row], alone.grad[0], rtol=0, atol=0)


def test_shapes():
    volume, image = logits_with(1.0), logits_with(1.0)[1]
    for tensor, spatial_dims, expected in (
        (image[None], None, (1,)),
        (image[None, None], None, (1,)),
        (image[None].expand(2, 3, 9, 10), 2, (2, 3)),
        (volume[None], 3, (1,)),
        (volume[None, None], None, (1,)),
        (volume[None].expand(2, 3, 8, 9, 10), None, (2, 3)),
    ):
        assert count_log_probs(tensor, spatial_dims=spatial_dims).shape == (*expected, 5)
    for wrong, spatial_dims in (
        (image, None),
        (volume[None, None, None], None),
        (volume[None], 4),
        (volume[None, :0], 3),
    ):
        with pytest.raises(ShapeError):
            count_log_probs(wrong, spatial_dims=spatial_dims)


@pytest.mark.parametrize("shape", [(1, 24, 48, 40), (2, 3, 9, 10), (4, 9, 9, 9)])
def test_four_axes_that_may_be_classes_or_slices_are_not_guessed(shape):
    with pytest.raises(ShapeError, match=r"may be \(batch, classes, y, x\) or \(batch, z, y, x\). Pass spatial_dims=2"):
        count_log_probs(torch.full(shape, LOW))
    with pytest.raises(ShapeError, match="Pass spatial_dims"):
        CountLoss(max_count=4)(torch.full(shape, LOW), torch.zeros(shape[0], dtype=torch.long))


def test_one_slice_is_one_map_however_it_is_read():
    image = logits_with(1.0, 2.0)[1][None, None]
    torch.testing.assert_close(count_log_probs(image), count_log_probs(image, spatial_dims=3))


def test_probabilities_and_masks():
    logits = logits_with(1.0, 2.0)[None]
    torch.testing.assert_close(
        count_log_probs(torch.sigmoid(logits), logits=False, spatial_dims=3),
        count_log_probs(logits, spatial_dims=3),
    )
    mask = torch.ones_like(logits)
    mask[:, :, :3] = 0
    masked = count_log_probs(logits, mask=mask, spatial_dims=3)
    torch.testing.assert_close(masked, count_log_probs(logits_with(LOW, 2.0)[None], spatial_dims=3))
    with pytest.raises(ShapeError, match="mask of shape"):
        count_log_probs(logits, mask=mask[..., :-1], spatial_dims=3)


def test_sizes_in_millimetres_are_refused():
    with pytest.raises(ProtocolError, match="min_voxels"):
        count_log_probs(logits_with()[None], protocol=lc.CountingProtocol(min_volume_mm3=3))
    small = lc.CountingProtocol(min_voxels=2)
    assert count_log_probs(logits_with(3.0)[None], protocol=small, spatial_dims=3)[0, 0] == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    logits = logits_with(1.0, 2.0)[None].to(dtype).requires_grad_()
    log_p = count_log_probs(logits, spatial_dims=3)
    assert log_p.dtype == torch.float32
    log_p[0, 2].backward()
    assert logits.grad.dtype == dtype
    torch.testing.assert_close(log_p.detach(), count_log_probs(logits_with(1.0, 2.0)[None], spatial_dims=3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.isfinite(CountLoss(spatial_dims=3)(logits, torch.tensor([1])))


def test_labels_above_the_number_of_candidates_are_counted_and_finite():
    logits = torch.stack([logits_with(1.0), logits_with(1.0, 2.0)]).requires_grad_()
    loss = CountLoss(spatial_dims=3, reduction="none")
    values = loss(logits, torch.tensor([3, 2]))
    assert loss.n_impossible == 1
    assert values[0] == 100
    values.sum().backward()
    assert not logits.grad[0].any()
    assert logits.grad[1].any()


@pytest.mark.parametrize("dims", [2, 3])
def test_rescued_peaks_make_the_label_possible_and_are_raised(dims):
    logits = logits_with(1.0, -3.0, -4.0)  # two faint ones, below the threshold
    logits = (logits[1] if dims == 2 else logits)[None].requires_grad_()
    loss = CountLoss(spatial_dims=dims, rescue=True)
    value = loss(logits, torch.tensor([2]))
    value.backward()
    assert loss.n_impossible == 0
    assert torch.isfinite(value)
    raised = torch.nonzero(logits.grad < 0)
    assert len(raised) == 2  # the candidate and the stronger of the faint ones
    assert logits.detach()[tuple(raised[-1])] == -3.0 or logits.detach()[tuple(raised[0])] == -3.0


def test_bounds_add_up_the_counts_between_them():
    logits = torch.stack([logits_with(0.5, 1.0, -0.5)] * 4)
    p = count_log_probs(logits[:1], max_count=3, spatial_dims=3)[0].exp()
    low, high = torch.tensor([1, 0, 1, 2]), torch.tensor([3, 0, 2, 9])
    loss = CountLoss(spatial_dims=3, reduction="none")(logits, at_least=low, at_most=high)
    expected = [p[1:].sum(), p[0], p[1:3].sum(), p[2:].sum()]
    torch.testing.assert_close(loss.exp().reciprocal(), torch.stack(expected), rtol=1e-5, atol=0)
    some = CountLoss(max_count=4, spatial_dims=3)(logits[:1], at_least=torch.tensor([1]))
    none = CountLoss(max_count=4, spatial_dims=3)(logits[:1], at_most=torch.tensor([0]))
    assert some.neg().exp() + none.neg().exp() == pytest.approx(1)
    four_or_more = CountLoss(max_count=4, spatial_dims=3)(logits[:1], torch.tensor([7]))
    assert four_or_more == 100  # three candidates only


def test_loss_equals_nll_of_the_bins():
    logits = torch.stack([logits_with(0.5, 1.0, -0.5, 2.0, 0.1), logits_with(0.3)])
    labels = torch.tensor([6, 1])
    expected = torch.nn.functional.nll_loss(count_log_probs(logits, spatial_dims=3), labels.clamp(max=4))
    torch.testing.assert_close(CountLoss(max_count=4, spatial_dims=3)(logits, labels), expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either counts, or bounds on them"),
        ({"counts": torch.tensor([1]), "at_least": torch.tensor([1])}, "either counts, or bounds on them"),
        ({"counts": torch.tensor([1.0])}, "whole numbers"),
        ({"counts": torch.tensor([-1])}, "whole numbers"),
        ({"at_least": torch.tensor([3]), "at_most": torch.tensor([2])}, "not to be above"),
    ],
)
def test_wrong_labels_are_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        CountLoss(spatial_dims=3)(logits_with(1.0)[None], **arguments)
    with pytest.raises(ValueError, match="reduction"):
        CountLoss(reduction="median")


def test_module_gives_the_distribution():
    logits = torch.stack([logits_with(0.5, 1.0), logits_with(2.0)])
    count = LesionCounter(spatial_dims=3)(logits)
    core = [lc.count_lesions(item.numpy(), logits=True).distribution for item in logits]
    assert isinstance(count, PoissonBinomial)
    for name, expected in (("mean", "mean"), ("variance", "var"), ("mode", "mode")):
        np.testing.assert_allclose(getattr(count, name), [getattr(c, expected)() for c in core], rtol=1e-6)
    np.testing.assert_allclose(count.entropy(), [c.entropy() for c in core], rtol=1e-6)
    np.testing.assert_allclose(count.log_prob(torch.tensor([2, 1])), [core[0].logpmf(2), core[1].logpmf(1)], rtol=1e-6)
    np.testing.assert_allclose(count.cdf(torch.tensor([1, 0])), [core[0].cdf(1), core[1].cdf(0)], rtol=1e-6)
    assert count.log_prob(torch.tensor([3, -1])).tolist() == [-math.inf, -math.inf]
    assert count.n_trials.tolist() == [2, 1]
    assert count.enumerate_support().shape == (3, 2)
    assert count.enumerate_support(expand=False).shape == (3, 1)
    assert count.expand((4, 2)).mean.shape == (4, 2)
    assert count.probs.shape == (2, 2)
    torch.manual_seed(0)
    drawn = count.sample((4000,))
    torch.testing.assert_close(drawn.mean(0), count.mean, atol=0.05, rtol=0)
    assert LesionCounter(max_count=4, spatial_dims=3)(logits).shape == (2, 5)
    assert "voxels above 0.1" in repr(LesionCounter())


def test_parameters_of_the_distribution_are_checked():
    with pytest.raises(ValueError, match="either logits or probs"):
        PoissonBinomial()
    for wrong in (1.5, -0.1, math.nan):
        with pytest.raises(ValueError, match=r"probs to lie in \[0, 1\]"):
            PoissonBinomial(probs=torch.tensor([0.5, wrong]), validate_args=True)
    with pytest.raises(ValueError, match="logits to be numbers"):
        PoissonBinomial(torch.tensor([0.5, math.nan]), validate_args=True)
    assert PoissonBinomial(probs=torch.tensor([0.5, 1.5]), validate_args=False).mean.item() == pytest.approx(1.5)
    assert PoissonBinomial(torch.tensor([0.5, -math.inf])).n_trials == 1  # marks a trial that is not there


def test_a_compiled_model_breaks_cleanly():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(1, 1, 3, padding=1)
            self.count = LesionCounter(max_count=4)

        def forward(self, x):
            return self.count(self.conv(x) * 2)

    torch.manual_seed(0)
    model, x = Model(), torch.randn(2, 1, 16, 16)
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(compiled(x), model(x))


def test_seventy_thousand_candidates():
    torch.manual_seed(0)
    noise = torch.where(torch.rand(1, 64, 192, 192) < 0.1, torch.randn(1, 64, 192, 192), -6.0).requires_grad_()
    log_p = count_log_probs(noise, spatial_dims=3)
    log_p[0, 4].backward()
    assert torch.isfinite(log_p).all()
    assert torch.isfinite(noise.grad).all()


def test_rescue_stops_where_the_label_is_possible():
    """Of "4 or more", four candidates are enough, however large the label."""
    logits = logits_with(1.0, 1.0, 1.0, 1.0)
    logits[7, 7, 1] = logits[7, 1, 8] = -4.0  # faint peaks
    logits = logits[None].requires_grad_()
    CountLoss(max_count=4, spatial_dims=3, rescue=True)(logits, torch.tensor([9])).backward()
    assert int((logits.grad != 0).sum()) == 4


def test_rescue_stays_inside_the_mask():
    logits = logits_with()
    logits[7, 7, 1], logits[1, 1, 1] = -3.0, -4.0
    mask = torch.zeros(1, 8, 9, 10)
    mask[0, :4] = 1
    logits = logits[None].requires_grad_()
    CountLoss(spatial_dims=3, rescue=True)(logits, torch.tensor([1]), mask=mask).backward()
    assert torch.nonzero(logits.grad).tolist() == [[0, 1, 1, 1]]


def test_rescue_takes_a_plateau_once_and_a_flat_map_not_at_all():
    plateau = logits_with()
    plateau[3, 3, 3:6] = -4.0
    logits = torch.stack([plateau, logits_with()]).requires_grad_()
    loss = CountLoss(spatial_dims=3, rescue=True)
    loss(logits, torch.tensor([1, 1])).backward()
    assert torch.nonzero(logits.grad).tolist() == [[0, 3, 3, 3]]
    assert loss.n_impossible == 1


def test_bounds_far_above_the_number_of_candidates_cost_nothing():
    logits = logits_with(1.0, 0.5)[None]
    many = torch.tensor([1 << 30])
    loss = CountLoss(spatial_dims=3)
    assert loss(logits, at_least=torch.tensor([0]), at_most=many).item() == pytest.approx(0, abs=1e-6)
    assert loss(logits, many).item() == 100
    assert loss.n_impossible == 1

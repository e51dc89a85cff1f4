"""Peaks on the torch side: the numbers of the core, and a gradient that raises peaks and lowers saddles."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import ndimage

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

import lesioncount as lc  # noqa: E402 - after the check for torch
from lesioncount.torch import CountLoss, LesionCounter, count_log_probs  # noqa: E402
from lesioncount.torch.counting import count_distribution  # noqa: E402
from lesioncount.torch.existence import persistence_logits  # noqa: E402

DIGITS = 60


def hills(rng, shape, dtype=np.float64):
    """Smooth random logits, with many peaks that touch and no ties."""
    return (ndimage.gaussian_filter(rng.normal(size=shape), 1.0) * 8).astype(dtype)


def ridge(*values, dtype=torch.float64):
    """A batch of one 2-D map with these logits in a row."""
    logits = torch.full((1, 5, len(values) + 2), -6.0, dtype=dtype)
    logits[0, 2, 1:-1] = torch.tensor(values, dtype=dtype)
    return logits


def exact_logit(b, d):
    """The logit of σ(b) - σ(d), and its derivatives by b and d, in 60 digits."""
    with mpmath.workdps(DIGITS):
        high, low = (1 / (1 + mpmath.exp(-mpmath.mpf(x))) for x in (b, d))
        own = high - low
        spread = own * (1 - own)
        exact = mpmath.log(own / (1 - own)), high * (1 - high) / spread, -low * (1 - low) / spread
        return [float(x) for x in exact]


class TestLogitOfPersistence:
    @pytest.mark.parametrize("saddle", [-50.0, -20.0, -1.0, -1e-3, 0.0, 0.7, 3.0, 20.0, 49.0])
    @pytest.mark.parametrize("above", [1e-12, 1e-6, 1e-2, 0.5, math.log(2), 1.0, 5.0, 40.0, 100.0])
    def test_no_digit_is_lost(self, saddle, above):
        peak = saddle + above
        b, d = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (peak, saddle))
        found = persistence_logits(b, d)
        found.backward()
        logit, by_peak, by_saddle = exact_logit(peak, saddle)
        assert found.item() == pytest.approx(logit, rel=1e-14, abs=1e-14)
        assert b.grad.item() == pytest.approx(by_peak, rel=1e-13)
        assert d.grad.item() == pytest.approx(by_saddle, rel=1e-13)

    @pytest.mark.parametrize(("peak", "saddle"), [(50.0, 49.5), (50.0, -2.0), (-49.0, -50.0), (1.0000001, 1.0)])
    def test_single_precision_loses_no_more_than_its_own_digits(self, peak, saddle):
        b, d = torch.tensor(peak), torch.tensor(saddle)
        assert persistence_logits(b, d).item() == pytest.approx(exact_logit(b.item(), d.item())[0], rel=1e-6)

    def test_both_logarithms_follow_from_the_logit(self):
        for b, d in ((50.0, 49.0), (50.0, -50.0), (0.1, 0.0), (-49.0, -50.0)):
            logit = persistence_logits(torch.tensor(b, dtype=torch.float64), torch.tensor(d, dtype=torch.float64))
            with mpmath.workdps(DIGITS):
                own = 1 / (1 + mpmath.exp(-mpmath.mpf(b))) - 1 / (1 + mpmath.exp(-mpmath.mpf(d)))
                expected = [float(mpmath.log(own)), float(mpmath.log(1 - own))]
            found = torch.nn.functional.logsigmoid(torch.stack([logit, -logit])).tolist()
            assert found == pytest.approx(expected, rel=1e-13)

    def test_gradcheck(self):
        d = torch.tensor([-9.0, -1.0, 0.0, 2.0, 8.0], dtype=torch.float64)
        b = d + torch.tensor([3.0, 0.1, 0.693, 9.0, 1.0], dtype=torch.float64)
        assert torch.autograd.gradcheck(persistence_logits, (b.requires_grad_(), d.requires_grad_()))


CONNECTIVITIES = [(2, 4), (2, 8), (3, 6), (3, 18), (3, 26)]


@pytest.mark.parametrize(("ndim", "connectivity"), CONNECTIVITIES)
@pytest.mark.parametrize("options", [{}, {"min_voxels": 3}, {"min_persistence": 0.05}, {"threshold": 0.4}])
@pytest.mark.parametrize("logits", [True, False])
def test_numbers_are_those_of_the_core(ndim, connectivity, options, logits, rng):
    protocol = lc.CountingProtocol(candidates="peaks", connectivity=connectivity, **options)
    n_saddles = 0
    for dtype, _ in itertools.product((np.float64, np.float32), range(3)):
        values = hills(rng, (16, 17, 6)[:ndim], dtype)
        values = values if logits else 1 / (1 + np.exp(-values))
        core = lc.count_lesions(values, protocol=protocol, logits=logits)
        count = count_distribution(torch.from_numpy(values)[None], protocol=protocol, logits=logits, spatial_dims=ndim)
        np.testing.assert_allclose(count.logits[0].sigmoid(), core.existence, atol=1e-14)
        np.testing.assert_allclose(count.log_bins(9)[0].exp(), core.distribution.binned(9), atol=1e-6)
        n_saddles += (core.candidates.saddle_probability > 0).sum()
    assert n_saddles > 0


@pytest.mark.parametrize(("ndim", "connectivity"), CONNECTIVITIES)
def test_gradient_of_the_expected_count(ndim, connectivity, rng):
    """The slope of the sigmoid: upwards at each peak, downwards at each saddle, as often as it is one."""
    protocol = lc.CountingProtocol(candidates="peaks", connectivity=connectivity)
    values = hills(rng, (20, 21, 7)[:ndim])
    logits = torch.from_numpy(values)[None].requires_grad_()
    count_distribution(logits, protocol=protocol, spatial_dims=ndim).mean.sum().backward()
    found = lc.find_candidates(values, protocol=protocol, logits=True)
    role = np.zeros(values.size)
    np.add.at(role, found.peak_position, 1)
    np.subtract.at(role, found.saddle_position[found.saddle_position >= 0], 1)
    assert (role < 0).any()
    p = 1 / (1 + np.exp(-values.ravel()))
    np.testing.assert_allclose(logits.grad.numpy().ravel(), role * p * (1 - p), rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("logits", [True, False])
def test_gradcheck_through_a_map(logits):
    values = ridge(2.0, 0.5, 1.2, -0.4, 3.0, 2.2, 2.6)
    values = (values if logits else values.sigmoid()).requires_grad_()
    for call in (
        lambda x: count_log_probs(x, protocol="peaks", logits=logits, max_count=3),
        lambda x: CountLoss(protocol="peaks", logits=logits)(x, torch.tensor([2])),
        lambda x: CountLoss(protocol="peaks", logits=logits)(x, at_least=torch.tensor([3])),
    ):
        assert torch.autograd.gradcheck(call, values, eps=1e-7)


def test_a_batch_equals_its_items(rng):
    items = [torch.from_numpy(hills(rng, (12, 13))) - shift for shift in (0, 3, 40, 1)]  # the third is empty
    items.append(torch.full((12, 13), 2.0, dtype=torch.float64))  # a plateau
    batch = torch.stack(items).requires_grad_()
    log_p = count_log_probs(batch, protocol="peaks")
    log_p[:, 1].clamp(min=-50).sum().backward()
    for row, item in enumerate(items):
        alone = item[None].clone().requires_grad_()
        expected = count_log_probs(alone, protocol="peaks")
        torch.testing.assert_close(log_p[row], expected[0], rtol=0, atol=0)
        expected[:, 1].clamp(min=-50).sum().backward()
        torch.testing.assert_close(batch.grad[row], alone.grad[0], rtol=0, atol=0)


def test_where_nothing_touches_peaks_are_regions_to_the_last_bit(rng):
    logits = torch.full((2, 15, 15), -6.0)
    logits[:, 1::4, 1::4] = torch.from_numpy(rng.normal(size=(2, 4, 4))).float() * 3
    grads = []
    for protocol in ("paper", "peaks"):
        given = logits.clone().requires_grad_()
        log_p = count_log_probs(given, protocol=protocol)
        log_p[:, 2].sum().backward()
        grads.append((log_p.detach(), given.grad))
    for ours, expected in zip(*grads, strict=True):
        assert torch.equal(ours, expected)


def test_classes_have_peaks_of_their_own(rng):
    logits = torch.from_numpy(hills(rng, (2 * 3, 12, 13))).reshape(2, 3, 12, 13)
    together = count_log_probs(logits, protocol="peaks", spatial_dims=2)
    for i, c in itertools.product(range(2), range(3)):
        torch.testing.assert_close(together[i, c], count_log_probs(logits[i, c][None], protocol="peaks")[0])


def test_a_bridge_outside_the_mask_is_none():
    logits = ridge(2.0, 0.5, 1.0)
    mask = torch.ones_like(logits)
    assert LesionCounter("peaks")(logits).mean.item() == pytest.approx(
        sum(s * torch.tensor(v).sigmoid().item() for s, v in ((1, 2.0), (1, 1.0), (-1, 0.5))), rel=1e-6
    )
    mask[0, 2, 2] = 0
    apart = count_log_probs(logits, protocol="peaks", mask=mask)
    torch.testing.assert_close(apart, count_log_probs(ridge(2.0, -6.0, 1.0)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("label", [0, 1, 2, 3])
@pytest.mark.filterwarnings("ignore:The count loss has no gradient")
def test_saturated_logits_give_finite_losses_and_gradients(dtype, label):
    for values in ([50, 48, 49], [50, -2, 50], [50, 50, 50], [60000, 100, 60000], [3, 3, 3], [0.0, -0.0, 0.0]):
        logits = ridge(*values, dtype=dtype).requires_grad_()
        loss = CountLoss(protocol="peaks")(logits, torch.tensor([label]))
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("label", [0, 1, 2])
@pytest.mark.filterwarnings("ignore:The count loss has no gradient")
def test_saturated_probabilities_give_finite_losses_and_gradients(dtype, label):
    for values in ([1, 1, 1], [1, 0.5, 1], [1, 0.25, 0.5], [1, 0.99951, 1], [1.0009, 1, 1.0009]):
        maps = torch.zeros((1, 5, 5), dtype=dtype)
        maps[0, 2, 1:4] = torch.tensor(values, dtype=dtype)
        maps = maps.clamp(max=1 + 1e-5 if dtype != torch.float16 else None, min=0).requires_grad_()
        loss = CountLoss(protocol="peaks", logits=False)(maps, torch.tensor([label]))
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(maps.grad).all()


def test_probabilities_that_saturate_have_no_saddle_where_logits_have_one():
    logits = ridge(20.0, 10.0, 20.0)
    assert count_distribution(logits, protocol="peaks").n_trials.tolist() == [2]
    assert count_distribution(logits.sigmoid().half(), protocol="peaks", logits=False).n_trials.tolist() == [1]


def test_noise_of_early_training_gives_finite_gradients(rng):
    noise = np.where(rng.random((1, 16, 64, 64)) < 0.1, rng.normal(size=(1, 16, 64, 64)), -6.0)
    for label in (0, 4, 3000):
        logits = torch.from_numpy(noise.astype(np.float32)).requires_grad_()
        loss = CountLoss(protocol="peaks", spatial_dims=3)(logits, torch.tensor([label]))
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(logits.grad).all()


def test_maps_that_are_not_finite_are_left_out():
    logits = torch.cat([ridge(2.0, 0.5, 1.0), ridge(2.0, math.nan, 1.0)]).requires_grad_()
    loss = CountLoss(protocol="peaks")
    loss(logits, torch.tensor([2, 2])).backward()
    assert loss.n_not_finite == 1
    assert logits.grad[0].any()
    assert not logits.grad[1].any()


def test_a_smallest_persistence_bounds_the_gradient(rng):
    """A peak that the label needs is raised by 1 / persistence; no slope of the sigmoid is above a quarter."""
    steep = ridge(1.0, 1.0 - 1e-7, 1.0 - 5e-8).requires_grad_()
    CountLoss(protocol="peaks")(steep, torch.tensor([2])).backward()
    assert steep.grad.abs().max() > 1e5
    protocol = lc.CountingProtocol(candidates="peaks", min_persistence=0.05)
    for label in range(6):
        logits = torch.from_numpy(hills(rng, (1, 20, 20))).requires_grad_()
        for log_p in count_log_probs(logits, protocol=protocol, max_count=40)[0, : label + 2]:
            (grad,) = torch.autograd.grad(log_p, logits, retain_graph=True)
            found = lc.find_candidates(logits.detach().numpy()[0], protocol=protocol, logits=True)
            roles = np.bincount(np.concatenate([found.peak_position, np.maximum(found.saddle_position, 0)])).max()
            assert grad.abs().max() <= roles / (4 * 0.05)


def test_rescued_peaks_have_no_saddle():
    logits = ridge(2.0, 0.5, 1.0, -6.0, -6.0, -3.0).requires_grad_()
    loss = CountLoss(protocol="peaks", rescue=True, reduction="none")
    value = loss(logits, torch.tensor([3]))
    value.sum().backward()
    assert loss.n_impossible == 0
    assert logits.grad[0, 2].sign().tolist() == [0, -1, 1, -1, 0, 0, -1, 0]
    expected = [torch.tensor(2.0).sigmoid(), torch.tensor(1.0).sigmoid() - torch.tensor(0.5).sigmoid()]
    expected.append(torch.tensor(-3.0).sigmoid())
    assert value.item() == pytest.approx(-sum(p.log().item() for p in expected), rel=1e-6)


def discs():
    """Two discs that touch, as a network gives them that was taught to merge them."""
    y, x = np.mgrid[:24, :40]
    first, second = (np.hypot(y - 12, x - centre) for centre in (14, 25))
    values = 4 - 0.9 * np.minimum(first, second + 0.2)
    return torch.from_numpy(np.maximum(values, -6))[None]


def trained(protocol, n_steps=10):
    """Losses, and the saddle before and after, of logits that are told that there are two."""
    logits = discs().requires_grad_()
    loss, optimizer = CountLoss(protocol=protocol), torch.optim.SGD([logits], lr=1.0)
    losses, saddles = [], []
    for _ in range(n_steps):
        saddles.append(lc.find_candidates(logits.detach().numpy()[0], protocol="peaks", logits=True).saddle_probability)
        optimizer.zero_grad()
        value = loss(logits, torch.tensor([2]))
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses, [heights.max() for heights in saddles]


def test_a_count_of_two_takes_the_bridge_down():
    losses, saddles = trained("peaks")
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] - 0.1
    assert saddles == sorted(saddles, reverse=True)
    assert saddles[-1] < saddles[0] - 0.05


@pytest.mark.filterwarnings("ignore:The count loss has no gradient")
def test_for_regions_a_count_of_two_is_impossible_and_the_bridge_stays():
    losses, saddles = trained("paper")
    assert losses == [100.0] * 10
    assert saddles == [saddles[0]] * 10

"""Outputs of a softmax, the one default for bins, and shapes that do not fit."""

import inspect

import pytest

import lesioncount as lc
from lesioncount.errors import ShapeError

torch = pytest.importorskip("torch", reason="needs the extra [train]")

from lesioncount.learning.networks.heads import MapHead  # noqa: E402 - after the check for torch
from lesioncount.torch import CountLoss, LesionCounter, PoissonBinomial, count_log_probs  # noqa: E402
from lesioncount.torch.counting import count_distribution  # noqa: E402


@pytest.fixture
def output():
    """(batch, classes, *spatial) before the softmax: background and two kinds of lesions."""
    generator = torch.Generator().manual_seed(3)
    return torch.randn(2, 3, 9, 10, generator=generator, dtype=torch.float64) * 2


def test_a_softmax_is_counted_without_its_background(output):
    counts = count_distribution(output, activation="softmax")
    assert counts.batch_shape == (2, 2)
    probabilities = output.softmax(1)
    for item in range(2):
        for kind in (1, 2):
            expected = lc.count_lesions(probabilities[item, kind].numpy())
            assert counts.mean[item, kind - 1].item() == pytest.approx(expected.distribution.mean(), rel=1e-6)


@pytest.mark.parametrize("shape", [(2, 2, 8, 9), (2, 2, 5, 6, 7)])
def test_two_classes_are_one_sigmoid(shape):
    output = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    logits = output[:, 1] - output[:, 0]
    expected = count_log_probs(logits, spatial_dims=len(shape) - 2)
    torch.testing.assert_close(count_log_probs(output, activation="softmax"), expected)
    torch.testing.assert_close(
        count_log_probs(output.softmax(1), activation="softmax", logits=False), expected, rtol=1e-4, atol=1e-4
    )
    counts = torch.tensor([1, 3])
    torch.testing.assert_close(
        CountLoss(activation="softmax")(output, counts), CountLoss(spatial_dims=len(shape) - 2)(logits, counts)
    )
    torch.testing.assert_close(LesionCounter(activation="softmax", max_count=4)(output), expected)


def test_the_gradient_reaches_all_classes(output):
    output = output.clone().requires_grad_()
    CountLoss(activation="softmax")(output, torch.tensor([[0, 1], [2, 0]])).backward()
    assert all(output.grad[:, kind].any() for kind in range(3))
    # A softmax does not change when all its inputs grow alike.
    torch.testing.assert_close(output.grad.sum(1), torch.zeros(2, 9, 10, dtype=torch.float64), atol=1e-6, rtol=0)


def test_a_certain_voxel_has_a_finite_gradient():
    output = torch.full((1, 2, 6, 6), 0.0)
    output[0, 0], output[0, 0, 2, 2], output[0, 1, 2, 2] = 20.0, -200.0, 200.0
    output.requires_grad_()
    loss = CountLoss(activation="softmax")(output, torch.tensor([0]))
    loss.backward()
    assert loss.item() == pytest.approx(400)
    assert torch.isfinite(output.grad).all()


def test_maps_that_overflow_are_left_out(output):
    output = output.float()
    output[0, 1, 2, 2] = torch.inf
    output.requires_grad_()
    loss = CountLoss(activation="softmax")
    loss(output, torch.tensor([[1, 1], [1, 1]])).backward()
    assert loss.n_not_finite == 2
    assert torch.isfinite(output.grad).all()
    assert not output.grad[0].any()


@pytest.mark.parametrize("shape", [(2, 1, 8, 9), (2, 8, 9), (2, 3, 4, 5, 6, 7)])
def test_outputs_that_are_no_softmax(shape):
    with pytest.raises(ShapeError, match=r"output of a softmax as \(batch, classes, \*spatial\), with the background"):
        count_log_probs(torch.zeros(shape), activation="softmax")


def test_activations_that_there_are_not():
    for make in (
        lambda: CountLoss(activation="relu"),
        lambda: LesionCounter(activation="relu"),
        lambda: count_log_probs(torch.zeros(1, 4, 4), activation="relu"),
    ):
        with pytest.raises(ValueError, match='activation to be "sigmoid" or "softmax", but got \'relu\''):
            make()


def test_bins_end_at_four_wherever_there_are_bins():
    for function in (
        count_log_probs, MapHead, PoissonBinomial.log_bins, lc.PoissonBinomial.binned, lc.scores.confusion,
    ):  # fmt: skip
        assert inspect.signature(function).parameters["max_count"].default == 4


def test_large_counts_are_told_apart_unless_bins_are_asked_for():
    logits = torch.full((1, 20, 20), -6.0)
    logits[0, ::3, ::3] = 1.0  # 49 candidates
    assert CountLoss()(logits, torch.tensor([36])) != CountLoss()(logits, torch.tensor([30]))
    assert CountLoss(4)(logits, torch.tensor([36])) == CountLoss(4)(logits, torch.tensor([30]))
    assert LesionCounter()(logits).mean == pytest.approx(49 * torch.sigmoid(torch.tensor(1.0)).item())


def test_all_bins_are_there_for_none():
    logits = torch.full((1, 8, 8), -6.0)
    logits[0, 1, 1], logits[0, 4, 4] = 0.5, 1.0
    assert count_log_probs(logits, max_count=None).shape == (1, 3)
    torch.testing.assert_close(count_log_probs(logits, max_count=None), count_log_probs(logits, max_count=2))


class TestShapes:
    maps = torch.zeros(2, 1, 6, 7)

    def test_the_mask_is_named_with_its_shape(self):
        with pytest.raises(ShapeError, match=r"mask of shape \(2, 6, 7\).*but the mask has \(2, 7, 6\)"):
            count_log_probs(self.maps, mask=torch.ones(2, 7, 6))
        for mask in (torch.ones(2, 6, 7), torch.ones(2, 1, 6, 7)):
            assert count_log_probs(self.maps, mask=mask).shape == (2, 5)

    @pytest.mark.parametrize("name", ["counts", "at_least", "at_most"])
    def test_labels_are_named(self, name):
        with pytest.raises(ShapeError, match=rf"Expected {name} of shape \(2,\).*but {name} has shape \(3,\)"):
            CountLoss()(self.maps, **{name: torch.zeros(3, dtype=torch.long)})

    def test_labels_of_classes_are_not_taken_the_other_way_round(self):
        with pytest.raises(ShapeError, match=r"counts of shape \(2, 3\), one for each map and class, .* \(3, 2\)"):
            CountLoss(spatial_dims=2)(torch.zeros(2, 3, 6, 7), torch.zeros(3, 2, dtype=torch.long))

    def test_a_map_without_a_batch_is_told_so(self):
        with pytest.raises(ShapeError, match=r"but got \(6, 7\). A single map is a batch of one: maps\[None\]"):
            count_log_probs(torch.zeros(6, 7))
        with pytest.raises(ShapeError, match=r"\(5, 6, 7\) with spatial_dims=3. A single map is a batch of one"):
            count_log_probs(torch.zeros(5, 6, 7), spatial_dims=3)

    def test_the_axis_without_voxels_is_named(self):
        with pytest.raises(ShapeError, match=r"axis 2 of their shape \(2, 1, 0, 7\) has length 0"):
            count_log_probs(torch.zeros(2, 1, 0, 7))

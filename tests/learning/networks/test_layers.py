"""Layers that are faster than torch's on a CPU give what torch's give."""

import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")

from lesioncount.learning.networks.layers import (  # noqa: E402
    LAYOUTS,
    NEGATIVE_SLOPE,
    Dropout,
    NormAndActivation,
    can_fuse,
    convolution,
)


def some_features(channels, shape, dtype=torch.float32, seed=0):
    """With channels last, and far from 0."""
    generator = torch.Generator().manual_seed(seed)
    found = (3 * torch.randn(2, channels, *shape, generator=generator) + 5).to(dtype)
    return found.contiguous(memory_format=LAYOUTS[len(shape)]).requires_grad_()


def some_norm(channels):
    norm = NormAndActivation(channels)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        norm.weight.normal_(generator=generator)
        norm.bias.normal_(generator=generator)
    return norm


def exact(norm, features, above):
    """The same in double precision, by torch: output, and the gradients of features, weight and bias."""
    given = features.detach().double().contiguous().requires_grad_()
    weight, bias = (of.detach().double().requires_grad_() for of in (norm.weight, norm.bias))
    normed = torch.nn.functional.instance_norm(given, weight=weight, bias=bias, eps=norm.eps)
    out = torch.nn.functional.leaky_relu(normed, NEGATIVE_SLOPE)
    out.backward(above.double())
    return out.detach(), given.grad, weight.grad, bias.grad


@pytest.mark.parametrize("channels", [1, 3, 8, 32, 129])
@pytest.mark.parametrize("shape", [(4, 5, 6), (7, 9), (2, 3)])
def test_norm_and_its_gradient_are_those_of_torch(channels, shape):
    norm, features = some_norm(channels), some_features(channels, shape)
    assert can_fuse(features)
    out = norm(features)
    above = torch.randn(out.shape, generator=torch.Generator().manual_seed(2))  # not with channels last
    out.backward(above)
    found = (out.detach(), features.grad, norm.weight.grad, norm.bias.grad)
    for mine, theirs in zip(found, exact(norm, features, above), strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-4)


def test_norm_in_bfloat16_is_as_good_as_bfloat16_is():
    norm, features = some_norm(8), some_features(8, (6, 7, 8), torch.bfloat16)
    out = norm(features)
    above = torch.randn(out.shape, generator=torch.Generator().manual_seed(2)).bfloat16()
    out.backward(above)
    assert out.dtype == features.grad.dtype == torch.bfloat16
    assert norm.weight.grad.dtype == torch.float32
    for mine, theirs in zip((out, features.grad), exact(norm, features, above), strict=False):
        torch.testing.assert_close(mine.detach().double(), theirs, rtol=2**-7, atol=2**-8)


def test_channel_of_weight_zero_still_learns():
    norm, features = some_norm(3), some_features(3, (4, 4, 4))
    with torch.no_grad():
        norm.weight[1] = 0.0
    norm(features).sum().backward()
    assert torch.equal(features.grad[:, 1], torch.zeros_like(features.grad[:, 1]))
    torch.testing.assert_close(norm.weight.grad[1].double(), exact(norm, features, torch.ones(features.shape))[2][1])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_not_finite_stays_visible(value, dtype):
    features = some_features(8, (4, 4, 4), dtype).detach()
    features[0, 2, 1, 1, 1] = value
    out = some_norm(8)(features)
    assert out[0, 2].isnan().all()
    assert out[1].isfinite().all()
    assert out[0, 3].isfinite().all()


def test_features_in_another_layout_or_of_another_type_give_the_same():
    norm, features = some_norm(8), some_features(8, (4, 5, 6)).detach()
    assert not can_fuse(features.contiguous())
    assert not can_fuse(features.double())
    torch.testing.assert_close(norm(features.contiguous()), norm(features), rtol=1e-4, atol=1e-5)


def test_features_that_are_read_backwards_are_left_to_torch():
    """A view whose memory is not what its shape says."""
    features = some_features(8, (4, 5, 6)).detach()
    assert not can_fuse(features[:, :, ::2])


def test_norm_does_not_change_its_input():
    features = some_features(8, (4, 4, 4)).detach()
    before = features.clone()
    some_norm(8)(features)
    assert torch.equal(features, before)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last_3d])
def test_dropout_drops_its_share_and_keeps_the_mean(layout):
    torch.manual_seed(0)
    ones = torch.ones(4, 8, 30, 31, 33).contiguous(memory_format=layout)
    out = Dropout(0.1)(ones)
    share = float((out == 0).float().mean())
    assert share == pytest.approx(0.1, abs=4 * (0.1 * 0.9 / ones.numel()) ** 0.5 + 2**-16)
    assert sorted(out.unique().tolist()) == pytest.approx([0, 1 / 0.9], rel=1e-4)
    assert out.stride() == ones.stride()


def test_dropout_does_nothing_when_it_should_not():
    ones = torch.ones(1000)
    assert Dropout(0.0)(ones) is ones or torch.equal(Dropout(0.0)(ones), ones)
    assert torch.equal(Dropout(0.5).eval()(ones), ones)


def test_dropout_follows_the_seed_and_passes_the_gradient():
    given = torch.ones(101, requires_grad=True)
    outs = []
    for _ in range(2):
        torch.manual_seed(3)
        outs.append(Dropout(0.5)(given))
    assert torch.equal(*outs)
    outs[0].sum().backward()
    assert torch.equal(given.grad, outs[0].detach())


def test_two_planes_are_never_convolved_in_bfloat16():
    """There oneDNN reads memory that nobody has written; elsewhere bfloat16 is what was asked for."""
    layer = convolution(3, 4, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        kinds = [layer(torch.randn(1, 4, planes, 3, 2)).dtype for planes in (1, 2, 3)]
    assert kinds == [torch.bfloat16, torch.float32, torch.bfloat16]
    assert layer(torch.randn(1, 4, 2, 3, 2)).dtype == torch.float32

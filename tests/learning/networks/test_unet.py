"""The UNet: its shapes, its size, what it starts from."""

import math

import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from lesioncount.errors import ShapeError  # noqa: E402 - after the check for torch
from lesioncount.learning.networks import UNet  # noqa: E402
from lesioncount.learning.networks.layers import NormAndActivation, average_pooled, max_pooled  # noqa: E402


def small_unet(**options):
    torch.manual_seed(0)
    return UNet(**{"in_channels": 2, "filters": 2, "levels": 3} | options)


@pytest.mark.parametrize(
    ("shape", "lowest"),
    [
        ((24, 48, 40), (2, 3, 3)),
        ((16, 16, 16), (1, 1, 1)),
        ((7, 33, 18), (1, 3, 2)),
        ((1, 5, 3), (1, 1, 1)),
        ((1, 1, 1), (1, 1, 1)),
        ((64, 128), (4, 8)),
        ((31, 50), (2, 4)),
        ((1, 9), (1, 1)),
        ((1, 1), (1, 1)),
    ],
)
@pytest.mark.parametrize("training", [True, False])
def test_images_of_any_size_keep_it(shape, lowest, training):
    unet = small_unet(spatial_dims=len(shape), levels=5).train(training)
    output = unet(torch.randn(1, 2, *shape))
    assert output.logits.shape == (1, 1, *shape)
    assert output.decoded.shape == (1, 2, *shape)
    assert output.bottleneck.shape == (1, 16, *lowest)
    assert output.logits.isfinite().all()
    output.logits.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in unet.parameters())


@pytest.mark.parametrize("levels", [2, 3, 6])
def test_depth_is_an_option(levels):
    unet = small_unet(levels=levels)
    assert len(unet.encoder) == levels
    assert unet(torch.randn(1, 2, 8, 9, 10)).logits.shape == (1, 1, 8, 9, 10)


@pytest.mark.parametrize("dims", [2, 3])
def test_parameters_are_those_of_the_paper(dims):
    def block(before, here):
        """A convolution without bias, and the scale and shift of the norm."""
        return 3**dims * before * here + 2 * here

    def up(channels, out):
        """Two convolutions whose sum is normalised once, and one more."""
        return 2 * 3**dims * channels**2 + 2 * channels + block(channels, out)

    down = block(5, 32) + block(32, 32) + block(32, 64) + block(64, 64) + block(64, 128) + block(128, 128)
    down += block(128, 256) + block(256, 256)
    lowest = block(256, 512) + block(512, 256)
    ups = up(256, 128) + up(128, 64) + up(64, 32) + up(32, 32)
    output = 32 + 1
    unet = UNet(spatial_dims=dims)
    assert sum(p.numel() for p in unet.parameters()) == down + lowest + ups + output
    if dims == 3:
        assert down + lowest + ups + output == 16_487_489


def test_skips_are_added():
    """Without what comes from below, a level sees the skip alone, and the other way round."""
    up = small_unet(dropout=0.0).decoder[-1].eval()
    below, skip = torch.randn(1, 2, 4, 4, 4), torch.randn(1, 2, 8, 7, 8)
    doubled = below.repeat_interleave(2, 2).repeat_interleave(2, 3).repeat_interleave(2, 4)[..., :7, :]
    expected = up.after(up.from_below(doubled) + up.from_skip(skip))
    torch.testing.assert_close(up(below, skip), expected)
    weight = torch.cat([up.from_below.weight, up.from_skip.weight], dim=1)
    concatenated = torch.nn.functional.conv3d(torch.cat([doubled, skip], dim=1), weight, padding=1)
    torch.testing.assert_close(up.after(concatenated), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dims", [2, 3])
def test_a_level_is_two_blocks_of_monai(dims):
    monai = pytest.importorskip("monai.networks.blocks", reason="needs the extra [train]")
    ours = small_unet(spatial_dims=dims).encoder[0]
    options = {"bias": False, "norm": ("instance", {"affine": True}), "act": ("leakyrelu", {"negative_slope": 0.01})}
    theirs = torch.nn.Sequential(monai.Convolution(dims, 2, 2, **options), monai.Convolution(dims, 2, 2, **options))
    with torch.no_grad():
        for mine, their in zip(ours.parameters(), theirs.parameters(), strict=True):
            their.copy_(mine)
    images = torch.randn(3, 2, *(9,) * dims)
    torch.testing.assert_close(ours(images), theirs(images), rtol=1e-4, atol=1e-5)


def test_single_voxel_is_not_wiped_out_by_the_norm():
    voxel = torch.tensor([[[[2.0]], [[-3.0]]]])
    assert NormAndActivation(2)(voxel).flatten().tolist() == pytest.approx([2.0, -0.03])


def test_pooling_leaves_no_voxel_out():
    row = torch.tensor([1.0, 3.0, 9.0]).reshape(1, 1, 1, 3)
    assert max_pooled(row).flatten().tolist() == [3.0, 9.0]
    assert average_pooled(row).flatten().tolist() == [2.0, 9.0]
    assert average_pooled(row[:, :, None]).flatten().tolist() == [2.0, 9.0]


def test_bias_is_the_best_constant_prediction():
    """The minimum of the weighted cross-entropy of a map with this prevalence."""
    prevalence, weight = 0.004, 3.0
    bias = small_unet(prevalence=prevalence, positive_weight=weight).output.bias.double().detach().requires_grad_()
    loss = -weight * prevalence * torch.nn.functional.logsigmoid(bias)
    loss -= (1 - prevalence) * torch.nn.functional.logsigmoid(-bias)
    loss.backward()
    assert bias.grad.item() == pytest.approx(0, abs=1e-8)
    unweighted = small_unet(prevalence=prevalence).output.bias
    assert unweighted.sigmoid().item() == pytest.approx(prevalence)
    assert small_unet().output.bias.item() == 0


def test_new_network_predicts_about_the_prevalence():
    unet = small_unet(prevalence=0.01, filters=8)
    mean = unet(torch.randn(2, 2, 16, 16, 16)).logits.sigmoid().mean().item()
    assert math.log(mean / 0.01) == pytest.approx(0, abs=1)


def test_same_seed_gives_the_same_network():
    images = torch.randn(1, 2, 8, 8, 8)
    first, second = small_unet().eval(), small_unet().eval()
    assert torch.equal(first(images).logits, second(images).logits)


def test_no_image_influences_another():
    unet = small_unet().eval()
    images = torch.randn(3, 2, 9, 12, 7)
    together = unet(images)
    for i, image in enumerate(images):
        for whole, alone in zip(together, unet(image[None]), strict=True):
            torch.testing.assert_close(whole[i], alone[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dims", [2, 3])
def test_channels_last_gives_the_same(dims):
    layout = torch.channels_last if dims == 2 else torch.channels_last_3d
    images = torch.randn(2, 2, *(10, 12, 8)[:dims])
    unet = small_unet(spatial_dims=dims).eval()
    expected = unet(images).logits
    moved = unet.to(memory_format=layout)(images.to(memory_format=layout)).logits
    torch.testing.assert_close(moved, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 3, 8, 8, 8), (2, 8, 8, 8), (2, 2, 8, 0, 8)])
def test_images_that_do_not_fit_are_named(shape):
    with pytest.raises(ShapeError, match=r"\(batch, 2, z, y, x\), but got"):
        small_unet()(torch.zeros(shape))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"spatial_dims": 4}, "spatial_dims to be 2 or 3"),
        ({"levels": 1}, "levels to be a whole number of at least 2"),
        ({"filters": 0}, "filters to be a whole number of at least 1"),
        ({"filters": 2.5}, "filters to be a whole number"),
        ({"dropout": 1.0}, "dropout"),
        ({"prevalence": 0.0}, "prevalence"),
        ({"positive_weight": 0.0}, "positive_weight"),
    ],
)
def test_options_that_make_no_sense(options, words):
    with pytest.raises(ValueError, match=words):
        small_unet(**options)

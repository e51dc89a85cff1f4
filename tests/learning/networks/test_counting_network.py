"""The four methods: one face, and what the gradient of a count reaches."""

import json

import pytest
from two_processes import in_two_processes

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from lesioncount import CountingProtocol  # noqa: E402 - after the check for torch
from lesioncount.errors import ProtocolError  # noqa: E402
from lesioncount.learning.networks import METHODS, counting_network  # noqa: E402
from lesioncount.torch import count_log_probs  # noqa: E402

HEADS = [method for method in METHODS if method != "map"]


def small_network(method, **options):
    torch.manual_seed(0)
    return counting_network(method, **{"in_channels": 2, "filters": 2, "levels": 3} | options)


def images(*shape, batch=2):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(batch, 2, *shape, generator=generator)


def convolutions(module):
    return [m for m in module.modules() if isinstance(m, torch.nn.Conv2d | torch.nn.Conv3d)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(24, 48, 40), (7, 9, 5), (1, 1, 1), (33, 20), (1, 4)])
def test_all_methods_have_one_face(method, shape):
    network = small_network(method, spatial_dims=len(shape), levels=5)
    logits, log_probs = network(images(*shape))
    assert logits.shape == (2, 1, *shape)
    assert log_probs.shape == (2, 5)
    torch.testing.assert_close(log_probs.exp().sum(1), torch.ones(2))


def test_unknown_method_names_the_known_ones():
    with pytest.raises(ValueError, match=r"one of map, bottleneck, multihead, downstream, but got 'multi-head'"):
        counting_network("multi-head")


def test_options_that_make_no_sense():
    with pytest.raises(ValueError, match="max_count to be at least 1"):
        small_network("map", max_count=0)
    with pytest.raises(ValueError, match="head_filters to be at least 1"):
        small_network("downstream", head_filters=0)
    with pytest.raises(ProtocolError, match="no protocol"):
        small_network("map", protocol="nobody's")
    with pytest.raises(TypeError, match="filter_count"):
        small_network("map", filter_count=3)


def test_our_log_probs_are_those_of_the_map():
    protocol = CountingProtocol(threshold=0.4, min_voxels=2)
    network = small_network("map", protocol=protocol, max_count=6).eval()
    logits, log_probs = network(images(8, 9, 10))
    assert torch.equal(log_probs, count_log_probs(logits, max_count=6, protocol=protocol, spatial_dims=3))
    assert not list(network.head.parameters())


def test_thin_stacks_are_not_mistaken_for_classes():
    logits, log_probs = small_network("map")(images(1, 8, 8))
    assert torch.equal(log_probs, count_log_probs(logits[:, 0], spatial_dims=3))


@pytest.mark.parametrize(("method", "n"), [("bottleneck", 3), ("multihead", 13), ("downstream", 13)])
def test_heads_have_the_layers_of_the_paper(method, n):
    """Three layers; or seven, of which six are blocks of two convolutions."""
    head = small_network(method).head
    assert len(head.blocks) + 1 == (3 if method == "bottleneck" else 7)
    assert len(convolutions(head)) == n
    assert head.last.out_channels == 5


@pytest.mark.parametrize(
    ("method", "before", "widths"),
    [
        ("bottleneck", 256, [8, 16, 5]),
        ("multihead", 32, [64, 64, 128, 128, *[256] * 8, 5]),
        ("downstream", 1, [32, 32, 64, 64, *[128] * 8, 5]),
    ],
)
def test_widths_are_those_of_the_published_code(method, before, widths):
    head = counting_network(method).head
    assert [layer.out_channels for layer in convolutions(head)] == widths
    assert convolutions(head)[0].in_channels == before


def test_width_and_dropout_of_a_head_are_options():
    head = small_network("multihead", head_filters=3, head_dropout=0.2).head
    assert convolutions(head)[0].out_channels == 3
    assert head.dropout.p == 0.2


@pytest.mark.parametrize("method", HEADS)
def test_count_alone_reaches_head_and_unet(method):
    network = small_network(method)
    torch.nn.functional.nll_loss(network(images(16, 16, 16)).log_probs, torch.tensor([1, 3])).backward()
    reached = {name for name, p in network.named_parameters() if p.grad is not None and p.grad.any()}
    assert any(name.startswith("head.last") for name in reached)
    assert any(name.startswith("unet.encoder.0") for name in reached)
    assert any(name.startswith("unet.encoder.2") for name in reached)
    assert any(name.startswith("unet.decoder") for name in reached) == (method != "bottleneck")
    assert any(name.startswith("unet.output") for name in reached) == (method == "downstream")


def test_count_alone_reaches_all_of_the_unet_in_our_method():
    network = small_network("map", prevalence=0.3)
    (-network(images(16, 16, 16)).log_probs[:, 0].sum()).backward()
    assert all(p.grad.any() for p in network.unet.parameters())


@pytest.mark.parametrize("method", METHODS)
def test_every_parameter_takes_part(method):
    network = small_network(method)
    logits, log_probs = network(images(8, 8, 8))
    (logits.sum() + log_probs[:, 0].sum()).backward()
    assert all(p.grad is not None for p in network.parameters())


@pytest.mark.parametrize("method", METHODS)
def test_unet_starts_the_same_whatever_the_method(method):
    expected = small_network("map").unet.state_dict()
    for name, weights in small_network(method).unet.state_dict().items():
        assert torch.equal(weights, expected[name])


@pytest.mark.parametrize("method", METHODS)
def test_saved_network_is_built_again(method, tmp_path):
    protocol = CountingProtocol(threshold=0.2, connectivity=26)
    network = small_network(method, protocol=protocol, prevalence=0.01, positive_weight=3.0, max_count=3).eval()
    torch.save({"options": network.options, "weights": network.state_dict()}, tmp_path / "network.pt")
    checkpoint = torch.load(tmp_path / "network.pt", weights_only=True)
    again = counting_network(**checkpoint["options"]).eval()
    again.load_state_dict(checkpoint["weights"])
    for saved, expected in zip(again(images(9, 9, 9)), network(images(9, 9, 9)), strict=True):
        assert torch.equal(saved, expected)
    assert counting_network(**json.loads(json.dumps(network.options))).options == network.options


@pytest.mark.parametrize("method", METHODS)
def test_batch_is_its_items_one_by_one(method):
    network = small_network(method).eval()
    together = network(images(9, 12, 7, batch=3))
    for i, image in enumerate(images(9, 12, 7, batch=3)):
        for whole, alone in zip(together, network(image[None]), strict=True):
            torch.testing.assert_close(whole[i], alone[0], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", HEADS)
def test_frozen_unet_keeps_its_weights_while_the_head_learns(method):
    network = small_network(method)
    network.freeze_segmentation()
    optimizer = torch.optim.Adam(network.parameter_groups(0.01), weight_decay=0.1)
    before = {name: weights.clone() for name, weights in network.state_dict().items()}
    (-network(images(8, 8, 8)).log_probs[:, 2].sum()).backward()
    optimizer.step()
    for name, weights in network.state_dict().items():
        assert torch.equal(weights, before[name]) == name.startswith("unet."), name
    network.freeze_segmentation(frozen=False)
    assert all(p.requires_grad for p in network.parameters())


def test_parameter_groups_cover_everything_once():
    for method in METHODS:
        network = small_network(method)
        grouped = [p for group in network.parameter_groups(1e-4) for p in group["params"]]
        assert {id(p) for p in grouped} == {id(p) for p in network.parameters()}
        assert len(grouped) == len(list(network.parameters()))


def test_head_of_multihead_learns_more_slowly():
    rates = {method: [group["lr"] for group in small_network(method).parameter_groups(1e-4)] for method in METHODS}
    assert rates == {
        "map": [1e-4],
        "bottleneck": [1e-4, 1e-4],
        "multihead": [1e-4, pytest.approx(1e-5)],
        "downstream": [1e-4, 1e-4],
    }
    assert small_network("multihead").parameter_groups(1e-4, head_lr=3e-4)[1]["lr"] == 3e-4


@pytest.mark.parametrize("method", METHODS)
def test_monte_carlo_dropout_varies_and_evaluation_does_not(method):
    network = small_network(method, filters=4).eval()
    inputs = images(8, 8, 8)
    assert torch.equal(network(inputs).logits, network(inputs).logits)
    with network.mc_dropout():
        assert not torch.equal(network(inputs).logits, network(inputs).logits)
    assert not any(module.training for module in network.modules())
    assert torch.equal(network(inputs).logits, network(inputs).logits)


def test_segmenting_alone_gives_the_same_logits():
    network = small_network("multihead").eval()
    assert torch.equal(network.segment(images(8, 8, 8)), network(images(8, 8, 8)).logits)


@pytest.mark.filterwarnings("ignore:TF32 acceleration")  # said by the switch below, wherever there is no GPU
@pytest.mark.parametrize("method", METHODS)
def test_half_precision_ends_in_full_precision(method):
    network = small_network(method).eval()
    exact = network(images(16, 16, 16))
    # Weight gradients of small convolutions in bfloat16 are now and then not finite with oneDNN, by what was in memory.
    with torch.backends.mkldnn.flags(enabled=False):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits, log_probs = network(images(16, 16, 16))
        assert logits.dtype == log_probs.dtype == torch.float32
        torch.testing.assert_close(logits, exact.logits, rtol=0, atol=0.3)
        (logits.mean() + log_probs[:, 0].sum()).backward()
    assert all(p.grad.isfinite().all() for p in network.parameters())


def test_double_precision_is_kept():
    logits, log_probs = small_network("downstream").double()(images(8, 8, 8).double())
    assert logits.dtype == log_probs.dtype == torch.float64


@pytest.mark.no_cover  # the compiler is written in Python, and would take twice as long
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # the compiler hides it, and meets our "error"
def test_graph_is_captured_by_the_compiler(method):
    """The compiler's own code generator is left out: it needs a C++ compiler and minutes."""
    network = small_network(method, spatial_dims=2).eval()
    compiled = torch.compile(network, backend="aot_eager")
    for ours, expected in zip(compiled(images(12, 9)), network(images(12, 9)), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


def gradients_of(network, inputs):
    logits, log_probs = network(inputs)
    (logits.mean() - log_probs[:, 0].mean()).backward()
    return [round(float(p.grad.sum()), 6) for p in network.parameters()]


def gradients_of_my_half(rank):
    network = torch.nn.parallel.DistributedDataParallel(small_network("multihead", spatial_dims=2).eval())
    mine = images(12, 12, batch=4)[2 * rank : 2 * rank + 2]
    gradients_of(network, mine)
    network.zero_grad()
    return gradients_of(network, mine)  # the second pass is the one that fails when a parameter was left out


def test_two_processes_have_the_gradients_of_one(tmp_path):
    first, second = in_two_processes(__file__, "gradients_of_my_half", tmp_path)
    alone = gradients_of(small_network("multihead", spatial_dims=2).eval(), images(12, 12, batch=4))
    assert first == second
    assert first == pytest.approx(alone, rel=1e-3, abs=1e-4)

"""Training in two processes: the count loss gives the gradient that one process would have had."""

import pytest
from two_processes import in_two_processes

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from lesioncount.torch import CountLoss  # noqa: E402 - after the check for torch


def network_and_batch():
    torch.manual_seed(0)
    network = torch.nn.Conv2d(1, 1, 3, padding=1)
    images = torch.randn(4, 1, 20, 20)
    return network, images, torch.tensor([0, 2, 9, 1])


def gradient_of(network, images, counts):
    CountLoss(max_count=4)(network(images), counts).backward()
    return [parameter.grad.flatten().tolist() for parameter in network.parameters()]


def gradient_of_my_half(rank):
    network, images, counts = network_and_batch()
    mine = slice(0, 2) if rank == 0 else slice(2, 4)
    return gradient_of(torch.nn.parallel.DistributedDataParallel(network), images[mine], counts[mine])


def test_two_processes_have_the_gradient_of_one(tmp_path):
    first, second = in_two_processes(__file__, "gradient_of_my_half", tmp_path)
    alone = gradient_of(*network_and_batch())
    assert first == second
    for ours, expected in zip(first, alone, strict=True):
        assert ours == pytest.approx(expected, rel=1e-4, abs=1e-6)

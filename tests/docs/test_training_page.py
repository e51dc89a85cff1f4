"""The examples of batches in which some scans have masks, all, or none."""

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "training.md").read_text("utf-8")


def _block(with_text):
    (found,) = (one for one in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if with_text in one)
    return found


@pytest.mark.parametrize("known", ["True, True, True, True", "True, True, False, False", "False, False, False, False"])
def test_a_batch_of_masks_and_counts_has_a_loss_and_a_gradient(known):
    from lesioncount.torch import CountLoss

    logits = torch.full((4, 1, 8, 8, 8), -4.0)
    logits[:, 0, 2, 2, 2::2] = 1.0
    names = {"torch": torch, "CountLoss": CountLoss, "logits": logits.requires_grad_()}
    text = _block("has_mask = torch.tensor").replace("True, True, False, False", known)
    exec(compile(text, "training.md", "exec"), names)  # noqa: S102 - our own documentation
    assert bool(torch.isfinite(names["total"]))
    assert bool(torch.isfinite(logits.grad).all())
    assert bool((logits.grad != 0).any())


@pytest.mark.parametrize("known", ["True, True", "True, False", "False, False"])
def test_the_example_of_lightning_trains_on_such_batches(known):
    pytest.importorskip("lightning", reason="needs the extra [train]")
    from lesioncount.integrations.torchmetrics import CountRPS
    from lesioncount.torch import CountLoss, CountWeight, count_log_probs

    images = torch.randn(2, 1, 8, 8, 8, generator=torch.Generator().manual_seed(0))
    network = torch.nn.Conv3d(1, 1, 3, padding=1)
    names = {
        "torch": torch, "CountLoss": CountLoss, "CountWeight": CountWeight, "CountRPS": CountRPS, "images": images,
        "count_log_probs": count_log_probs, "network": network, "masks": (images > 2).float(),
        "counts": torch.tensor([2, 0]),
    }  # fmt: skip
    text = _block("import lightning").replace("[True, False]", f"[{known}]")
    exec(compile(text, "training.md", "exec"), names)  # noqa: S102 - our own documentation
    assert all(bool(torch.isfinite(weight).all()) for weight in network.parameters())

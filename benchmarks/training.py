"""How fast a network learns, now and as version 0.1 did it: `python benchmarks/training.py`, in ratios of one run.

Then: torch's norm and dropout, MONAI's augmentation, all in float32. Now: what `lesioncount train` does. One core.
With ``--paper``, one step at the size of the paper as well: its seconds and its memory.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock

import numpy as np
import torch
from monai.transforms import Compose, RandAffined, RandFlipd, ToTensord
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from lesioncount.learning.batches import augmented
from lesioncount.learning.networks import CountingNetwork, counting_network
from lesioncount.learning.networks import layers as network_layers
from lesioncount.learning.networks.layers import LAYOUTS, is_bfloat16

BATCH = 4
SIZES: dict[str, tuple[int, tuple[int, ...]]] = {
    "synthetic": (5, (20, 40, 32)),
    "leaves": (3, (64, 128)),
    "nuclei": (1, (160, 160)),
}


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paper", action="store_true", help="one step at the size of the paper; takes minutes")
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    if options.paper:
        print(_paper_step())
        return
    torch.set_num_threads(1)
    print("| | augment, ms a scan | learn, ms a scan | scans a second | faster than 0.1 |\n|---|---|---|---|---|")
    for name, (channels, shape) in SIZES.items():
        then, now = (_timed(channels, shape, options.repeats, as_before=as_before) for as_before in (True, False))
        for when, (augment, learn) in (("0.1", then), ("now", now)):
            ratio = f"{sum(then) / (augment + learn):.2f}" if when == "now" else ""
            cells = f"{1e3 * augment:.1f} | {1e3 * learn:.1f} | {1 / (augment + learn):.1f} | {ratio}"
            print(f"| {name}, {when} | {cells} |", flush=True)


def _timed(channels: int, shape: tuple[int, ...], repeats: int, *, as_before: bool) -> tuple[float, float]:
    """Seconds a scan takes to be augmented, and to be learned from: the best of some steps."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(BATCH, channels, *shape, generator=generator)
    masks = (torch.rand(BATCH, 1, *shape, generator=generator) < 0.01).float()
    with _as_before(shape) if as_before else nullcontext():
        step = _step(channels, shape, images, masks, bfloat16=not as_before and is_bfloat16("auto"))
        learn = _best(step, repeats) / BATCH
    change = _changed_by_monai(len(shape)) if as_before else augmented
    rng = np.random.default_rng(0)
    augment = _best(lambda: [change(images[i], masks[i], rng) for i in range(BATCH)], repeats, mean=True) / BATCH
    return augment, learn


def _step(
    channels: int, shape: tuple[int, ...], images: Tensor, masks: Tensor, *, bfloat16: bool, **options: Any
) -> Callable[[], None]:
    torch.manual_seed(0)
    options = {"filters": 8, "levels": 4} | options
    network: CountingNetwork = counting_network("map", spatial_dims=len(shape), in_channels=channels, **options)
    layout = LAYOUTS[len(shape)]
    network.to(memory_format=layout)  # type: ignore[call-overload]  # a module takes it too
    optimizer = torch.optim.Adam(network.parameters())
    given = images.contiguous(memory_format=layout)

    def step() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
            logits = network.segment(given)
        loss = binary_cross_entropy_with_logits(logits, masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


@contextmanager
def _as_before(shape: tuple[int, ...]) -> Any:
    """Layers, and in two dimensions the layout, of version 0.1."""
    layout = torch.contiguous_format if len(shape) == 2 else torch.channels_last_3d
    with (
        mock.patch.object(network_layers, "can_fuse", return_value=False),
        mock.patch.object(network_layers.Dropout, "forward", nn.Dropout.forward),
        mock.patch.dict(LAYOUTS, {len(shape): layout}),
    ):
        yield


def _changed_by_monai(n: int) -> Callable[..., Any]:
    keys = ("images", "mask")
    transform = Compose(
        [
            RandAffined(
                keys,
                prob=0.8,
                rotate_range=[math.radians(8)] * (3 if n == 3 else 1),
                scale_range=[0.1] * n,
                shear_range=[0.05] * (6 if n == 3 else 2),
                mode=("bilinear", "nearest"),
                padding_mode="border",
            ),
            *(RandFlipd(keys, prob=0.5, spatial_axis=axis) for axis in range(n)),
            ToTensord(keys, track_meta=False),
        ]
    )
    return lambda images, mask, _: transform({"images": images, "mask": mask})


def _best(run: Callable[[], Any], repeats: int, *, mean: bool = False) -> float:
    run()
    took = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        took.append(time.perf_counter() - began)
    return float(np.mean(took)) if mean else min(took)


def _paper_step() -> str:
    """One step of the paper's network on one of its scans: the second, after memory has been set up."""
    shape = (64, 192, 192)
    images, masks = torch.randn(1, 5, *shape), (torch.rand(1, 1, *shape) < 0.001).float()
    half = is_bfloat16("auto")
    step = _step(5, shape, images, masks, bfloat16=half, filters=32, levels=5)
    seconds = _best(step, 1)
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    kind = "bfloat16" if half else "float32"
    return (
        f"one scan of the paper's size, {kind}, {torch.get_num_threads()} threads: {seconds:.0f} s, {gigabytes:.1f} GiB"
    )


if __name__ == "__main__":
    main()

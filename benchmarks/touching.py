"""Whether counts teach a network to separate lesions that touch: `python benchmarks/touching.py`.

Discs in noise, alone or as pairs that touch. A toy network first learns from masks that merge the pairs, and then from
counts alone, with regions and with peaks. Both start from the same weights and see the same batches.
"""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # the toy is shared with the tests

from twin.toy_scans import SIDE, Scans
from twin.toy_scores import paired_interval, score
from twin.toy_training import ToyUNet, pre_trained, train

# Sizes were chosen with seed 0.
SEEDS = range(1, 6)
N_MASKED, N_COUNTED, N_HELD_OUT = 60, 300, 300
NOISE = 0.4
SMALLEST_RADIUS, LARGEST_RADIUS = 3.0, 4.5
# Between the centres of things, a pair being one, so that nothing but pairs touches.
APART = 2 * LARGEST_RADIUS + 8
MARGIN = 9
PAIRS = 0.5
PROTOCOLS = {"regions": "paper", "peaks": "peaks"}

_Y, _X = np.mgrid[:SIDE, :SIDE]
_Place = NDArray[np.float64]


@dataclass(frozen=True)
class Bridge:
    """Two discs of a scan that touch, and what lies halfway between them."""

    scan: int
    middle: NDArray[np.bool_]
    discs: tuple[NDArray[np.bool_], NDArray[np.bool_]]


@dataclass(frozen=True)
class Outcome:
    """On held-out scans. No saddle is higher than the highest probability within a voxel of halfway, which is given."""

    accuracy: float
    rps: float
    voxel_f1: float
    saddle: float
    lower_peak: float


METRICS = [field.name for field in fields(Outcome)]


def discs_in_noise(n: int, *, seed: list[int]) -> tuple[Scans, list[Bridge]]:
    """So many scans with masks that merge what touches, the number of discs in each, and where discs touch."""
    rng = np.random.default_rng(seed)
    images, masks, counts, bridges = [], [], [], []
    for scan in range(n):
        discs, pairs = _discs(rng)
        brightness = np.zeros((SIDE, SIDE))
        mask = np.zeros((SIDE, SIDE), dtype=bool)
        for centre, radius in discs:
            distance = _distance(centre)
            brightness += rng.uniform(1.0, 2.0) / (1 + np.exp(2 * (distance - radius)))
            mask |= distance <= radius
        for first, second in pairs:
            (a, r), (b, s) = discs[first], discs[second]
            middle = _halfway(a, b, min(r, s))
            mask |= middle
            bridges.append(Bridge(scan, middle, (_distance(a) <= r, _distance(b) <= s)))
        images.append(brightness + NOISE * rng.standard_normal((2, SIDE, SIDE)))
        masks.append(mask[None])
        counts.append(len(discs))
    tensors = (torch.from_numpy(np.stack(arrays).astype(np.float32)) for arrays in (images, masks))
    return Scans(*tensors, torch.tensor(counts)), bridges


def _discs(rng: np.random.Generator) -> tuple[list[tuple[_Place, float]], list[tuple[int, int]]]:
    """Centres and radii of up to two things, each a disc or two that touch; and which ones do."""
    places: list[_Place] = []
    wanted = rng.integers(0, 3)
    for place in rng.uniform(MARGIN, SIDE - MARGIN, (50, 2)):
        if len(places) < wanted and all(np.hypot(*(place - other)) > APART for other in places):
            places.append(place)
    discs: list[tuple[_Place, float]] = []
    pairs = []
    for place in places:
        r, s = rng.uniform(SMALLEST_RADIUS, LARGEST_RADIUS, 2)
        angle = rng.uniform(0, 2 * np.pi)
        along = np.array([np.sin(angle), np.cos(angle)])
        if rng.random() < PAIRS:
            pairs.append((len(discs), len(discs) + 1))
            discs += [(place - r * along, r), (place + s * along, s)]
        else:
            discs.append((place, r))
    return discs, pairs


def _distance(centre: _Place) -> NDArray[np.float64]:
    return np.hypot(_Y - centre[0], _X - centre[1])


def _halfway(a: _Place, b: _Place, width: float) -> NDArray[np.bool_]:
    """What is within a voxel of halfway from one centre to the other, as wide as the smaller disc."""
    direction = (b - a) / np.hypot(*(b - a))
    y, x = _Y - (a + b)[0] / 2, _X - (a + b)[1] / 2
    along, across = y * direction[0] + x * direction[1], y * direction[1] - x * direction[0]
    return (np.abs(along) <= 1) & (np.abs(across) <= width)


def outcome(network: ToyUNet, scans: Scans, bridges: list[Bridge], protocol: str) -> Outcome:
    """How a network counts by a protocol, how it segments, and how high it is between discs that touch."""
    scores = score(network, scans, protocol=protocol)
    with torch.no_grad():
        maps = torch.cat([network(part) for part in scans.images.split(64)]).sigmoid().numpy()[:, 0]
    saddles = [maps[bridge.scan][bridge.middle].max() for bridge in bridges]
    lower = [min(maps[bridge.scan][disc].max() for disc in bridge.discs) for bridge in bridges]
    return Outcome(scores.accuracy, scores.rps, scores.voxel_f1, float(np.mean(saddles)), float(np.mean(lower)))


def outcomes(seed: int) -> dict[tuple[str, str], Outcome]:
    """Before and after counts, with regions and with peaks, for one seed."""
    (masked, _), (counted, _), (held_out, bridges) = (
        discs_in_noise(n, seed=[seed, part]) for part, n in enumerate((N_MASKED, N_COUNTED, N_HELD_OUT))
    )
    before = pre_trained(masked, seed=seed)
    results = {}
    for name, protocol in PROTOCOLS.items():
        network = copy.deepcopy(before)
        train(network, counted=counted, protocol=protocol, seed=seed)
        for when, trained in (("before", before), ("after", network)):
            results[name, when] = outcome(trained, held_out, bridges, protocol)
            print(f"seed {seed}, {name}, {when}: {results[name, when]}", file=sys.stderr)
    return results


def print_table(of_seeds: list[dict[tuple[str, str], Outcome]]) -> None:
    """In markdown: means before and after, and the mean of the differences with its 95 % interval."""
    print(f"Means over {len(of_seeds)} seeds; differences with their 95 % t-intervals.\n")
    print("| counted by | | before | after | after - before |\n|---|---|---|---|---|")
    for name in PROTOCOLS:
        for metric in METRICS:
            before, after = ([getattr(run[name, when], metric) for run in of_seeds] for when in ("before", "after"))
            mean, low, high = paired_interval(after, before)
            change = f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"
            print(f"| {name} | {metric} | {np.mean(before):.3f} | {np.mean(after):.3f} | {change} |")


if __name__ == "__main__":
    print_table([outcomes(seed) for seed in SEEDS])

"""Whether the count loss should rescue labels that the map makes impossible: `python benchmarks/rescue.py`.

A toy network learns from the counts of synthetic scans, with and without. Both start from the same weights and see the
same batches, so that differences are paired.
"""

from __future__ import annotations

import copy
import sys
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
import torch

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # the toy is shared with the tests

from twin.toy_scans import Scans, synthetic_cohort
from twin.toy_scores import Scores, paired_interval, score
from twin.toy_training import pre_trained, train

# Neither those of the test nor those that the toy was made with.
SEEDS = range(11, 21)
LONG, SHORT = 600, 100


@dataclass(frozen=True)
class Scenario:
    """A way to learn from counts after pre-training on few masks."""

    name: str
    n_pre_training: int = LONG
    with_masks: bool = False
    count_weight: float = 1.0
    learning_rate: float = 5e-4
    misread: float = 0.0


SCENARIOS = (
    Scenario("(a) counts alone"),
    Scenario("(b) counts and masks", with_masks=True, count_weight=0.05, learning_rate=1e-3),
    Scenario("(c) counts alone, in steps four times as large", learning_rate=2e-3),
    Scenario("(d) counts alone, after hardly any pre-training", n_pre_training=SHORT),
    Scenario("(e) counts alone, one label in five off by one", misread=0.2),
)


@dataclass(frozen=True)
class Outcome(Scores):
    """Scores on held-out scans, and the share of training labels that had more lesions than candidates."""

    impossible: float = 0.0
    collapsed: float = 0.0


METRICS = [field.name for field in fields(Outcome)]


def outcomes(seed: int) -> dict[tuple[str, bool], Outcome]:
    """What both arms of all scenarios come to, for one seed."""
    cohort = synthetic_cohort(seed=seed)
    starts = {n: pre_trained(cohort.masked, seed=seed, n_steps=n) for n in (LONG, SHORT)}
    results = {}
    for scenario in SCENARIOS:
        counted = _misread(cohort.counted, scenario.misread, seed=seed)
        for rescue in (False, True):
            network = copy.deepcopy(starts[scenario.n_pre_training])
            impossible = train(
                network,
                masked=cohort.masked if scenario.with_masks else None,
                counted=counted,
                count_weight=scenario.count_weight,
                learning_rate=scenario.learning_rate,
                rescue=rescue,
                seed=seed,
            )
            scores = score(network, cohort.held_out)
            collapsed = float(scores.sensitivity == 0)
            results[scenario.name, rescue] = Outcome(*astuple(scores), impossible=impossible, collapsed=collapsed)
            print(f"seed {seed}, {scenario.name}, rescue={rescue}: {scores}, {impossible=:.3f}", file=sys.stderr)
    return results


def print_table(of_seeds: list[dict[tuple[str, bool], Outcome]]) -> None:
    """In markdown: the mean of each arm, and the mean of the differences with its 95 % interval."""
    print(
        f"Means over {len(of_seeds)} seeds; `True - False` with its 95 % t-interval, in bold where that excludes 0.\n"
    )
    for scenario in SCENARIOS:
        print(f"| {scenario.name} | rescue=False | rescue=True | True - False |\n|---|---|---|---|")
        for metric in METRICS:
            off, on = ([getattr(run[scenario.name, rescue], metric) for run in of_seeds] for rescue in (False, True))
            print(f"| {metric} | {np.mean(off):.3f} | {np.mean(on):.3f} | {_difference(on, off)} |")
        print()


def _difference(on: list[float], off: list[float]) -> str:
    mean, low, high = paired_interval(on, off)
    text = f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"
    return f"**{text}**" if low > 0 or high < 0 else text


def _misread(scans: Scans, share: float, *, seed: int) -> Scans:
    """The same scans, with this share of the counts one too high or one too low."""
    rng = np.random.default_rng(seed)
    error = (rng.random(len(scans)) < share) * rng.choice([-1, 1], len(scans))
    return Scans(scans.images, scans.masks, (scans.counts + torch.from_numpy(error)).clamp(min=0))


if __name__ == "__main__":
    print_table([outcomes(seed) for seed in SEEDS])

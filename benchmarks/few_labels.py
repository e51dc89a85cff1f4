"""Counts from few counted scans, on real data: `python benchmarks/few_labels.py DATA --draws 10`.

DATA holds leaves, nuclei and LIDC, as for few_scans.py. Each draw takes n scans to calibrate on and 150 others to judge
by: ranked probability score and coverage of 90 % intervals, and the score as a multiple of that of one best fit without
what other data have taught, as more scans get. For LIDC, one random reader of each scan is the truth.

`--stated` measures calibrations from a mean or prevalence instead, right or wrong by a third, on all scans: the mean of
so many `--seeds`. `--refused` takes 100 random scans for each seed, and says of what is refused whether it would have
been better than counts as they are.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from few_scans import N_JUDGED, SETS, scans_of
from numpy.typing import NDArray

from lesioncount.errors import CalibrationError
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import KnownTruth, stated
from lesioncount.trust.fitting.fit import RIPPLE, _of_many, best_calibration
from lesioncount.trust.fitting.stated import Stated, calibration_from
from lesioncount.trust.scores.predictions import Predictions

# Scans of a draw, of which some numbers are refused and others are not.
N_REFUSED = 100


def scores(calibration: Calibration, truth: KnownTruth, rows: NDArray[np.intp]) -> tuple[float, float]:
    """RPS, and the share of counts in 90 % intervals."""
    judged = Predictions.of_distributions(truth[rows.tolist()].distributions(calibration), truth.counts[rows])
    return float(judged.means["rps"].mean()), float(judged.means["coverage90"].mean())


def best_fit(known: KnownTruth) -> Calibration:
    """One fit, without what other data have taught."""
    return replace(_of_many(known.without_ripples(RIPPLE), None), ripple=RIPPLE if known.touches else 0.0)


def of_stated(truth: KnownTruth, n_seeds: int) -> None:
    """Print a row for each number that may be stated: scores of all scans, and whether it is refused."""
    mean, prevalence = float(truth.counts.mean()), float((truth.counts > 0).mean())
    stated = {f"mean × {by:g}": Stated(mean=by * mean) for by in (1, 0.7, 1.4)}
    for what, one in {**stated, "prevalence": Stated(prevalence=min(prevalence, 0.999))}.items():
        found, refused = [], []
        for seed in range(n_seeds):
            try:
                found.append(scores(calibration_from(one, truth.candidates, seed=seed), truth, np.arange(len(truth))))
            except CalibrationError as error:
                refused.append(str(error))
        rps, covered = np.mean(found or [[np.nan, np.nan]], axis=0)
        why = f"{len(refused)} of {n_seeds} {' '.join(refused[:1])}"
        print(f"| {what} | {one.value:.3f} | {rps:.3f} | {covered:.3f} | {why} |", flush=True)


def of_refusals(truth: KnownTruth, n_seeds: int) -> None:
    """Print a row for each number, right or a quarter too low: how often it is refused, and would have helped."""
    for what, by in (("mean", 1), ("prevalence", 1), ("prevalence", 0.75)):
        found = []
        for seed in range(n_seeds):
            some = truth[np.random.default_rng(seed).permutation(len(truth))[:N_REFUSED].tolist()]
            number = float(some.counts.mean() if what == "mean" else min((some.counts > 0).mean(), 0.999))
            one, every = Stated(**{what: by * number}), np.arange(len(some))
            try:
                calibration_from(one, some.candidates, seed=seed)
                is_refused = False
            except CalibrationError:
                is_refused = True
            with without_limits():
                helps = scores(calibration_from(one, some.candidates, seed=seed), some, every)[0]
            found.append((is_refused, helps < scores(Calibration(), some, every)[0]))
        refused, helped = np.array(found).T
        counts = (refused & helped, refused & ~helped, ~refused & helped, ~refused & ~helped)
        print(f"| {what} × {by} | {' | '.join(str(int(one.sum())) for one in counts)} |", flush=True)


@contextmanager
def without_limits() -> Iterator[None]:
    """Refuse nothing but what has no solution."""
    limits = {"_MOST_TOUCHING": 1.0, "_MOST_DOUBT": 1.0, "_HIGHEST_PREVALENCE": 1.0, "_FEWEST_SOLVED": 0.01}
    kept = {name: getattr(stated, name) for name in limits}
    try:
        for name, value in limits.items():
            setattr(stated, name, value)
        yield
    finally:
        for name, value in kept.items():
            setattr(stated, name, value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--scans", type=int, nargs="+", default=[10, 20, 50])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--stated", action="store_true")
    parser.add_argument("--refused", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    for name in given.sets if given.stated else ():
        print(f"| {name}: stated | value | RPS | 90 % intervals hold | refused |\n|---|---|---|---|---|")
        of_stated(scans_of(given.data, name)[0], given.seeds)
    for name in given.sets if given.refused else ():
        print(
            f"| {name} | refused, would have helped | refused, harms | taken, helps | taken, harms |\n"
            + "|---" * 5
            + "|"
        )
        of_refusals(scans_of(given.data, name)[0], given.seeds)
    if given.stated or given.refused:
        return
    print("| data | scans | RPS (worst draw) | 90 % intervals hold | × best fit |\n|---|---|---|---|---|")
    for name in given.sets:
        truth, _ = scans_of(given.data, name)
        for n in given.scans:
            found = []
            for seed in range(given.draws):
                order = np.random.default_rng(1000 * n + seed).permutation(len(truth))
                known, judged = truth[order[:n].tolist()], order[n : n + N_JUDGED]
                rps, covered = scores(best_calibration(known), truth, judged)
                found.append([rps, covered, rps / scores(best_fit(known), truth, judged)[0]])
            mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / given.draws**0.5
            rps, covered, ratio = (f"{one:.3f} ± {by:.3f}" for one, by in zip(mean, error, strict=True))
            worst = max(one[0] for one in found)
            print(f"| {name} | {n} | {rps} ({worst:.3f}) | {covered} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()

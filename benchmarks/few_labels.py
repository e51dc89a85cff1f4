"""Counts from few counted scans, on real data: `python benchmarks/few_labels.py DATA --draws 10`.

DATA holds leaves, nuclei and LIDC, as for few_scans.py. Each draw takes n scans to calibrate on and 150 others to judge
by: ranked probability score and coverage of 90 % intervals. For LIDC, one random reader of each scan is the truth.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from few_scans import N_JUDGED, SETS, scans_of
from numpy.typing import NDArray

from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import KnownTruth
from lesioncount.trust.fitting.fit import best_calibration
from lesioncount.trust.scores.predictions import Predictions


def scores(calibration: Calibration, truth: KnownTruth, rows: NDArray[np.intp]) -> tuple[float, float]:
    """RPS, and the share of counts in 90 % intervals."""
    judged = Predictions.of_distributions(truth[rows.tolist()].distributions(calibration), truth.counts[rows])
    return float(judged.means["rps"].mean()), float(judged.means["coverage90"].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--scans", type=int, nargs="+", default=[10, 20, 50])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    given = parser.parse_args()
    print("| data | scans | RPS | 90 % intervals hold |")
    print("|---|---|---|---|")
    for name in given.sets:
        truth, _ = scans_of(given.data, name)
        for n in given.scans:
            found = []
            for seed in range(given.draws):
                order = np.random.default_rng(1000 * n + seed).permutation(len(truth))
                calibration = best_calibration(truth[order[:n].tolist()])
                found.append(scores(calibration, truth, order[n : n + N_JUDGED]))
            rps, covered = np.mean(found, axis=0)
            print(f"| {name} | {n} | {rps:.3f} ({max(one[0] for one in found):.3f}) | {covered:.3f} |", flush=True)


if __name__ == "__main__":
    main()

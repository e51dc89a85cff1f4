"""Intervals from few counted scans, on real data: `python benchmarks/few_scans.py DATA --draws 50`.

DATA holds leaves, nuclei and LIDC (docs/trust.md says where they are from). Each draw takes n scans to calibrate on and
up to 150 others to judge by: how often intervals hold the true count, how wide they are as a multiple of the calibrated
ones, and in which share the calibrated median is outside. Of LIDC, one reader of each scan calibrates, and all judge.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lesioncount.trust.fitting import CalibrationFit, KnownTruth

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # maps of real networks are read there, too

SETS = ("nuclei", "leaves", "lidc")
N_JUDGED = 150
CONFIDENCES = (0.9, 0.95)


def lidc(folder: Path) -> tuple[KnownTruth, NDArray[np.int64]]:
    """Scores of candidates with one reader's counts, and the counts of all four."""
    scores = defaultdict(list)
    for row in rows_of(folder / "detector_candidates.tsv.gz"):
        scores[row["series_uid"]].append(float(row["score"]))
    counts = {
        row["series_uid"]: [int(row[f"nodules_3mm_reader{k}"]) for k in range(1, 5)]
        for row in rows_of(folder / "reader_counts.tsv.gz")
    }
    scans = [scan for scan in counts if scan in scores]
    all_four = np.array([counts[scan] for scan in scans])
    reader = np.random.default_rng(772).integers(4, size=len(scans))
    tables = [np.clip(scores[scan], 1e-7, 1 - 1e-7) for scan in scans]
    return KnownTruth.of(tables, all_four[np.arange(len(scans)), reader]), all_four


def rows_of(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def scans_of(data: Path, name: str) -> tuple[KnownTruth, NDArray[np.int64]]:
    if name == "lidc":
        return lidc(data / "lidc_readers")
    from trust.fitting.real_maps import real_maps

    truth, _ = real_maps(data, name, "peaks")
    return truth, truth.counts[:, None]


def judged(truth: KnownTruth, truths: NDArray[np.int64], n: int, seed: int) -> NDArray[np.float64]:
    """Coverage, width and share without the median, of calibrated and guaranteed intervals at each confidence."""
    order = np.random.default_rng(seed).permutation(len(truth))
    fit = CalibrationFit.fit(truth[order[:n].tolist()])
    found = []
    for row in order[n : n + N_JUDGED]:
        table, counts = truth.candidates[row], truths[row]
        distribution = fit.calibration.distribution(table)
        for confidence in CONFIDENCES:
            for low, high in (distribution.interval(confidence), fit.guaranteed(table, confidence) or (0, 0)):
                covered = np.mean((low <= counts) & (counts <= high))
                found.append([covered, high - low, not low <= distribution.median() <= high])
    return np.array(found, dtype=np.float64).reshape(-1, len(CONFIDENCES), 2, 3).mean(axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--scans", type=int, nargs="+", default=[20, 30, 40])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    given = parser.parse_args()
    print("| data | scans | asked | calibrated | guaranteed (5 to 95 % of draws) | times as wide | median outside |")
    print("|---|---|---|---|---|---|---|")
    for name in given.sets:
        truth, truths = scans_of(given.data, name)
        for n in given.scans:
            draws = np.array([judged(truth, truths, n, 1000 * n + seed) for seed in range(given.draws)])
            for place, confidence in enumerate(CONFIDENCES):
                (own, own_width, _), (covered, width, outside) = draws[:, place].mean(axis=0)
                low, high = np.quantile(draws[:, place, 1, 0], [0.05, 0.95])
                print(
                    f"| {name} | {n} | {confidence:.0%} | {own:.3f} | {covered:.3f} ({low:.2f} to {high:.2f}) "
                    f"| {width / own_width:.2f} | {outside:.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()

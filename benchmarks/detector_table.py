"""Counts from a detector's table against four readers: ``python benchmarks/detector_table.py FOLDER``.

The folder has LIDC-IDRI's readings and the candidates of DeepLung as tables, see ``docs/detectors.md``. Out of fold,
five folds; scores are means over the four readers of a scan. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import lesioncount as lc
from lesioncount.distributions.tabulated import TabulatedCount
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.fitting import KnownTruth, fit_calibration
from lesioncount.trust.fitting.reader_pool import ReaderPool
from lesioncount.trust.scores.readers import BetweenReaders

N_FOLDS, SEED, N_COUNTS = 5, 772, 64
Floats = NDArray[np.float64]
Cdfs = Callable[[Sequence[int], Sequence[int]], Floats]  # from scans to fit on and scans to predict: P(C ≤ k) of each


def read_readers(path: Path) -> dict[str, list[int]]:
    """What each of four readers counted, by scan, where there are candidates."""
    with gzip.open(path, "rt") as stream:
        rows = [row for row in csv.DictReader(stream, delimiter="\t") if int(row["detector_candidates"] or 0)]
    return {row["series_uid"]: [int(row[f"nodules_3mm_reader{k}"]) for k in range(1, 5)] for row in rows}


def rps(cdf: Floats, truth: NDArray[np.int64]) -> Floats:
    """The ranked probability score of each scan, averaged over its readers."""
    above = np.arange(N_COUNTS)[None, None, :] >= truth[:, :, None]
    return ((cdf[:, None, :] - above) ** 2).sum(axis=2).mean(axis=1)


def cdf_of(pmf: Floats) -> Floats:
    """P(C ≤ k) for the first counts."""
    return np.minimum(np.cumsum(np.pad(pmf, (0, max(0, N_COUNTS - len(pmf))))[:N_COUNTS]), 1.0)


def calibrated(tables: Sequence[CandidateTable], drawn: NDArray[np.int64]) -> Cdfs:
    """As ``lesioncount calibrate`` does it, from one reader per scan."""

    def predict(fit_on: Sequence[int], on: Sequence[int]) -> Floats:
        fitted = fit_calibration(KnownTruth.of([tables[i] for i in fit_on], drawn[fit_on]))
        return np.array([cdf_of(fitted.distribution(tables[i]).pmf()) for i in on])

    return predict


def raw(tables: Sequence[CandidateTable]) -> Cdfs:
    """Scores as they are."""
    return lambda _, on: np.array([cdf_of(lc.PoissonBinomial(tables[i].peak).pmf()) for i in on])


def tuned_threshold(tables: Sequence[CandidateTable], drawn: NDArray[np.int64]) -> Cdfs:
    """The count above the threshold that has the smallest error in the scans that are fitted on."""
    peaks = np.concatenate([table.peak for table in tables])
    cuts = np.unique(np.quantile(peaks, 1 - np.geomspace(1e-4, 1, 400)))
    counts = np.array([[(table.peak > cut).sum() for cut in cuts] for table in tables])

    def predict(fit_on: Sequence[int], on: Sequence[int]) -> Floats:
        best = np.abs(counts[fit_on] - drawn[fit_on][:, None]).mean(axis=0).argmin()
        return (np.arange(N_COUNTS)[None] >= counts[on, best][:, None]).astype(float)

    return predict


def quantile_forest(tables: Sequence[CandidateTable], drawn: NDArray[np.int64]) -> Cdfs:
    """A forest on sorted logits and counts above nine cuts, whose leaves give a distribution."""
    from sklearn.ensemble import RandomForestRegressor

    logits = [np.sort(np.log(p / (1 - p)))[::-1] for p in (np.clip(t.peak, 1e-7, 1 - 1e-7) for t in tables)]
    cuts = np.quantile(np.concatenate(logits), [0.5, 0.7, 0.8, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99])
    features = np.array(
        [
            [*np.pad(one[:15], (0, max(0, 15 - len(one))), constant_values=-4), *((one > c).sum() for c in cuts)]
            for one in logits
        ]
    )

    def predict(fit_on: Sequence[int], on: Sequence[int]) -> Floats:
        forest = RandomForestRegressor(500, min_samples_leaf=8, max_features=0.4, random_state=SEED)
        forest.fit(features[fit_on], drawn[fit_on])
        at_fit, at_new = forest.apply(features[fit_on]), forest.apply(features[on])
        weights = (at_new[:, None, :] == at_fit[None, :, :]) / np.maximum(
            (at_new[:, None, :] == at_fit[None, :, :]).sum(axis=1, keepdims=True), 1
        )
        below = np.arange(N_COUNTS)[None, :] >= drawn[fit_on][:, None]
        return weights.mean(axis=2) @ below

    return predict


def out_of_fold(predict: Cdfs, n: int, n_repeats: int = 2) -> list[Floats]:
    """What is predicted for each scan by fits on others, for each way to make folds."""
    found = []
    for repeat in range(n_repeats):
        order = np.random.default_rng(SEED + repeat).permutation(n)
        cdf = np.empty((n, N_COUNTS))
        for fold in np.array_split(order, N_FOLDS):
            cdf[fold] = predict(np.setdiff1d(order, fold), fold)
        found.append(cdf)
    return found


def covered(cdf: Floats, truth: NDArray[np.int64]) -> float:
    """How often a 90 % interval holds what a reader counted."""
    low, high = ((cdf < level).sum(axis=1) for level in (0.05, 0.95))
    return float(((truth >= low[:, None]) & (truth <= high[:, None])).mean())


def with_copies(table: CandidateTable, rng: np.random.Generator) -> CandidateTable:
    """The same with copies of about half of its candidates, up to 3 mm away and with slightly lower scores."""
    columns = table.columns
    chosen = rng.random(len(table)) < 0.53
    n = int(chosen.sum())
    copies = {name: column[chosen] for name, column in columns.items()}
    logits = np.log(copies["peak"] / np.maximum(1 - copies["peak"], 1e-7)) - rng.exponential(0.2, n)
    copies["peak"] = 1 / (1 + np.exp(-logits))
    step = rng.normal(size=(n, 3))
    step *= (3 * rng.random(n) ** (1 / 3) / np.linalg.norm(step, axis=1))[:, None]
    copies |= {name: copies[name] + one for name, one in zip(("x_mm", "y_mm", "z_mm"), step.T, strict=True)}
    joined = {name: np.concatenate([columns[name], copies[name]]) for name in columns}
    return CandidateTable.of(joined.pop("peak"), **joined)


def merged(tables: Sequence[CandidateTable], within_mm: float) -> list[CandidateTable]:
    """As ``lesioncount count --merge-within`` leaves them."""
    counts = (lc.count_candidates(table, merge_within_mm=within_mm) for table in tables)
    return [CandidateTable.of_candidates(count.candidates) for count in counts]


def interval(differences: Floats) -> str:
    """The mean, and a 95 % interval from 2000 resamples of scans."""
    draws = np.random.default_rng(SEED).integers(0, len(differences), (2000, len(differences)))
    low, high = np.quantile(differences[draws].mean(axis=1), [0.025, 0.975])
    return f"{differences.mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def pooled_scores(
    counts: Mapping[int, TabulatedCount], truth: NDArray[np.int64], folds: Sequence[NDArray[np.int64]], m: int
) -> Floats:
    """RPS and coverage of each scan with m reads, means over left-out readers; the pool is fitted on other folds."""
    n, n_readers = truth.shape
    found = np.empty((2, n))
    for fold in folds:
        rest = np.setdiff1d(np.arange(n), fold)
        pool = ReaderPool.fit([counts[j] for j in rest.tolist()], truth[rest])
        for i in fold.tolist():
            scores = []
            for left in range(n_readers):
                for others in combinations(sorted({*range(n_readers)} - {left}), m):
                    cdf = cdf_of(pool.distribution(counts[i], truth[i, list(others)].tolist()).pmf())[None]
                    one = truth[i : i + 1, left : left + 1]
                    scores.append((float(rps(cdf, one)[0]), covered(cdf, one)))
            found[:, i] = np.mean(scores, axis=0)
    return found


def against_a_left_out_reader(tables: Sequence[CandidateTable], truth: NDArray[np.int64]) -> None:
    """Candidates with one or two readers against one who was left out, beside three readers' votes; and the error."""
    n, n_readers = truth.shape
    order = np.random.default_rng(SEED).permutation(n)
    folds = np.array_split(order, N_FOLDS)
    counts = {}
    for fold in folds:
        rest = np.setdiff1d(order, fold)
        known = KnownTruth.of([tables[i] for i in rest], truth[rest, 0]).read_by(truth[rest].tolist())
        fitted = fit_calibration(known)
        counts |= {int(i): fitted.distribution(tables[i]) for i in fold}
    votes = np.array(
        [
            [((np.arange(N_COUNTS) >= np.delete(row, left)[:, None]).mean(axis=0) - (np.arange(N_COUNTS) >= row[left]))]
            for row in truth
            for left in range(n_readers)
        ]
    )
    of_votes = (votes**2).sum(axis=(1, 2)).reshape(n, n_readers).mean(axis=1)
    print(f"three readers as votes             RPS {of_votes.mean():.3f}")
    # A count that says nothing: then the pool is that of readers alone, smoothed.
    nothing = dict.fromkeys(counts, TabulatedCount(np.full(N_COUNTS // 2, 2 / N_COUNTS)))
    for name, of, m in [("candidates", counts, m) for m in range(n_readers)] + [
        ("smoothed", nothing, m) for m in (2, 3)
    ]:
        score, cover = pooled_scores(of, truth, folds, m)
        print(
            f"{name} and {m} readers           RPS {score.mean():.3f}  "
            f"minus three votes {interval(score - of_votes)}  90 % covers {cover.mean():.3f}",
            flush=True,
        )
    medians = [counts[i].median() for i in range(n)]
    found = BetweenReaders.of(medians, truth.tolist(), list(range(n)), seed=SEED)
    print(found.in_words, f"[{found.difference.low:+.3f}, {found.difference.high:+.3f}]")


def end_to_end(folder: Path, readers: Mapping[str, Sequence[int]], drawn: NDArray[np.int64]) -> float:
    """Seconds of the processor for count, calibrate and evaluate of all scans, as a user runs them."""
    import resource

    with tempfile.TemporaryDirectory() as text:
        out = Path(text)
        (out / "scans.tsv").write_text("\n".join(["scan", *readers]) + "\n")
        truth = [f"{scan}\t{count}" for scan, count in zip(readers, drawn, strict=True)]
        (out / "truth.tsv").write_text("\n".join(["scan\tcount", *truth]) + "\n")
        table = str(folder / "detector_candidates.tsv.gz")
        known = ["--truth-counts", str(out / "truth.tsv")]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        for command in (
            ["count", table, "-o", str(out / "counts"), "--scans", str(out / "scans.tsv")],
            ["calibrate", str(out / "counts"), *known, "-o", str(out / "calibration.json")],
            ["evaluate", str(out / "counts"), *known, "-o", str(out / "evaluation")],
        ):
            subprocess.run([sys.executable, "-m", "lesioncount", *command, "--quiet"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"wall clock {time.monotonic() - began:.1f} s")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="with reader_counts.tsv.gz and detector_candidates.tsv.gz")
    parser.add_argument("--only-readers", action="store_true", help="only what is said of several readers")
    options = parser.parse_args()
    folder = options.folder
    readers = read_readers(folder / "reader_counts.tsv.gz")
    found = lc.read_candidates(folder / "detector_candidates.tsv.gz")
    readers = {scan: counts for scan, counts in readers.items() if scan in found}
    truth = np.array(list(readers.values()))
    as_they_come = [found[scan] for scan in readers]
    drawn = truth[np.arange(len(truth)), np.random.default_rng(SEED).integers(0, 4, len(truth))]
    n = len(truth)
    print(f"{n} scans, {sum(map(len, as_they_come))} candidates, {truth.mean():.2f} nodules per reader")
    tables = merged(as_they_come, 5.0)
    against_a_left_out_reader(tables, truth)
    if options.only_readers:
        return
    rng = np.random.default_rng(SEED)
    copies = [with_copies(table, rng) for table in as_they_come]
    ways: dict[str, Cdfs] = {
        "calibrated, merged within 5 mm": calibrated(tables, drawn),
        "calibrated, as they come": calibrated(as_they_come, drawn),
        "calibrated, merged within 10 mm": calibrated(merged(as_they_come, 10.0), drawn),
        "copies, merged within 5 mm": calibrated(merged(copies, 5.0), drawn),
        "copies, as they come": calibrated(copies, drawn),
        "tuned threshold": tuned_threshold(as_they_come, drawn),
        "quantile forest": quantile_forest(as_they_come, drawn),
        "scores as they are": raw(tables),
    }
    first = None
    for name, predict in ways.items():
        repeats = out_of_fold(predict, n)
        scores = np.mean([rps(cdf, truth) for cdf in repeats], axis=0)
        first = scores if first is None else first
        cover = np.mean([covered(cdf, truth) for cdf in repeats])
        print(
            f"{name:34} RPS {scores.mean():.3f}  difference {interval(scores - first)}  90 % covers {cover:.3f}",
            flush=True,
        )
    print(f"count + calibrate + evaluate: {end_to_end(folder, readers, drawn):.1f} s of the processor")


if __name__ == "__main__":
    main()

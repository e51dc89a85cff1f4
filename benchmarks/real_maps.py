"""Which way of counting is best, on maps with known truth: `python benchmarks/real_maps.py DATA [--synthetic …]`.

Every number of a method is for images that it was not fitted to: five folds, each by what the other four say.
Intervals come from resamples of images (of patients, for the synthetic cohort).
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

import lesioncount as lc
from lesioncount.baselines import connected_component_count
from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.trust.fitting import KnownTruth, fit_calibration
from lesioncount.trust.scores import Estimate, Predictions, score_all

FILES = {"leaves": "coffee_leaf_lesions/oof_maps.npz", "nuclei": "nuclei/nuclei.npz"}
WEIGHT = {"leaves": 3.0, "nuclei": 3.0, "synthetic": 1.0}
THRESHOLDS = np.array([0.1, *np.arange(0.2, 0.9, 0.05), 0.9, 0.92, 0.94, 0.96, 0.98, 0.99, 0.995, 0.999])
N_FOLDS = 5
N_RESAMPLES = 2000
SCORES = ["rps", "mae", "accuracy", "coverage90", "width90"]
TUNED = "components, tuned"


@dataclass(frozen=True)
class Maps:
    """What is known of the maps of a data set, image by image."""

    regions: KnownTruth
    peaks: KnownTruth
    components: NDArray[np.int64]
    volumes: NDArray[np.float64]
    folds: NDArray[np.int64]

    @property
    def counts(self) -> NDArray[np.int64]:
        """The truth."""
        return self.peaks.counts

    def rest_and_part(self) -> list[tuple[list[int], list[int]]]:
        """What is fitted to, and what it is judged by."""
        return [
            (np.flatnonzero(self.folds != k).tolist(), np.flatnonzero(self.folds == k).tolist()) for k in range(N_FOLDS)
        ]


def maps_of(
    maps: Sequence[NDArray[np.float64]], counts: NDArray[np.int64], groups: Sequence[str], folds: NDArray[np.int64]
) -> Maps:
    """Count each map in each way."""
    regions = [lc.find_candidates(p, warn=False) for p in maps]
    peaks = [lc.find_candidates(p, protocol="peaks", warn=False) for p in maps]
    return Maps(
        KnownTruth.of(regions, counts, groups=groups),
        KnownTruth.of(peaks, counts, groups=groups),
        np.array([[connected_component_count(p, threshold=t) for t in THRESHOLDS] for p in maps]),
        np.array([[(p > t).sum() for t in (0.1, 0.5, 0.9)] + [p.sum()] for p in maps], dtype=np.float64),
        folds,
    )


def real(folder: Path, name: str) -> Maps:
    """Maps that were made out of fold."""
    with np.load(folder / FILES[name], allow_pickle=False) as file:
        maps = [1 / (1 + np.exp(-one.astype(np.float64))) for one in file["logit"]]
        return maps_of(maps, file["count"], [str(i) for i in range(len(maps))], file["fold"])


def synthetic(scans: Path, predicted: Path) -> Maps:
    """Maps of a network, of a cohort made by `lesioncount synthesize`: both folders."""
    with (scans / "scans.tsv").open() as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    maps, counts, patients = [], [], []
    for row in rows:
        (path,) = predicted.rglob(f"{row['participant_id']}_{row['session_id']}*.nii.gz")
        maps.append(np.asarray(nib.load(path).dataobj, dtype=np.float64))  # type: ignore[attr-defined]  # nibabel's types know no dataobj
        counts.append(int(row["count"]))
        patients.append(row["participant_id"])
    names = sorted(set(patients))
    fold_of = {name: i % N_FOLDS for i, name in enumerate(np.random.default_rng(0).permutation(names))}
    return maps_of(maps, np.array(counts), patients, np.array([fold_of[name] for name in patients]))


def calibrated(data: Maps, truth: KnownTruth) -> list[CountDistribution]:
    """Distributions after a fit to the counts of the other folds."""
    found: dict[int, CountDistribution] = {}
    for rest, part in data.rest_and_part():
        fitted = fit_calibration(truth[rest])
        found |= dict(zip(part, truth[part].distributions(fitted), strict=True))
    return [found[i] for i in range(len(truth))]


def tuned(data: Maps) -> NDArray[np.int64]:
    """Components above the threshold with the smallest mean error on the other folds."""
    picked = np.zeros(len(data.counts), dtype=np.int64)
    for rest, part in data.rest_and_part():
        errors = np.abs(data.components[rest] - data.counts[rest][:, None]).mean(axis=0)
        picked[part] = data.components[part, int(errors.argmin())]
    return picked


def forest(data: Maps) -> NDArray[np.int64]:
    """A random forest on the numbers of components above all thresholds, and on volumes."""
    features = np.concatenate([data.components, data.volumes], axis=1)
    picked = np.zeros(len(data.counts), dtype=np.int64)
    for rest, part in data.rest_and_part():
        model = RandomForestRegressor(500, min_samples_leaf=2, random_state=0, n_jobs=2)
        picked[part] = np.rint(model.fit(features[rest], data.counts[rest]).predict(features[part]))
    return picked


def methods_of(data: Maps, weight: float, bins: int | None) -> dict[str, Predictions]:
    """All ways to count."""
    undone = lc.Calibration.for_positive_weight(weight)
    numbers: dict[str, Callable[[], NDArray[np.int64]]] = {
        "components, .5": lambda: data.components[:, int(np.abs(THRESHOLDS - 0.5).argmin())],
        TUNED: lambda: tuned(data),
        "random forest": lambda: forest(data),
    }
    distributions: dict[str, Callable[[], list[CountDistribution]]] = {
        "regions": lambda: data.regions.distributions(undone),
        "peaks": lambda: data.peaks.distributions(undone),
        "regions, calibrated": lambda: calibrated(data, data.regions),
        "peaks, calibrated": lambda: calibrated(data, data.peaks),
    }
    scored = {name: Predictions.of_counts(make(), data.counts, bins=bins) for name, make in numbers.items()}
    return scored | {
        name: Predictions.of_distributions(make(), data.counts, bins=bins, by_class=bins is not None)
        for name, make in distributions.items()
    }


def line(name: str, estimates: dict[str, Estimate], scores: Sequence[str]) -> str:
    """A row of a table."""
    cells = [f"{one.estimate:.3g} [{one.low:.3g}, {one.high:.3g}]" for one in (estimates[s] for s in scores)]
    return f"| {name} | " + " | ".join(cells) + " |"


def compare(name: str, data: Maps) -> dict[str, dict[str, dict[str, Estimate]]]:
    """Print the tables of a data set."""
    print(f"\n{name}: {len(data.counts)} images, {data.counts.sum()} lesions")
    kept = {}
    for title, bins, scores in (("counts", None, SCORES), ("classes 0, 1, 2, 3, 4+", 4, ["rps", "accuracy", "ece"])):
        methods = methods_of(data, WEIGHT[name], bins)
        found, differences = score_all(methods, groups=data.peaks.groups, n_resamples=N_RESAMPLES, seed=0)
        print(f"\n{title}: | | {' | '.join(scores)} |")
        for method, estimates in found.items():
            print(line(method, estimates, scores))
        against = differences["peaks, calibrated", TUNED]
        print(line(f"peaks, calibrated, minus {TUNED}", against, scores))
        kept[title] = found | {"difference": against}
    return kept


def main() -> None:
    """Compare on what is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with the maps of leaves and nuclei")
    parser.add_argument("--synthetic", type=Path, nargs=2, metavar=("SCANS", "MAPS"), help="a cohort and its maps")
    parser.add_argument("-o", "--output", type=Path, help="also write the numbers here, as JSON")
    options = parser.parse_args()
    results = {name: compare(name, real(options.data, name)) for name in FILES}
    if options.synthetic:
        results["synthetic"] = compare("synthetic", synthetic(*options.synthetic))
    if options.output:
        plain = json.dumps(results, default=lambda one: [one.estimate, one.low, one.high], indent=1)
        options.output.write_text(plain + "\n")


if __name__ == "__main__":
    main()

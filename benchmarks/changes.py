"""New lesions between two sessions, against the usual ways: `python benchmarks/changes.py FOLDER`.

FOLDER holds the folders that ``over_time.py make`` fills: ``mis05`` with 600 pairs, of which the first 300 test and the
others calibrate, and ``mis0``, ``mis1`` and ``mis2`` with 300 pairs of the same patients, moved more or less.

Everything that can be chosen (thresholds of the usual ways, the calibration) is chosen on the pairs that calibrate.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import over_time
from numpy.typing import NDArray
from scipy import ndimage

from lesioncount import compare, connected_component_count, count_lesions
from lesioncount.changes.coupling import DEFAULT_COUPLING
from lesioncount.changes.lesion_changes import LesionChanges
from lesioncount.results.answers import table_of
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.fitting import KnownTruth, fit_calibration
from lesioncount.trust.scores.bootstrap import score_all
from lesioncount.trust.scores.pit import randomised_pit
from lesioncount.trust.scores.predictions import Predictions

N_TEST = 300
PROTOCOL = "paper"
THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)
SMALLEST = (1, 3, 6, 12, 25)  # voxels
MASKED_ABOVE = (0.02, 0.05, 0.1, 0.3, 0.5)
COUPLINGS = (0.0, 1.0, 2.0, 2.5, 3.0, 4.0)
GROWN = (0, 1, 2)  # voxels that the masked baseline is grown by
TOLERANCES_MM = (0.0, 3.5, 5.0, 7.1)  # on voxels of 3.5 mm

Maps = tuple[NDArray[np.float32], NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Maps of both sessions, the number of new lesions, and the voxel size."""

    maps: list[Maps]
    n_new: NDArray[np.int64]
    spacing_mm: tuple[float, ...]

    @classmethod
    def read(cls, folder: Path, which: slice) -> Pairs:
        """Some of the pairs of a folder."""
        found = [over_time.read(path) for path in sorted(folder.glob("pair-*.npz"))[which]]
        maps = [(pair["before"], pair["after"]) for pair in found]
        return cls(maps, np.array([int(pair["n_new"]) for pair in found]), tuple(found[0]["spacing_mm"].tolist()))

    def changes(self, **options: float) -> list[LesionChanges]:
        """What has changed in each pair."""
        return [compare(*pair, spacing_mm=self.spacing_mm, protocol=PROTOCOL, **options) for pair in self.maps]

    def truth(self, found: Sequence[LesionChanges]) -> KnownTruth:
        """The same with the truth, to fit on and to judge by."""
        return KnownTruth.of([table_of(one, "new") for one in found], self.n_new, counted="new")


def predictions(truth: KnownTruth, calibration: Calibration) -> Predictions:
    return Predictions.of_distributions(truth.distributions(calibration), truth.counts)


def subtracted(pair: Maps, above: float, smallest: int) -> int:
    left = (pair[1] > above) & ~(pair[0] > above)
    return connected_component_count(left, min_voxels=smallest) if left.any() else 0


def masked(pair: Maps, above: float, grown: int) -> NDArray[np.float64]:
    """Existence of what is left of the later map where the earlier one has nothing."""
    hidden = pair[0] > above
    if grown:
        hidden = ndimage.binary_dilation(hidden, iterations=grown)
    return np.asarray(count_lesions(pair[1], mask=~hidden).existence)


def best(cost: Callable[..., float], *choices: Sequence[float]) -> tuple[float, ...]:
    return min(itertools.product(*choices), key=lambda chosen: cost(*chosen))


def rivals(train: Pairs, test: Pairs) -> dict[str, Predictions]:
    """The usual ways, as people use them and with all that they have chosen on the training pairs."""
    from lesioncount import PoissonBinomial

    def error(above: float, smallest: float) -> float:
        found = [subtracted(pair, above, int(smallest)) for pair in train.maps]
        return float(np.abs(np.array(found) - train.n_new).mean())

    def rps(above: float, grown: float) -> float:
        found = [PoissonBinomial(masked(pair, above, int(grown))) for pair in train.maps]
        return float(Predictions.of_distributions(found, train.n_new).rps.mean())

    tuned, hidden = best(error, THRESHOLDS, SMALLEST), best(rps, MASKED_ABOVE, GROWN)
    print(f"tuned: subtract above {tuned[0]:g}, {tuned[1]} voxels or more; mask above {hidden[0]:g}, grown {hidden[1]}")
    numbers = {
        "subtract at 0.5": [subtracted(pair, 0.5, 1) for pair in test.maps],
        "subtract, tuned": [subtracted(pair, tuned[0], int(tuned[1])) for pair in test.maps],
    }
    masks = {"mask at 0.1": (0.1, 0), "mask, tuned": hidden}
    distributions = {
        name: [PoissonBinomial(masked(pair, above, int(grown))) for pair in test.maps]
        for name, (above, grown) in masks.items()
    }
    return {name: Predictions.of_counts(np.array(of), test.n_new) for name, of in numbers.items()} | {
        name: Predictions.of_distributions(of, test.n_new) for name, of in distributions.items()
    }


def coverage_of_pit(of: Predictions) -> float:
    """How often the middle 90 % hold the truth, were counts not whole numbers."""
    pit = randomised_pit(of.below, of.p_truth, seed=0)
    return float(np.mean((pit > 0.05) & (pit < 0.95)))


def table_of_methods(train: Pairs, test: Pairs) -> Calibration:
    fitted = train.truth(train.changes())
    calibration = fit_calibration(fitted)
    known = test.truth(test.changes())
    methods = {
        f"coupling {c:g}": predictions(test.truth(test.changes(coupling=c)), Calibration(counted="new", coupling=c))
        for c in COUPLINGS
    }
    methods |= {"calibrated": predictions(known, calibration)} | rivals(train, test)
    scores, differences = score_all(methods, groups=known.groups, seed=0)
    print(f"calibration: {calibration}\n")
    print("| | RPS | mean error | bias | covered by 90 % | randomised | ECE | calibrated minus it, RPS |")
    print("|---|---|---|---|---|---|---|---|")
    for name, of in methods.items():
        score, ece = scores[name], of.reliability.ece if of.entropy is not None else float("nan")
        change = differences.get(("calibrated", name), {}).get("rps")
        back = differences.get((name, "calibrated"), {}).get("rps")
        gap = change if change is not None else (None if back is None else -back)
        words = "" if gap is None or name == "calibrated" else f"{gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"
        rps = f"{score['rps'].value:.3f} [{score['rps'].low:.3f}, {score['rps'].high:.3f}]"
        cells = [rps, f"{score['mae'].value:.2f}", f"{score['bias'].value:+.2f}", f"{score['coverage90'].value:.3f}"]
        cells += ["" if of.entropy is None else f"{coverage_of_pit(of):.3f}", f"{ece:.3f}", words]
        print(f"| {name} | {' | '.join(cells)} |")
    return calibration


def table_of_motion(folder: Path, train: Pairs) -> None:
    print("\nRPS uncalibrated / calibrated (on pairs moved by 0.5 mm), 300 pairs each")
    calibrations = {t: fit_calibration(train.truth(train.changes(tolerance_mm=t))) for t in TOLERANCES_MM}
    print(f"| moved | {' | '.join(f'tolerance {t:g} mm' for t in TOLERANCES_MM)} |\n|---|{'---|' * len(TOLERANCES_MM)}")
    for name in ("mis0", "mis05", "mis1", "mis2"):
        test, cells = Pairs.read(folder / name, slice(N_TEST)), []
        for tolerance, calibration in calibrations.items():
            known = test.truth(test.changes(tolerance_mm=tolerance))
            raw, corrected = (predictions(known, one).rps.mean() for one in (known.as_it_is, calibration))
            cells.append(f"{raw:.3f} / {corrected:.3f}")
        print(f"| {name.removeprefix('mis')} | {' | '.join(cells)} |")


def stable_patients(calibration: Calibration, *, n_patients: int = 200, n_lesions: int = 80) -> None:
    """The same lesions seen twice by a network whose logits have noise of their own each time."""
    rng = np.random.default_rng(0)
    print(f"\nnew lesions expected in a stable patient with {n_lesions} lesions, {n_patients} patients")
    print("| noise of logits | independent | same doubt | default | calibrated |\n|---|---|---|---|---|")
    ways = [Calibration(counted="new", coupling=c) for c in (0.0, 1.0, DEFAULT_COUPLING)] + [calibration]
    for noise in (0.25, 0.5, 1.0):
        lesions = rng.normal(3.0, 1.0, (n_patients, n_lesions))
        now, then = (1 / (1 + np.exp(-(lesions + rng.normal(0, noise, lesions.shape)))) for _ in range(2))
        means = [
            np.mean([way.distribution(CandidateTable.of(b, other=u)).mean() for b, u in zip(now, then, strict=True)])
            for way in ways
        ]
        print(f"| {noise:g} | {' | '.join(f'{mean:.2f}' for mean in means)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    train, test = (Pairs.read(folder / "mis05", part) for part in (slice(N_TEST, None), slice(N_TEST)))
    calibration = table_of_methods(train, test)
    stable_patients(calibration)
    table_of_motion(folder, train)


if __name__ == "__main__":
    main()

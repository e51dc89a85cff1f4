"""Of scans told 70 %, do 70 % fulfil the criterion? `python benchmarks/criteria.py FOLDER`.

FOLDER is filled first: scans of the ageing cohort, of one session each, and their maps by the network that ships with
the package, which has never seen this cohort. A scan is a file, `scan-0001.npz`, with

- `map`: probabilities, float32, shape (z, y, x), and `spacing_mm`;
- `areas`: the area of each voxel, as in `AREAS`;
- `lesions`: the marked lesions, each with its number, and `lesion_areas`: the number and the area of each, in which its
  centre lies.

Scans that are there are not made again. The first ones test; on the others the calibration is fitted, from counts of
whole scans alone, as anybody would: it knows nothing of areas or criteria.

The lowest part of the head stands in for what is infratentorial, which the field of view does not reach. There is no
spinal cord in it: no lesion lies there in truth, and none is asked for, so that both sides are the same lower bound.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import over_time
from numpy.typing import NDArray

from lesioncount import count_lesions
from lesioncount.counting import LesionCount
from lesioncount.learning.prediction import Checkpoint, load_checkpoint, probability_maps
from lesioncount.questions import ExtraLesions, Question, Trials, probability_of
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import KnownTruth, fit_calibration
from lesioncount.trust.regional_count import RegionalCount
from lesioncount.trust.scores.bootstrap import interval_of, resampled_weights
from lesioncount.trust.scores.reliability import bin_of, reliability
from lesioncount.trust.trials import trials_of
from lesioncount_reproduction.synthetic import AgeingCohort
from lesioncount_reproduction.synthetic.areas import AREAS, area_of

NAMED = "mcdonald2017-dis"
QUESTIONS = (NAMED, "count >= 3", "periventricular >= 1 and juxtacortical >= 1", "periventricular >= 1")

N_TEST = 1000
PROTOCOL = "paper"
BINS = 10
AT_ONCE = 16

# What the usual way takes for a lesion.
CUT = 0.5

# How far a lesion may lie from the peak of its candidate, along each axis, where that is in doubt: the best of these.
BORDERS_MM = (0.9, 1.75, 2.5, 3.5)

# Area 0 is whatever has no name.
NAMES = {label: "infratentorial" if name == "lowest_part" else name for label, name in AREAS.items()}
KNOWN = ("count", *NAMES.values())
N_AREAS = len(NAMES) + 1


def make(folder: Path, *, n_scans: int, seed: int) -> list[Path]:
    """Make the scans that are missing in a folder, and give the paths of all."""
    cohort = AgeingCohort(n_scans, seed, n_sessions=1)
    folder.mkdir(parents=True, exist_ok=True)
    over_time.check_settings(folder, f"seed {seed}, one session, shape {cohort.lattice.shape}\n")
    paths = [folder / f"scan-{place + 1:04d}.npz" for place in range(n_scans)]
    missing = [place for place, path in enumerate(paths) if not path.is_file()]
    trained = load_checkpoint(Path(str(files("lesioncount") / "samples" / "network.ckpt")))
    began = time.perf_counter()
    for begin in range(0, len(missing), AT_ONCE):
        part = missing[begin : begin + AT_ONCE]
        for place, scan in zip(part, made(cohort, trained, part), strict=True):
            over_time.save(paths[place], scan)
        done = begin + len(part)
        print(f"{done}/{len(missing)}, {(time.perf_counter() - began) / done:.3f} s per scan", flush=True)
    return paths


def made(cohort: AgeingCohort, trained: Checkpoint, places: list[int]) -> Iterator[dict[str, Any]]:
    """Maps of some scans, and the truth."""
    labels = {name: label for label, name in AREAS.items()}
    maps = probability_maps(trained, (cohort.scan(place).images for place in places), batch_size=AT_ONCE)
    for place, found in zip(places, maps, strict=True):
        visit = cohort.visits[place]
        areas, lesions = cohort.areas(visit), cohort.lesions(visit)
        marked = {number: area_of(blob, areas, cohort.lattice) for number, blob in lesions.items() if blob.labelled}
        yield {
            "map": found,
            "areas": areas,
            "lesions": cohort.instances(visit),
            "lesion_areas": np.array([(n, labels.get(name, 0)) for n, name in marked.items()]).reshape(-1, 2),
            "spacing_mm": np.array(cohort.lattice.spacing_mm),
        }


@dataclass(frozen=True, eq=False)
class Scan:
    """What a map shows by area, and the true lesions.

    Attributes
    ----------
    found : LesionCount
    areas : array of int
        Of each voxel.
    lesion_areas : array of int
        Of each true lesion.
    seen_in : array of int
        The same where the area of the peak counts of the candidate that covers most of a lesion, if one does.
    n_seen : int
        Lesions that have such a candidate.
    """

    found: LesionCount
    areas: NDArray[np.uint8]
    lesion_areas: NDArray[np.int64]
    seen_in: NDArray[np.int64]
    n_seen: int

    @classmethod
    def read(cls, path: Path) -> Scan:
        """From its file."""
        content = over_time.read(path)
        areas, spacing = content["areas"], content["spacing_mm"].tolist()
        found = count_lesions(content["map"], protocol=PROTOCOL, spacing_mm=spacing, regions=areas, region_names=NAMES)
        numbers, own = content["lesion_areas"].T
        at_peaks = np.concatenate([[-1], areas[tuple(found.candidates.peak_index.T)].astype(np.int64)])
        covering = found.candidates.label_map() if len(found.candidates) else np.zeros(areas.shape, np.int64)
        seen = np.array([_most(covering[content["lesions"] == number]) for number in numbers], dtype=np.int64)
        return cls(found, areas, own, np.where(seen > 0, at_peaks[seen], own), int(np.sum(seen > 0)))

    def at_nodes(self, calibration: Calibration) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Existence at each node of a calibration, and weights."""
        return calibration.at_nodes(self.found.candidates)

    def told(self, question: Question, calibration: Calibration) -> float:
        """The probability that the scan fulfils a question, as `lesioncount count --ask` gives it."""
        places = self.found.places
        assert places is not None  # noqa: S101 - for the type checker
        by_area = RegionalCount(calibration, self.found.candidates, places.members)
        return probability_of(question, trials_of(by_area, question.names))

    def told_near(self, question: Question, calibration: Calibration, border_mm: float) -> float:
        """The same where a lesion may lie in another area than its peak: one of several outcomes."""
        existence, weights = self.at_nodes(calibration)
        share = self._shares(border_mm)
        n = len(share)
        area = np.arange(N_AREAS)
        trials = Trials(
            probability=(existence[:, :, np.newaxis] * share).reshape(len(existence), -1),
            adds=_adds(question, np.tile(area, n)),
            weights=weights,
            trial=np.repeat(np.arange(n), N_AREAS),
            extra=self._extra(calibration, existence, weights, share, _adds(question, area)),
        )
        return probability_of(question, trials)

    def _shares(self, border_mm: float) -> NDArray[np.float64]:
        """Of each candidate, how much of a Gaussian around its peak lies in each area, shape (K, areas)."""
        peaks = self.found.candidates.peak_index
        spacing = np.array(self.found.candidates.spacing_mm)
        reach = [np.arange(-k, k + 1) for k in np.ceil(2 * border_mm / spacing).astype(int)]
        steps = np.stack(np.meshgrid(*reach, indexing="ij"), axis=-1).reshape(-1, 3)
        weight = np.exp(-(((steps * spacing / border_mm) ** 2).sum(axis=1)) / 2)
        near = np.clip(peaks[:, np.newaxis] + steps, 0, np.array(self.areas.shape) - 1)
        there = self.areas[tuple(np.moveaxis(near, -1, 0))]
        share = np.stack([((there == area) * weight).sum(axis=1) for area in range(N_AREAS)], axis=1)
        return np.asarray(share / weight.sum())

    def _extra(
        self,
        calibration: Calibration,
        existence: NDArray[np.float64],
        weights: NDArray[np.float64],
        share: NDArray[np.float64],
        adds: Mapping[str, NDArray[np.bool_]],
    ) -> ExtraLesions | None:
        """Lesions without a candidate: where those with one are, or nowhere if there are none."""
        if not calibration.has_extra:
            return None
        expected = (weights @ existence) @ share
        where = expected / expected.sum() if expected.any() else np.eye(N_AREAS)[0]
        mean = calibration.extra_rate + calibration.extra_share * existence.sum(axis=1)
        return ExtraLesions(mean=mean, share=where, adds=adds, shape=calibration.extra_shape)

    def usual(self, question: Question) -> bool:
        """Whether it seems to, once each candidate is taken to be a lesion or none."""
        peaks = self.found.candidates.peak_index[self.found.existence > CUT]
        return certain(question, self.areas[tuple(peaks.T)])


def _most(labels: NDArray[np.int64]) -> int:
    """The candidate that covers most of a lesion; 0 if none does."""
    covered = labels[labels > 0]
    return int(np.bincount(covered).argmax()) if len(covered) else 0


def _adds(question: Question, area: NDArray[Any]) -> dict[str, NDArray[np.bool_]]:
    """What outcomes in these areas add to."""
    label = {name: label for label, name in NAMES.items()}
    return {name: np.full(len(area), True) if name == "count" else area == label[name] for name in question.names}


def certain(question: Question, areas: NDArray[Any]) -> bool:
    """Whether lesions in these areas fulfil a question: outcomes that are certain."""
    return probability_of(question, Trials(probability=np.ones(len(areas)), adds=_adds(question, areas))) > CUT


@dataclass(frozen=True, eq=False)
class Told:
    """Probabilities that were told, and whether they came true."""

    p: NDArray[np.float64]
    truth: NDArray[np.bool_]

    @property
    def ece(self) -> float:
        """Expected calibration error."""
        return float(reliability(self.p, self.truth, bins=BINS).ece)

    @property
    def brier(self) -> float:
        """Brier score."""
        return float(np.mean((self.p - self.truth) ** 2))

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        return np.concatenate(list(resampled_weights(range(len(self.p)))))

    def cells(self) -> list[str]:
        """ECE, Brier score, and how much was told on average minus how often it was so, with intervals."""
        off = self.p - self.truth
        in_bins = np.eye(BINS)[bin_of(self.p, BINS)] * off[:, np.newaxis]
        eces = np.abs(self._weights @ in_bins).sum(axis=1) / len(off)
        briers, biases = (self._weights @ np.stack([off**2, off], axis=1) / len(off)).T
        return [_words(self.ece, eces), _words(self.brier, briers), _words(float(off.mean()), biases, "+")]

    def by_chance(self, *, n_draws: int = 1000) -> float:
        """The ECE of scans that fulfil the question exactly as often as they were told: what is left by chance."""
        rng = np.random.default_rng(0)
        draws = (Told(self.p, rng.random(len(self.p)) < self.p).ece for _ in range(n_draws))
        return float(np.mean(list(draws)))

    def bins(self) -> str:
        """In each bin: told, true, and the number of scans."""
        of = reliability(self.p, self.truth, bins=BINS)
        return ", ".join(f"{p:.2f} {hit:.2f} ({n})" for p, hit, n in zip(of.confidence, of.hit_rate, of.n, strict=True))


def _words(value: float, samples: NDArray[np.float64], sign: str = "") -> str:
    low, high = interval_of(samples)
    return f"{value:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"


def best_border(scans: Sequence[Scan], calibration: Calibration) -> float:
    """The distance with the best Brier score of the named criterion."""
    question, _ = Question.named(NAMED).given(KNOWN)
    truth = np.array([certain(question, scan.lesion_areas) for scan in scans])

    def brier(border_mm: float) -> float:
        return Told(np.array([scan.told_near(question, calibration, border_mm) for scan in scans]), truth).brier

    return min(BORDERS_MM, key=brier)


def table(scans: Sequence[Scan], calibration: Calibration, border_mm: float) -> None:
    ways: dict[str, Callable[[Scan, Question], float]] = {
        "as the map has it": lambda scan, question: scan.told(question, Calibration()),
        "calibrated": lambda scan, question: scan.told(question, calibration),
        "calibrated, borders in doubt": lambda scan, question: scan.told_near(question, calibration, border_mm),
        "yes or no at 0.5": lambda scan, question: scan.usual(question),
    }
    doubted = list(ways)[:-1]
    print("| question | fulfilled | | ECE | by chance | Brier | told minus true | ECE, areas of peaks |")
    print("|---|---|---|---|---|---|---|---|")
    shown = []
    for text in QUESTIONS:
        question, _ = Question.asked(text).given(KNOWN)
        truth, seen = (
            np.array([certain(question, one) for one in areas])
            for areas in ([scan.lesion_areas for scan in scans], [scan.seen_in for scan in scans])
        )
        for name, way in ways.items():
            of = Told(np.array([way(scan, question) for scan in scans], dtype=np.float64), truth)
            ece, brier, bias = of.cells()
            cells = [
                name,
                ece,
                f"{of.by_chance():.3f}" if name in doubted else "",
                brier,
                bias,
                f"{Told(of.p, seen).ece:.3f}",
            ]
            print(f"| `{text}` | {truth.mean():.2f} | {' | '.join(cells)} |", flush=True)
            shown.append(f"{text}, {name}: {of.bins()}")
    print("\ntold, true (scans), in bins:", *shown, sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scans", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=18)
    given = parser.parse_args()
    scans = [Scan.read(path) for path in make(given.folder, n_scans=given.scans, seed=given.seed)]
    test, others = scans[:N_TEST], scans[N_TEST:]
    truth = KnownTruth.of([scan.found.candidates for scan in others], [len(scan.lesion_areas) for scan in others])
    calibration = fit_calibration(truth)
    border_mm = best_border(others, calibration)
    elsewhere = sum(int(np.sum(scan.lesion_areas != scan.seen_in)) for scan in test)
    n_lesions, n_seen = sum(len(scan.lesion_areas) for scan in test), sum(scan.n_seen for scan in test)
    print(f"{len(test)} scans, calibrated on {len(others)}: {calibration}")
    print(f"{n_lesions} lesions, {n_seen} with a candidate, whose peak is in another area for {elsewhere / n_seen:.1%}")
    print(f"borders in doubt by {border_mm:g} mm\n")
    table(test, calibration, border_mm)


if __name__ == "__main__":
    main()

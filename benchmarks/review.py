"""What review is worth: a simulated reader who knows the truth, in several orders; 20 reviewed scans to calibrate on.

lesioncount synthesize cohort/ && lesioncount count MAPS -o out/
python benchmarks/review.py out/ --truth cohort/derivatives/masks --truth-suffix _label-lesion_mask
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.beside_truth import TruthOptions, compare
from lesioncount.candidates import find_candidates
from lesioncount.errors import CalibrationError
from lesioncount.results.results import read_countable
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.fitting import CalibrationFit
from lesioncount.trust.fitting.known_truth import KnownTruth
from lesioncount.trust.reviewed_count import UNDECIDED, ReviewedCount
from lesioncount.trust.scores.lesions import LesionMatch, match_lesions

SCANS, DRAWS, REVIEWED = 100, 100, 20
LIMIT = 0.05


@dataclass(frozen=True)
class Scan:
    """Candidates of a scan, and how many lesions each of them truly is."""

    name: str
    candidates: CandidateTable
    lesions: NDArray[np.int64]
    count: int

    @property
    def peaks(self) -> NDArray[np.float64]:
        """The height of each candidate."""
        return self.candidates.peak

    @property
    def n_missed(self) -> int:
        """Lesions that no candidate touches: a reader who looks at the whole scan adds them."""
        return self.count - int(self.lesions.sum())


def scans_in_results(results: Path, truth: Path, suffix: str) -> list[Scan]:
    compared = compare(read_countable(results), TruthOptions(masks=(truth,), suffix=suffix), read_maps=True)
    return [
        _scan(summary.name, summary.tables[0], match)
        for summary, truth in zip(compared.scans, compared.truths, strict=True)
        for match in truth.matches.values()
    ]


def scans_in_arrays(path: Path) -> list[Scan]:
    scans = []
    with np.load(path, allow_pickle=False) as arrays:
        for number, (logits, drawn) in enumerate(zip(arrays["logit"], arrays["instances"], strict=True)):
            found = find_candidates(logits.astype(np.float32), logits=True, warn=False)
            _, lesions = np.unique(drawn, return_inverse=True)
            n = (len(found), int(lesions.max()))
            match = match_lesions(found.label_map(), lesions.reshape(drawn.shape), n_candidates=n[0], n_lesions=n[1])
            scans.append(_scan(str(number), CandidateTable.of_candidates(found), match))
    return scans


def _scan(name: str, candidates: CandidateTable, match: LesionMatch) -> Scan:
    lesions = np.zeros(len(candidates), dtype=np.int64)
    _, first = np.unique(match.pairs[:, 1], return_index=True)  # of each lesion, where it overlaps most
    np.add.at(lesions, match.pairs[first, 0], 1)
    return Scan(name, candidates, lesions, match.n_lesions)


Orders = dict[str, Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]]


def orders(rng: np.random.Generator) -> Orders:
    """The rank of each candidate, from the number of its scan, its existence, and the loss of variance expected."""
    return {
        "ours: expected loss of variance": lambda scan, p, loss: -loss,  # noqa: ARG005
        "ours, scan by scan": lambda scan, p, loss: -np.bincount(scan, loss)[scan] - 1e-9 * loss,  # noqa: ARG005
        "existence, highest first": lambda scan, p, loss: -p,  # noqa: ARG005
        "existence, lowest first": lambda scan, p, loss: p,  # noqa: ARG005
        "random": lambda scan, p, loss: rng.random(len(p)),  # noqa: ARG005
    }


def errors(scans: Sequence[Scan], ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Error of the total, and of the scans one by one, as shares of all lesions, after 0, 1, … decisions."""
    number = np.concatenate([np.full(len(scan.peaks), place) for place, scan in enumerate(scans)])
    p, lesions = (np.concatenate([getattr(scan, name) for scan in scans]) for name in ("peaks", "lesions"))
    expected = np.array([scan.peaks.sum() for scan in scans])
    truth = np.array([scan.count for scan in scans])
    n_left = np.array([len(scan.peaks) for scan in scans])
    found = [(abs((expected - truth).sum()), np.abs(expected - truth).sum())]
    for k in np.argsort(ranks, kind="stable"):
        scan = number[k]
        n_left[scan] -= 1
        steps = [lesions[k] - p[k], *([1.0] * scans[scan].n_missed if n_left[scan] == 0 else ())]
        for step in steps:
            expected[scan] += step
            found.append((abs((expected - truth).sum()), np.abs(expected - truth).sum()))
    return np.array(found) / truth.sum()


def until(error: NDArray[np.float64], limit: float = LIMIT) -> int:
    """Decisions until an error is at most this, and stays so."""
    above = np.flatnonzero(error > limit)
    return 0 if len(above) == 0 else int(above[-1]) + 1


def simulate_reader(scans: Sequence[Scan], rng: np.random.Generator) -> None:
    drawn = [rng.choice(len(scans), SCANS, replace=False) for _ in range(DRAWS)]
    ways = orders(rng)
    curves: dict[str, list[NDArray[np.float64]]] = {name: [] for name in ways}
    for chosen in drawn:
        some = [scans[number] for number in chosen]
        number = np.concatenate([np.full(len(scan.peaks), place) for place, scan in enumerate(some)])
        p = np.concatenate([scan.peaks for scan in some])
        loss = np.concatenate([_count(scan).loss_of_variance for scan in some])
        for name, rank in ways.items():
            curves[name].append(errors(some, rank(number, p, loss)))
    n = np.mean([len(curve) - 1 for curve in curves["random"]])
    lesions = np.mean([sum(scans[number].count for number in chosen) for chosen in drawn])
    print(f"{DRAWS} draws of {SCANS} scans: {lesions:.0f} lesions, {n:.0f} decisions if all are made, on average")
    print("decisions until an error is at most 5 % of the lesions, and stays so: mean (5 % to 95 % of draws)")
    for name, found in curves.items():
        print(f"  {name:34}", *(_range([until(one[:, place]) for one in found]) for place in (0, 1)))
    print("mean error after 0, 10, 20, 40, 60, 80, 100, 120, 140 decisions, in % of the lesions: total | scans")
    for name, found in curves.items():
        longest = max(len(one) for one in found)
        mean = np.mean([np.pad(one, ((0, longest - len(one)), (0, 0)), mode="edge") for one in found], axis=0)
        shown = [mean[[0, 10, 20, 40, 60, 80, 100, 120, 140], place] for place in (0, 1)]
        first = [int(np.argmax(mean[:, place] <= LIMIT)) for place in (0, 1)]
        print(f"  {name:34}", " | ".join(" ".join(f"{100 * v:4.1f}" for v in part) for part in shown), first)


def _count(scan: Scan) -> ReviewedCount:
    return ReviewedCount(Calibration(), scan.candidates, np.full(len(scan.candidates), UNDECIDED))


def _range(values: Sequence[int]) -> str:
    low, high = np.quantile(values, [0.05, 0.95])
    return f"{np.mean(values):6.0f} ({low:.0f} to {high:.0f})"


def calibrate_from_reviews(scans: Sequence[Scan], rng: np.random.Generator) -> None:
    """Fit on 20 reviewed scans, look at the others."""
    by_doubt = np.argsort([-_count(scan).var() for scan in scans])[:REVIEWED]
    draws = [rng.choice(len(scans), REVIEWED, replace=False) for _ in range(40)]
    for title, chosen in (("20 scans at random", draws), ("the 20 most telling scans", [by_doubt])):
        rows = [row for one in chosen if (row := _beside_the_others(scans, one)) is not None]
        table = np.array(rows)
        print(f"{title}: {len(rows)} of {len(chosen)} draws have the 10 lesions that a calibration needs")
        for place, what in enumerate(("RPS", "coverage of 90 %", "width of 90 %", "bias")):
            before, after = table[:, 2 * place], table[:, 2 * place + 1]
            low, high = np.quantile(after - before, [0.05, 0.95])
            print(
                f"  {what:18} {before.mean():.3f} -> {after.mean():.3f}, change {low:+.3f} to {high:+.3f} (5 to 95 %)"
            )


def _beside_the_others(scans: Sequence[Scan], chosen: NDArray[np.int64]) -> list[float] | None:
    reviewed = [scans[number] for number in chosen]
    others = [scan for number, scan in enumerate(scans) if number not in set(chosen.tolist())]
    known = KnownTruth.of([scan.candidates for scan in reviewed], [scan.count for scan in reviewed])
    try:
        fit = CalibrationFit.fit(known)
    except CalibrationError:
        return None
    both = [_scores(others, calibration) for calibration in (Calibration(), fit.calibration)]
    return [value for pair in zip(*both, strict=True) for value in pair]


def _scores(scans: Sequence[Scan], calibration: Calibration) -> tuple[float, float, float, float]:
    rows = []
    for scan in scans:
        count = calibration.distribution(scan.candidates)
        low, high = count.interval(0.9)
        k = np.arange(max(len(count.pmf()), scan.count + 1))
        rps = float(((count.cdf(k) - (k >= scan.count)) ** 2).sum())
        rows.append((rps, low <= scan.count <= high, high - low, count.mean() - scan.count))
    rps, coverage, width, bias = np.mean(rows, axis=0)
    return float(rps), float(coverage), float(width), float(bias)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--truth", type=Path)
    parser.add_argument("--truth-suffix", default="")
    options = parser.parse_args()
    scans = (
        scans_in_arrays(options.results)
        if options.truth is None
        else scans_in_results(options.results, options.truth, options.truth_suffix)
    )
    rng = np.random.default_rng(0)
    simulate_reader(scans, rng)
    calibrate_from_reviews(scans, rng)


if __name__ == "__main__":
    main()

"""`count --known` on real data: `python benchmarks/known_counts.py DATA --draws 20`.

DATA holds leaves and nuclei (docs/trust.md says where they are from). Each draw takes n scans whose counts are known;
regions, peaks or their mixture are chosen and calibrated on these, and up to 150 others judge by their ranked
probability score (RPS): as they are, calibrated, and as chosen. The loss is what the choice has above the better of
calibrated regions and peaks of its draw, which nobody knows who has the n counts only.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from lesioncount.trust.calibration import Calibration
from lesioncount.trust.fitting import KnownTruth, choose, fit_calibration
from lesioncount.trust.scores.predictions import Predictions

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # maps of real networks are read there, too

SETS = ("leaves", "nuclei", "noisy leaves")
N_JUDGED = 150
AS_THEY_ARE = Calibration()


def scans_of(data: Path, name: str) -> KnownTruth:
    """Peaks of the maps; of noisy ones, with noise of standard deviation 1 on the logit of each pixel."""
    from trust.fitting.real_maps import real_maps

    noise = {"noise": 1.0} if name.startswith("noisy") else {}
    return real_maps(data, name.removeprefix("noisy "), "peaks", **noise)[0]


def rps(truth: KnownTruth, calibration: Calibration) -> float:
    return float(Predictions.of_distributions(truth.distributions(calibration), truth.counts).rps.mean())


def judged(truth: KnownTruth, n: int, seed: int) -> tuple[str, list[float]]:
    """What is chosen, and the RPS of raw and calibrated regions, raw and calibrated peaks, and of the choice."""
    order = np.random.default_rng(seed).permutation(len(truth)).tolist()
    known, others = truth[order[:n]], truth[order[n : n + N_JUDGED]]
    choice = choose(known, intervals=False)
    scores = []
    for learned, rest in ((known.of_regions, others.of_regions), (known, others)):
        scores += [rps(rest, AS_THEY_ARE), rps(rest, fit_calibration(learned))]
    rest = others.of_regions if choice.kind == "regions" else others
    return choice.kind, [*scores, rps(rest, choice.fit.calibration)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--known", type=int, nargs="+", default=[25, 50, 200])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS[:2])
    given = parser.parse_args()
    print("| data | known | regions: raw, calibrated | peaks: raw, calibrated | chosen | loss | of raw | chosen were |")
    print("|---|---|---|---|---|---|---|---|")
    for name in given.sets:
        truth = scans_of(given.data, name)
        for n in (min(n, len(truth) - 50) for n in given.known):
            kinds, draws = zip(*(judged(truth, n, 1000 * n + seed) for seed in range(given.draws)), strict=True)
            values = np.array(draws)
            raw_regions, regions, raw_peaks, peaks, chosen = values.mean(axis=0)
            better = values[:, [1, 3]].min(axis=1)
            were = ", ".join(f"{of} {kind}" for kind, of in Counter(kinds).most_common())
            print(
                f"| {name} | {n} | {raw_regions:.3f}, {regions:.3f} | {raw_peaks:.3f}, {peaks:.3f} | {chosen:.3f} "
                f"| {(values[:, 4] - better).mean() / better.mean():+.1%} | {chosen / min(raw_regions, raw_peaks):.2f} "
                f"| {were} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

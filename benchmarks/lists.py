"""Lists with a promise, on real data: `python benchmarks/lists.py FOLDER --halves 2000`.

FOLDER holds LIDC's candidates and nodules as tables, as for few_labels.py. Half of the scans give the threshold, the
other half is judged: the share of nodules of three or more readers that have a candidate and are not on the list, over
scans that have one; and the length of lists.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
from few_scans import rows_of

from lesioncount.trust.fitting import KnownTruth
from lesioncount.trust.fitting.lists import CandidateLists, ListRule

N_READERS = 3


def known_lesions(folder: Path) -> KnownTruth:
    """Scores of candidates, and which are the best one on a nodule."""
    readers = {(row["series_uid"], row["nodule"]): int(row["n_readers"]) for row in rows_of(folder / "nodules.tsv.gz")}
    scans = defaultdict(list)
    for row in rows_of(folder / "detector_candidates.tsv.gz"):
        scans[row["series_uid"]].append((float(row["score"]), (row["series_uid"], row["lidc_nodule"])))
    tables, owns, counts = [], [], []
    for scan, candidates in scans.items():
        candidates.sort(reverse=True)
        seen = {nodule for nodule, n in readers.items() if nodule[0] == scan and n >= N_READERS}
        counts.append(len(seen))
        owns.append(np.zeros(len(candidates), dtype=bool))
        for place, (_, nodule) in enumerate(candidates):
            owns[-1][place] = nodule in seen
            seen.discard(nodule)  # a further candidate on it is no further nodule
        tables.append(np.clip([score for score, _ in candidates], 1e-7, 1 - 1e-7))
    return KnownTruth.of(tables, counts, owns=owns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--halves", type=int, default=2000)
    given = parser.parse_args()
    truth, rule, found = known_lesions(given.folder), ListRule("missed", 0.1), []
    for seed in range(given.halves):
        order = np.random.default_rng(seed).permutation(len(truth)).tolist()
        threshold = CandidateLists.fit(truth[order[: len(order) // 2]]).threshold(rule)
        judged = truth[order[len(order) // 2 :]]
        listed = [table.peak >= threshold for table in judged.candidates]
        lengths, has_one = np.array([on.sum() for on in listed]), np.array([own.any() for own in judged.owns])
        missed = [np.mean(~on[own]) for on, own in zip(listed, judged.owns, strict=True) if own.any()]
        found.append([np.mean(missed), lengths.mean(), lengths[has_one].mean()])
    (missed, length, of_those), error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)[0] / len(found) ** 0.5
    low, high = np.quantile([one[0] for one in found], [0.05, 0.95])
    shares = f"{missed:.4f} ± {error:.4f} (standard error) missed"
    above = np.mean([one[0] > rule.level for one in found])
    print(f"{rule}: {shares}, {low:.3f} to {high:.3f} in 90 % of {given.halves} halves, above it in {above:.0%}")
    print(f"candidates a list: {length:.2f} over all scans, {of_those:.2f} over those with a nodule that has one")


if __name__ == "__main__":
    main()

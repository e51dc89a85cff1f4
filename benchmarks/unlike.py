"""How often new scans are called unlike those of a calibration: `python benchmarks/unlike.py DATA --draws 100`.

DATA holds leaves, nuclei and LIDC, as for few_scans.py. Each draw takes 150 scans (of nuclei 100) as those of the
calibration and a batch of others: as they are (false alarms), with their logits shifted or stretched, or of another
set.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from few_scans import N_JUDGED, SETS, scans_of

from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import CandidateTable
from lesioncount.trust.likeness import CalibrationScans

# Where 90 % intervals then held less than 80 % of the counts; and one that hardly harms.
SEEN = {
    "nuclei": {"nuclei, logit − 1": (1, -1), "nuclei, logit + 2": (1, 2), "nuclei, logit × 0.7": (0.7, 0)},
    "leaves": {"leaves, logit − 1": (1, -1), "leaves, logit + 1": (1, 1)},
    "lidc": {
        **{f"LIDC, logit {'−' if by < 0 else '+'} {abs(by)}": (1, by) for by in (-0.5, -1, 0.5)},
        "LIDC, logit × 0.7": (0.7, 0),
        "LIDC, logit × 1.4": (1.4, 0),
    },
}


def corrected(table: CandidateTable, slope: float, offset: float, floor: float = 0.0) -> CandidateTable:
    """The candidates of a network that says the same in other probabilities, of which those above a floor are given."""
    to = Calibration(slope, offset)
    saddle = np.where(table.saddle > 0, to.existence(np.maximum(table.saddle, 1e-12)), 0.0)
    given = CandidateTable.of(to.existence(table.peak), saddle=saddle)
    return given.rows(given.peak >= floor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--batches", type=int, nargs="+", default=[10, 20, 50])
    given = parser.parse_args()
    candidates = {name: list(scans_of(given.data, name)[0].candidates) for name in SETS}
    changed = {(name, f"{name}, as they are"): candidates[name] for name in SETS}
    for name, changes in SEEN.items():
        # A detector gives no box below a score; the floor of maps is left out, as nearly all peaks lie far above it.
        floor = CandidateTable.joined(candidates[name]).peak.min() if name == "lidc" else 0.0
        for what, by in changes.items():
            changed[name, what] = [corrected(table, *by, floor) for table in candidates[name]]
    print(f"| new scans | {' | '.join(f'alarms in batches of {n}' for n in given.batches)} |")
    print("|---|" + "---|" * len(given.batches))
    for (name, what), tables in changed.items():
        print(f"| {what} | {' | '.join(alarms(candidates[name], tables, n, given.draws) for n in given.batches)} |")
    shares = (alarms(candidates["leaves"], candidates["nuclei"], n, given.draws) for n in given.batches)
    print(f"| nuclei, with a calibration of leaves | {' | '.join(shares)} |")


def alarms(old: list[CandidateTable], new: list[CandidateTable], n: int, draws: int) -> str:
    """The share of draws with an alarm."""
    n_old, found = min(N_JUDGED, len(old) // 2), 0
    for seed in range(draws):
        order = np.random.default_rng(seed).permutation(len(old))
        known = CalibrationScans.of([old[row] for row in order[:n_old]])
        rows = [row for row in order[n_old:] if row < len(new)][:n]
        unlike = known.compare([new[row] for row in rows], seed=seed)
        found += unlike is not None and unlike.is_alarm
    return f"{found / draws:.0%}"


if __name__ == "__main__":
    main()

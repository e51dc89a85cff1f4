"""``lesioncount synthesize``: a seed → a folder of scans to learn from."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from lesioncount.cli.options import add_quiet, at_least_one, named_path, processes
from lesioncount.errors import CohortError

if TYPE_CHECKING:
    from lesioncount_reproduction.synthetic import AgeingCohort, GadCohort

# Lines of progress that a run prints.
_LINES = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.epilog = (
        "Each patient has one to three scans, each with five sequences, masks of the brain and of enhancing lesions, "
        "areas of the brain, and a count. With --ageing, lesions stay, grow, shrink, vanish or are new at the next "
        "scan, and changes.tsv tells which. The same seed gives the same scans on every machine."
    )
    parser.add_argument(
        "-o", "--output", required=True, type=named_path, metavar="FOLDER", help="folder for the cohort; new or empty"
    )
    parser.add_argument(
        "--patients", type=at_least_one, default=160, metavar="N", help="number of patients (default: 160)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the random numbers (default: 1)")
    parser.add_argument(
        "--shape",
        type=at_least_one,
        nargs=3,
        default=(24, 48, 40),
        metavar=("Z", "Y", "X"),
        help="number of voxels along each axis; the field of view stays the same (default: 24 48 40)",
    )
    parser.add_argument(
        "--ageing", action="store_true", help="follow the lesions of each patient over time, and write what has changed"
    )
    parser.add_argument(
        "--sessions", type=at_least_one, metavar="N", help="with --ageing: scans of each patient (default: 2)"
    )
    parser.add_argument(
        "--misregistration",
        type=float,
        metavar="MM",
        help="with --ageing: how far the head has moved since the first scan, which no header tells; root mean square "
        "50 mm from its centre (default: 0.5)",
    )
    parser.add_argument("-j", "--jobs", type=processes, default=1, metavar="N", help="number of processes (default: 1)")
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Make and write the scans, and print what was written."""
    from lesioncount_reproduction.synthetic.derivatives import write_synthetic

    cohort = _cohort(options)
    write_synthetic(options.output, cohort, jobs=options.jobs, progress=None if options.quiet else _tell)
    if not options.quiet:
        parts = ", ".join(f"{len(cohort.split(name))} {name}" for name in ("train", "val", "test"))
        print(f"{len(cohort)} scans of {options.patients} patients ({parts}) are in {options.output}.")
        print("Counts: scans.tsv. Patients and their splits: participants.tsv. Masks: derivatives/masks.")
        print("Lesions: lesions.tsv. Counts per area of the brain: areas.tsv. Areas: derivatives/areas.")
        if options.ageing:
            print("Changes between scans: changes.tsv, derivatives/changes.")
    return 0


def _cohort(options: argparse.Namespace) -> GadCohort | AgeingCohort:
    from lesioncount_reproduction.synthetic import AgeingCohort, GadCohort

    given = {"n_sessions": options.sessions, "misregistration_mm": options.misregistration}
    given = {name: value for name, value in given.items() if value is not None}
    if options.ageing:
        return AgeingCohort(options.patients, options.seed, tuple(options.shape), **given)
    if given:
        raise CohortError("Expected --sessions and --misregistration together with --ageing only. Add --ageing.")
    return GadCohort(options.patients, options.seed, tuple(options.shape))


def _tell(scan: str, done: int, total: int) -> None:
    if done == total or done % max(1, total // _LINES) == 0:
        print(f"{done}/{total} {scan}", file=sys.stderr, flush=True)

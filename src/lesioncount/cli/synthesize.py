"""``lesioncount synthesize``: a seed → a folder of scans to learn from."""

from __future__ import annotations

import argparse
import sys

from lesioncount.cli.arguments import at_least_one, named_path, processes

# Lines of progress that a run prints.
_LINES = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.set_defaults(run=run)
    parser.epilog = (
        "Each patient has one to three scans, each with five sequences, masks of the brain and of enhancing lesions, "
        "and a count. The same seed gives the same scans on every machine."
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
    parser.add_argument("-j", "--jobs", type=processes, default=1, metavar="N", help="number of processes (default: 1)")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    parser.add_argument("--debug", action="store_true", help="show where an error came from")


def run(options: argparse.Namespace) -> int:
    """Make and write the scans, and print what was written."""
    from lesioncount.learning.cohort_files import write_cohort
    from lesioncount.paper.synthetic import GadCohort

    cohort = GadCohort(options.patients, options.seed, tuple(options.shape))
    write_cohort(options.output, cohort, jobs=options.jobs, progress=None if options.quiet else _tell)
    if not options.quiet:
        parts = ", ".join(f"{len(cohort.split(name))} {name}" for name in ("train", "val", "test"))
        print(f"{len(cohort)} scans of {options.patients} patients ({parts}) are in {options.output}.")
        print("Counts: scans.tsv. Patients and their splits: participants.tsv. Masks: derivatives/masks.")
    return 0


def _tell(scan: str, done: int, total: int) -> None:
    if done == total or done % max(1, total // _LINES) == 0:
        print(f"{done}/{total} {scan}", file=sys.stderr, flush=True)

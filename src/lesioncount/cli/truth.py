"""Options that ``evaluate`` and ``calibrate`` share: where the truth is."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lesioncount.cli.map_arguments import named_path

if TYPE_CHECKING:
    from lesioncount.assess.beside_truth import TruthOptions


# In place of a folder: the reviews are in that of the results.
IN_RESULTS = Path()


def add_truth_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the truth is."""
    truth = parser.add_argument_group("the truth")
    truth.add_argument(
        "--truth",
        type=named_path,
        metavar="FOLDER|PATTERN",
        help="masks by experts: a folder, in which they have the names or BIDS entities of the maps, or a pattern such "
        "as 'masks/{participant}_{session}_mask.nii.gz'",
    )
    truth.add_argument(
        "--truth-counts",
        type=named_path,
        metavar="FILE",
        help="table (.tsv, .csv) with a count per scan; with --truth, masks are for lesions and the table for counts",
    )
    lesions = truth.add_mutually_exclusive_group()
    lesions.add_argument("--truth-label", type=int, metavar="N", help="value of lesions in the masks")
    lesions.add_argument(
        "--truth-instances",
        action="store_true",
        help="each value of the masks is a lesion of its own (default: connected regions are lesions)",
    )
    truth.add_argument(
        "--truth-suffix",
        default="",
        metavar="TEXT",
        help="what the name of a mask adds to that of its map, or has in place of its last part, such as "
        "_label-lesion_mask",
    )
    truth.add_argument(
        "--scan-column",
        default="scan",
        metavar="NAME",
        help="column of the table with the names of scans (default: scan)",
    )
    truth.add_argument(
        "--count-column", default="count", metavar="NAME", help="column of the table with the counts (default: count)"
    )
    truth.add_argument(
        "--group-by",
        metavar="COLUMN|PATTERN",
        help="which scans belong together, such as those of a patient: a column of the table, participant_id, or a "
        "regular expression that finds the patient in the name of a scan",
    )
    truth.add_argument(
        "--reviews",
        nargs="?",
        const=IN_RESULTS,
        type=named_path,
        metavar="FOLDER",
        help="scans that were reviewed completely are the truth, and the others are left out; the folder is that of "
        "the results that were reviewed (default: RESULTS)",
    )
    truth.add_argument("--reader", metavar="NAME", help="whose reviews (default: the only reader there is)")
    truth.add_argument(
        "--of",
        choices=("new", "gone", "persisting"),
        help="of the results of lesioncount compare: which lesions the truth is about (default: new)",
    )
    truth.add_argument("--skip-missing", action="store_true", help="leave out scans without truth")


def truth_options(options: argparse.Namespace) -> TruthOptions:
    """The options about the truth, as one object."""
    from lesioncount.assess.beside_truth import TruthOptions

    return TruthOptions(
        masks=options.truth,
        table=options.truth_counts,
        label=options.truth_label,
        instances=options.truth_instances,
        suffix=options.truth_suffix,
        scan_column=options.scan_column,
        count_column=options.count_column,
        group_by=options.group_by,
        skip_missing=options.skip_missing,
        reviews=options.results if options.reviews is IN_RESULTS else options.reviews,
        reader=options.reader,
    )

"""Options that ``evaluate``, ``calibrate`` and ``summarize`` share: which results, and where the truth is."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lesioncount.cli.options import SUFFIX, Option, add_group, add_options, add_paths, given

if TYPE_CHECKING:
    from lesioncount.assess.beside_truth import TruthOptions
    from lesioncount.assess.known_counts import Learned


# In place of a folder: the reviews are in that of the results.
IN_RESULTS = Path()

_WHERE: dict[str, Option] = {
    "--truth FOLDER|PATTERN": (
        "masks by experts: a folder, in which they have the names or BIDS entities of the maps, or a pattern such as "
        "'masks/{participant}_{session}_mask.nii.gz'; of several readers, one each",
        {"nargs": "+", "action": "extend"},
    ),
    "--truth-counts FILE": "table (.tsv, .csv) with a count per scan, or with those of several readers (columns scan, "
    "reader1, reader2, or rows of scan, reader, count); with --truth, masks are for lesions and the table for counts",
}

KNOWN: dict[str, Option] = {
    "--known TABLE|FOLDER|PATTERN": (
        "learn from counts that are known for some of the maps: a table of counts, or masks by experts. Regions and "
        "peaks are tried and calibrated; what counts held-out scans better corrects all. May be repeated: a folder of "
        "masks per reader",
        {"action": "append"},
    ),
}

_LESIONS: dict[str, Option] = {
    "--truth-label N": "value of lesions in the masks",
    "--truth-instances": "each value of the masks is a lesion of its own (default: connected regions are lesions)",
}

_WHICH: dict[str, Option] = {
    "--truth-suffix TEXT": (SUFFIX.format("a mask, or a name in the table,", "_label-lesion_mask"), {"default": ""}),
    "--scan-column NAME": "column of the table with the names of scans (default: the one that names most of them)",
    "--count-column NAME": "column of the table with the counts (default: count, those of readers, or the only one of "
    "whole numbers); of several readers A,B",
    "--group-by COLUMN|PATTERN": "which scans belong together, such as those of a patient: a column of the table, "
    "participant_id, or a regular expression that finds the patient in the name of a scan",
    "--reviews FOLDER": (
        "scans that were reviewed completely are the truth, and the others are left out; the folder is that of the "
        "results that were reviewed (default: RESULTS)",
        {"nargs": "?", "const": IN_RESULTS},
    ),
    "--reader NAME": "whose reviews (default: the only reader there is)",
    "--of {new,gone,persisting}": "of the results of lesioncount compare: which lesions the truth is about (default: "
    "new)",
    "--skip-missing": "leave out scans without truth",
}


# Of those that `evaluate` and `calibrate` share, what is on the first screen of help.
FIRST_OF_TRUTH = (
    *("output", "truth", "truth_counts", "truth_label", "truth_instances", "truth_suffix", "scan_column"),
    *("count_column", "group_by", "reviews", "of", "skip_missing"),
)


def add_results(parser: argparse.ArgumentParser, wrote: str = "count or compare wrote", **more: Any) -> None:
    """Add the folder of results."""
    add_paths(parser, "results", f"folder that lesioncount {wrote}", **more)


def add_truth_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the truth is."""
    truth = add_group(parser, "the truth", _WHERE)
    add_options(truth.add_mutually_exclusive_group(), _LESIONS)
    add_options(truth, _WHICH)


def add_known_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how known counts are read."""
    known = add_group(parser, "known counts, for --known, and columns for --reads", {})
    add_options(known.add_mutually_exclusive_group(), _LESIONS)
    names = ("--truth-suffix", "--scan-column", "--count-column", "--group-by")
    add_options(known, {written: of for written, of in _WHICH.items() if written.startswith(names)})


def known_options(options: argparse.Namespace) -> TruthOptions:
    """Where counts are known, as one object."""
    from lesioncount.assess.beside_truth import TruthOptions

    drawn = {"label": options.truth_label, "instances": options.truth_instances, "suffix": options.truth_suffix}
    return TruthOptions.known(*options.known, **drawn, **given(options, "scan_column", "count_column", "group_by"))


def print_learned(learned: Learned | None, path: Path) -> None:
    """Say what known counts have taught, and how well; nothing where there are none."""
    if learned is None:
        return
    for note in learned.notes:
        print(f"note: {note}")
    print(learned.choice.verdict)
    if learned.choice.kind == "mixture":
        print(f"Your {len(learned.counts)} counts do not tell regions from peaks: each counts half.")
    print(f"Calibration: {path}. For new maps: lesioncount count NEW -o OUT --calibration {shlex.quote(str(path))}")


def truth_options(options: argparse.Namespace, results: Path) -> TruthOptions:
    """The options about the truth of a folder of results, as one object."""
    from lesioncount.assess.beside_truth import TruthOptions

    return TruthOptions(
        masks=tuple(options.truth or ()),
        table=options.truth_counts,
        label=options.truth_label,
        instances=options.truth_instances,
        suffix=options.truth_suffix,
        reviews=results if options.reviews is IN_RESULTS else options.reviews,
        **given(options, "scan_column", "count_column", "group_by", "skip_missing", "reader"),
    )


def why_no_page(options: argparse.Namespace, page: str) -> str:
    """What is missing to write a page, which is said before anything else; empty if nothing is."""
    from lesioncount.errors import MissingExtraError
    from lesioncount.report import check_can_report

    try:
        check_can_report()
    except MissingExtraError as error:
        if not options.quiet:
            print(f"note: There will be no {page}. {error}", file=sys.stderr)
        return str(error)
    return ""

"""The options of ``lesioncount compare``."""

from __future__ import annotations

import argparse

from lesioncount.changes.coupling import DEFAULT_COUPLING
from lesioncount.cli.arguments import add_run, named_path
from lesioncount.cli.map_arguments import SUFFIX, add_definition, add_reading, add_whose
from lesioncount.cli.region_arguments import add_ask


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add them to the parser of the command."""
    parser.epilog = (
        "Writes changes.tsv, lineages.tsv, run.json and one JSON file per patient, answers.tsv where something is "
        "asked, and a line of runs.jsonl. Maps must be registered to each other. Exit code: 0 if all patients were "
        "compared, 1 if some failed, 2 if nothing could be done, 130 if interrupted. Research software: no diagnosis."
    )
    parser.add_argument(
        "inputs",
        nargs="*",
        metavar="MAPS",
        help="BASELINE FOLLOWUP, folders or files, and more for later times; or one folder with sessions of "
        "participants, as BIDS has them",
    )
    parser.add_argument(
        "-o", "--output", required=True, type=named_path, metavar="FOLDER", help="folder for the results"
    )
    _add_pairing(parser)
    _add_coupling(parser)
    add_definition(parser)
    add_reading(parser)
    add_whose(parser)
    work = add_run(parser, "compare", workers="a patient each")
    work.add_argument(
        "--save-labels",
        action="store_true",
        help="also write label maps: PATIENT__SESSION_lineages.nii.gz, in which a lesion has the same number in all "
        "sessions, and PAIR_changes.nii.gz (1 new, 2 persisting, 3 gone)",
    )
    work.add_argument(
        "--report",
        action="store_true",
        help="also write changes.html, with both scans side by side: one page, or of more than 40 patients a page with "
        "the folder changes/ beside it",
    )
    work.add_argument(
        "--images",
        type=named_path,
        metavar="FOLDER|PATTERN",
        help="show candidates on these images: a folder, in which they have the names or BIDS entities of the maps, or "
        "a pattern such as 'flair/{participant}_{session}_FLAIR.nii.gz' or 'flair/{folder}/{name}.nii.gz'",
    )
    work.add_argument("--images-suffix", default="", metavar="TEXT", help=SUFFIX.format("an image", "_FLAIR"))
    work.add_argument("--quiet", action="store_true", help="print errors only")
    work.add_argument("--debug", action="store_true", help="show where an error came from")


def _add_pairing(parser: argparse.ArgumentParser) -> None:
    pairing = parser.add_argument_group("which maps belong together")
    pairing.add_argument(
        "--pairs",
        type=named_path,
        metavar="TABLE",
        help="a table (.tsv, .csv) with the columns baseline and followup, paths of maps, and perhaps participant_id",
    )
    pairing.add_argument(
        "--sessions",
        nargs="+",
        metavar="SESSION",
        help="compare these sessions of one folder, in this order (default: all, in the order of their numbers)",
    )


def _add_coupling(parser: argparse.ArgumentParser) -> None:
    when = parser.add_argument_group("what is new")
    when.add_argument(
        "--tolerance-mm",
        type=float,
        metavar="D",
        help="search the other map this far around each voxel of a candidate (default: 2, or a voxel if that is more)",
    )
    when.add_argument(
        "--coupling",
        type=float,
        default=DEFAULT_COUPLING,
        metavar="C",
        help="how the doubts about a place at both times go together: 0 independent, 1 the same, above 1 a faint sign "
        f"at the other time counts for more (default: {DEFAULT_COUPLING:g}; a calibration brings its own)",
    )
    when.add_argument(
        "--calibration",
        action="append",
        type=named_path,
        metavar="FILE",
        help="correct the numbers with this calibration of new, gone or persisting lesions, made by lesioncount "
        "calibrate; repeat the option for each of them",
    )
    when.add_argument(
        "--interval",
        choices=("distribution", "conformal"),
        default="distribution",
        help="conformal: add a 90 %% interval that is guaranteed for pairs like those used for the calibration",
    )
    add_ask(
        when,
        "the probability that this is so, such as 'new >= 1' or 'new > gone': about new, gone and persisting lesions, "
        "and count, those of the later map. May be repeated",
    )

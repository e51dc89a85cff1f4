"""The options of ``lesioncount count`` and ``lesioncount compare``."""

from __future__ import annotations

import argparse

from lesioncount.changes.coupling import DEFAULT_COUPLING
from lesioncount.cli import region_arguments
from lesioncount.cli.map_arguments import LEVEL, SUFFIX, add_definition, add_reading, add_run, add_whose, named_path
from lesioncount.cli.region_arguments import add_ask


def add_count_arguments(parser: argparse.ArgumentParser) -> None:
    """Add them to the parser of the command."""
    parser.epilog = (
        "Writes counts.tsv, lesions.tsv, run.json and one JSON file per scan, regions.tsv and answers.tsv where "
        "these are asked for, and a line of runs.jsonl. Exit code: 0 if all scans were counted, 1 if some failed, 2 if "
        "nothing could be done, 130 if interrupted."
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="MAP",
        help="probability maps: files, folders, glob patterns, or addresses (s3://, gs://, https://)",
    )
    parser.add_argument(
        "-o", "--output", required=True, type=named_path, metavar="FOLDER", help="folder for the results"
    )

    add_definition(parser)

    region_arguments.add_to(parser)

    trust = parser.add_argument_group("how far to trust the maps")
    trust.add_argument(
        "--calibration",
        type=named_path,
        metavar="FILE",
        help="correct the counts with this calibration, made by lesioncount calibrate",
    )
    trust.add_argument(
        "--interval",
        choices=("distribution", "conformal"),
        default="distribution",
        help="conformal: add a 90 %% interval that is guaranteed for scans like those used for the calibration",
    )
    trust.add_argument(
        "--reviews",
        type=named_path,
        metavar="FOLDER",
        help="results that were reviewed (lesioncount review): candidates that were decided there count as decided, in "
        "reviewed_counts.tsv",
    )
    trust.add_argument("--reader", metavar="NAME", help="whose reviews (default: the only reader there is)")
    trust.add_argument(
        "--members",
        action="store_true",
        help="treat each input folder as one member of an ensemble (folds, MC dropout, test-time augmentation) and "
        "combine the counts of maps in the same place, or with the same BIDS entities",
    )

    add_reading(parser).add_argument("--level", type=int, metavar="N", help=LEVEL)
    add_whose(parser)

    work = add_run(parser, "count", workers="a scan each, or parts of one large zarr volume")
    work.add_argument(
        "--save-labels",
        action="store_true",
        help="also write the candidates as label maps, SCAN_lesions.nii.gz (of large zarr volumes SCAN_lesions.zarr, "
        "of OME-Zarr images also SCAN_lesions.ome.zarr)",
    )
    work.add_argument(
        "--save-existence",
        action="store_true",
        help="also write maps in which each candidate has its existence, SCAN_existence.nii.gz",
    )
    work.add_argument(
        "--save-colours",
        action="store_true",
        help="also write label maps with colour tables for ITK-SNAP, 3D Slicer and FSLeyes, SCAN_lesions.*",
    )
    work.add_argument(
        "--bids",
        action="store_true",
        help="also write the candidates as a BIDS derivative: sub-…/anat/…_dseg.nii.gz, …_probseg.nii.gz and tables",
    )
    work.add_argument(
        "--report",
        action="store_true",
        help="also write report.html: one page, or of more than 40 scans a page with the folder report/ beside it",
    )
    work.add_argument(
        "--images",
        type=named_path,
        metavar="FOLDER|PATTERN",
        help="show candidates in the report on these images: a folder, in which they have the names or BIDS entities "
        "of the maps, or a pattern such as 'flair/{participant}_{session}_FLAIR.nii.gz'",
    )
    work.add_argument("--images-suffix", default="", metavar="TEXT", help=SUFFIX.format("an image", "_FLAIR"))
    _add_dicom_arguments(parser)
    work.add_argument("--quiet", action="store_true", help="print errors only")
    work.add_argument("--debug", action="store_true", help="show where an error came from")


def _add_dicom_arguments(parser: argparse.ArgumentParser) -> None:
    dicom = parser.add_argument_group("results as DICOM (needs lesioncount[dicom])")
    dicom.add_argument(
        "--dicom",
        action="store_true",
        help="also write the candidates as a segmentation, SCAN_seg.dcm, and the count as a report, SCAN_sr.dcm",
    )
    dicom.add_argument(
        "--dicom-series",
        type=named_path,
        metavar="FOLDER|PATTERN",
        help="the images that the map was made from; for several maps, a folder with a folder of the name of each, or "
        "a pattern such as 'dicom/{participant}/{session}'. Not needed for DICOM maps. Turns --dicom on",
    )
    dicom.add_argument(
        "--dicom-type",
        choices=("labelmap", "binary"),
        help="of the segmentation; binary is for older viewers (default: labelmap). Turns --dicom on",
    )


def add_compare_arguments(parser: argparse.ArgumentParser) -> None:
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

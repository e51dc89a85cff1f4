"""The options of ``lesioncount count``."""

from __future__ import annotations

import argparse
import math
from fractions import Fraction

from lesioncount.cli import region_arguments
from lesioncount.cli.arguments import named_path, processes
from lesioncount.protocol import PROTOCOLS

# What options say that are for names that differ in their ends.
_SUFFIX = "what the name of {} adds to that of its map, or has in place of its last part, such as {}"

# More digits than any number has that is meant.
_LONGEST_NUMBER = 100


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add them to the parser of the command."""
    parser.epilog = (
        "Writes counts.tsv, lesions.tsv, run.json and one JSON file per scan, and regions.tsv and answers.tsv where "
        "these are asked for. Exit code: 0 if all scans were counted, 1 if some failed, 2 if nothing could be done, "
        "130 if interrupted."
    )
    parser.add_argument("inputs", nargs="+", metavar="MAP", help="probability maps: files, folders or glob patterns")
    parser.add_argument(
        "-o", "--output", required=True, type=named_path, metavar="FOLDER", help="folder for the results"
    )

    protocol = parser.add_argument_group("what counts as one lesion")
    names = ", ".join(PROTOCOLS)
    protocol.add_argument(
        "--protocol",
        default="paper",
        metavar="NAME|FILE",
        help=f"a named protocol ({names}) or a JSON file (default: paper)",
    )
    protocol.add_argument(
        "--threshold", type=float, metavar="T", help="keep voxels with a probability above T (default: 0.1)"
    )
    protocol.add_argument(
        "--connectivity",
        metavar="C",
        help="which voxels touch: 6, 18, 26, 4, 8, faces, edges or corners (default: edges)",
    )
    protocol.add_argument("--min-voxels", type=int, metavar="N", help="drop candidates with fewer than N voxels")
    protocol.add_argument(
        "--min-volume-mm3", type=float, metavar="V", help="drop candidates smaller than V cubic millimetres"
    )
    protocol.add_argument(
        "--min-diameter-mm", type=float, metavar="D", help="drop candidates smaller than a ball of diameter D"
    )
    protocol.add_argument(
        "--min-length-mm", type=float, metavar="L", help="drop candidates shorter than L along every axis"
    )
    protocol.add_argument(
        "--candidates",
        choices=("regions", "peaks"),
        help="count each region above the threshold, or each peak in it, which keeps lesions apart that touch "
        "(default: regions)",
    )
    protocol.add_argument(
        "--min-persistence",
        type=float,
        metavar="P",
        help="join peaks that stand out by less than P with others",
    )
    protocol.add_argument(
        "--mask",
        type=named_path,
        metavar="FILE|FOLDER|PATTERN",
        help="count only inside this mask; in a folder, the mask of the same name or BIDS entities as the map; a "
        "pattern is such as 'masks/{participant}_{session}.nii.gz'",
    )
    protocol.add_argument("--mask-suffix", default="", metavar="TEXT", help=_SUFFIX.format("a mask", "_brain"))

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

    maps = parser.add_argument_group("what is in the maps")
    maps.add_argument(
        "--channel",
        type=int,
        metavar="N",
        help="which channel to count in files with several, starting at 0 (nnU-Net: 1 is the first label)",
    )
    maps.add_argument("--logits", action="store_true", help="the maps contain logits, not probabilities")
    maps.add_argument(
        "--scale",
        type=_scale,
        metavar="S",
        help="multiply stored values by S to get probabilities: 1/255 for bytes, 0.01 for percent",
    )

    whose = parser.add_argument_group("whose scans they are")
    whose.add_argument(
        "--suffix",
        metavar="TEXT",
        help="in folders, count only maps whose names end like this, such as _prob (default: in BIDS datasets "
        "_probseg, elsewhere all)",
    )
    whose.add_argument(
        "--name-pattern",
        metavar="PATTERN",
        help="a regular expression with groups (?P<participant>…) and (?P<session>…), searched for in the path of a "
        "map below the folder (default: sub-… and ses-… of BIDS names and folders)",
    )
    whose.add_argument(
        "--root",
        type=named_path,
        metavar="FOLDER",
        help="names of scans are paths below this folder (default: the folder given, or the innermost one that holds "
        "all inputs)",
    )

    work = parser.add_argument_group("the run")
    work.add_argument("-j", "--jobs", type=processes, default=1, metavar="N", help="number of processes (default: 1)")
    work.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run on a Dask cluster; the address of its scheduler, such as tcp://host:8786",
    )
    again = work.add_mutually_exclusive_group()
    again.add_argument(
        "--resume",
        action="store_true",
        help="continue an earlier run: keep results that are still valid, count the rest",
    )
    again.add_argument("--overwrite", action="store_true", help="count everything again and replace earlier results")
    work.add_argument(
        "--save-labels", action="store_true", help="also write the candidates as label maps, SCAN_lesions.nii.gz"
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
    work.add_argument("--images-suffix", default="", metavar="TEXT", help=_SUFFIX.format("an image", "_FLAIR"))
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


def _scale(text: str) -> float:
    try:
        # A decimal with a large exponent is not for Fraction, which would write out all its digits.
        scale = float(Fraction(text[:_LONGEST_NUMBER]) if "/" in text else text)
    except (ValueError, ZeroDivisionError, OverflowError):
        scale = math.nan
    if not math.isfinite(scale) or len(text) > _LONGEST_NUMBER:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number such as 0.01 or 1/255")
    return scale

"""Options about maps: what counts as one lesion, what is in the files, whose they are."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lesioncount.cli.options import (
    NUMBER,
    REPEATED,
    SUFFIX,
    Option,
    Options,
    add_group,
    add_jobs,
    add_options,
    at_least_one,
    given,
)
from lesioncount.errors import ProtocolError, reason_of
from lesioncount.protocol import PROTOCOLS, CountingProtocol

if TYPE_CHECKING:
    from lesioncount.files.detections import Reading
    from lesioncount.questions import Question
    from lesioncount.runs import Selection
    from lesioncount.trust.fitting import CalibrationFit

LEVEL = "which resolution of OME-Zarr images, where 0 is the finest (default: 0)"
INTERVAL = "conformal: add a 90 %% interval that is guaranteed for {} like those used for the calibration"
IMAGES_SUFFIX: Option = (SUFFIX.format("an image", "_FLAIR"), {"default": ""})

# More digits than any number has that is meant.
_LONGEST_NUMBER = 100


def scale(text: str) -> float:
    """A factor, which may be a fraction."""
    from fractions import Fraction

    try:
        # A decimal with a large exponent is not for Fraction, which would write out all its digits.
        factor = float(Fraction(text[:_LONGEST_NUMBER]) if "/" in text else text)
    except (ValueError, ZeroDivisionError, OverflowError):
        factor = math.nan
    if not math.isfinite(factor) or len(text) > _LONGEST_NUMBER:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number such as 0.01 or 1/255")
    return factor


def smallest_sizes(text: str) -> dict[str, float]:
    """Smallest sizes with their units, as fields of a protocol: ``3mm3`` is ``{"min_volume_mm3": 3.0}``."""
    sizes: dict[str, float] = {}
    for one in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(\S+)\s*", one, re.ASCII)
        field = None if found is None else _UNITS.get(found[2].lower())
        if found is None or field is None or (field == "min_voxels" and "." in found[1]):
            raise argparse.ArgumentTypeError(f"{one[:40]!r} is not a size such as 3vox, 3mm3 or 3mm")
        sizes[field] = int(found[1]) if field == "min_voxels" else float(found[1])
    return sizes


# What the sizes of `--min-size` mean.
_UNITS = {
    **dict.fromkeys(("vox", "voxel", "voxels", "px"), "min_voxels"),
    **dict.fromkeys(("mm3", "mm³", "mm^3"), "min_volume_mm3"),
    "mm": "min_length_mm",
}

_DEFINITION: dict[str, Option] = {
    "--protocol NAME|FILE": (
        f"a named protocol ({', '.join(PROTOCOLS)}) or a JSON file (default: that of the calibration, or paper; of "
        "tables detections)",
        {},
    ),
    "--threshold T": ("keep voxels with a probability above T (default: 0.1); of tables, scores (default: 0)", NUMBER),
    "--connectivity C": "which voxels touch: 6, 18, 26, 4, 8, faces, edges or corners (default: edges)",
    "--min-size SIZE": (
        "drop smaller candidates: 3vox (voxels), 3mm3 (volume) or 3mm (length of the longest side); several are "
        "separated by commas",
        {"type": smallest_sizes, "default": {}},
    ),
    "--candidates {regions,peaks}": "count each region above the threshold, or each peak in it, which keeps lesions "
    "apart that touch (default: regions)",
    "--min-persistence P": ("join peaks that stand out by less than P with others", NUMBER),
    "--mask FILE|FOLDER|PATTERN": "count only inside this mask; in a folder, the mask of the same name or BIDS "
    "entities as the map; a pattern is such as 'masks/{participant}_{session}.nii.gz'",
    "--mask-suffix TEXT": (SUFFIX.format("a mask", "_brain"), {"default": ""}),
}

_INSTANCES = ("instances", "instances_scores")

_DETECTIONS: dict[str, Option] = {
    "--scans TABLE": "all scans, in the column scan: those that are not in the table of detections have none",
    "--format {csv,luna16,coco,monai,nndetection,geojson,yolo}": "what the table is, where its content does not tell",
    "--columns NAMES": "what columns are called: scan=seriesuid,score=probability,x=coordX,y=coordY,z=coordZ; also "
    "class, diameter, width, height, depth, and xmin to zmax",
    "--class NAME": ("count this class only. May be repeated", {**REPEATED, "dest": "classes"}),
    "--coordinates {ras,lps,pixels}": "what places are: millimetres to the right, front and top; to the left, back and "
    "top, as in ITK and DICOM; or pixels",
    "--spacing SIZES": "how large a pixel is, in millimetres along x, y (and z): 0.5,0.5",
    "--instances FOLDER|PATTERN": "of maps: label images of what is one candidate each; its existence is the highest "
    "value of the map in it",
    "--instances-scores TABLE": "the maps are label images, and this table has the columns label and score (and scan)",
    "--merge-within MM": (
        "of detections that lie nearer to each other, count the one with the highest score (default: half the smallest "
        "size that counts, else 5)",
        {**NUMBER, "dest": "merge_within_mm"},
    ),
}

READING: dict[str, Option] = {
    "--channel N": "which channel to count in files with several, starting at 0 (nnU-Net: 1 is the first label)",
    "--logits": "the maps contain logits, not probabilities",
    "--scale S": (
        "multiply stored values by S to get probabilities: 1/255 for bytes, 0.01 for percent",
        {"type": scale},
    ),
}

_WHOSE: dict[str, Option] = {
    "--suffix TEXT": "in folders, count only maps whose names end like this, such as _prob (default: in BIDS datasets "
    "_probseg, elsewhere all)",
    "--name-pattern PATTERN": "a regular expression with groups (?P<participant>…) and (?P<session>…), searched for in "
    "the path of a map below the folder (default: sub-… and ses-… of BIDS names and folders)",
    "--root FOLDER": "names of scans are paths below this folder (default: the folder given, or the innermost one that "
    "holds all inputs)",
}


def add_maps(parser: argparse.ArgumentParser, reading: Mapping[str, Option] | None = None) -> None:
    """Add what says what is in the files, with more options about that if there are any, and whose scans they are."""
    add_group(parser, "what is in the maps", READING | dict(reading or {}))
    add_group(parser, "what is in the table, if it is one of detections", _DETECTIONS)
    add_group(parser, "whose scans they are", _WHOSE)


def add_definition(parser: argparse.ArgumentParser) -> None:
    """Add what says what counts as one lesion, and where."""
    add_group(parser, "what counts as one lesion", _DEFINITION)


def add_run(parser: argparse.ArgumentParser, verb: str, *, workers: str) -> Options:
    """Add how a run is done, and what it does with an earlier one in its folder."""
    work = parser.add_argument_group("the run")
    add_jobs(work)
    where = "run on a Dask cluster; the address of its scheduler, such as tcp://host:8786. Its workers"
    patience = "how long to wait for a cluster that has lost all its workers (default: 300)"
    limit: Option = (patience, {"type": at_least_one})
    add_options(work, {"--cluster ADDRESS": f"{where} {verb} {workers}", "--cluster-timeout SECONDS": limit})
    again = {
        "--resume": f"continue an earlier run with the same settings: keep results that are still valid, {verb} the "
        "rest",
        "--overwrite": f"{verb} everything again and replace earlier results",
    }
    add_options(work.add_mutually_exclusive_group(), again)
    return work


def add_written(to: Options, outputs: Mapping[str, str]) -> None:
    """Add the choice of what else is written, by the names of outputs and what they are."""

    def chosen(text: str) -> list[str]:
        wanted = [name.strip() for name in text.split(",")]
        wrong = [name for name in wanted if name not in outputs]
        if wrong:
            raise argparse.ArgumentTypeError(f"{wrong[0]!r} cannot be written. There are {', '.join(outputs)}")
        return wanted

    each = "; ".join(f"{name} ({what})" for name, what in outputs.items())
    more: dict[str, Any] = {"type": chosen, "action": "extend", "default": []}
    csv = "also write each table for Excel, with commas between cells, or with semicolons and decimal commas"
    written = f"what else to write, separated by commas: {each}"
    add_options(to, {"--write NAMES": (written, more), "--csv {comma,semicolon}": csv})


def protocol_of(options: argparse.Namespace, default: CountingProtocol | None = None) -> CountingProtocol:
    """The protocol that options name, or a default, with the fields that they change."""
    has_instances = options.instances is not None or options.instances_scores is not None
    name: str | None = options.protocol
    if name is None and default is None and (has_instances or _of_tables(options)):
        name = "detections"
    if name is None:
        base = CountingProtocol() if default is None else default
    elif name not in PROTOCOLS and (name.endswith(".json") or "/" in name):
        try:
            base = CountingProtocol.from_json(Path(name).read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ProtocolError(f"The protocol {name} cannot be read: {reason_of(error)}.") from None
    else:
        base = CountingProtocol.named(name)
    every = {field.name: getattr(options, field.name, None) for field in fields(CountingProtocol)}
    changes = {key: value for key, value in every.items() if value is not None} | options.min_size
    if has_instances:  # what is given as two is never one
        changes.setdefault("merge_within_mm", 0.0)
    if str(changes.get("connectivity", "")).isdecimal():
        changes["connectivity"] = int(changes["connectivity"])
    return CountingProtocol.from_dict(base.to_dict() | changes)


def _of_tables(options: argparse.Namespace) -> bool:
    """Whether tables of detections are given."""
    from lesioncount.cohort.detections import are_tables

    return are_tables(options.inputs if hasattr(options, "inputs") else options.results, options.format)


def spacing_of(options: argparse.Namespace) -> tuple[float, ...] | None:
    """The size of a pixel, in the order of indices."""
    from lesioncount.detections import checked_pixel

    return None if options.spacing is None else checked_pixel(options.spacing.replace("x", ",").split(","))


def reading_of(options: argparse.Namespace) -> Reading:
    """What is known of tables of detections."""
    from lesioncount.errors import MapFileError
    from lesioncount.files.detections import Reading

    pairs = [text.partition("=") for text in (options.columns or "").split(",") if text.strip()]
    if not all(role.strip() and sign and name.strip() for role, sign, name in pairs):
        raise MapFileError(f"Expected --columns scan=NAME,score=NAME, but got {options.columns!r:.100}.")
    columns = {role.strip(): name.strip() for role, _, name in pairs}
    known = given(options, "format", "coordinates", "scale", "logits")
    return Reading(columns=columns, classes=tuple(options.classes), **known)


def settings_of(options: argparse.Namespace, fits: Sequence[CalibrationFit] = ()) -> dict[str, Any]:
    """What both commands count with, as fields of their settings; what is not said is as calibrations have it."""
    known = next((fit.known_protocol for fit in fits if fit.known_protocol is not None), None)
    return {
        "protocol": protocol_of(options, known),
        "logits": options.logits or None,
        "conformal": options.interval == "conformal",
        "questions": questions_of(options.ask),
        "save_labels": bool({"labels", "colours"} & set(options.write)),
        **given(options, "channel", "scale"),
    }


def questions_of(texts: list[str]) -> tuple[Question, ...]:
    """What is asked, each question once."""
    from lesioncount.questions import Question

    asked = [Question.asked(text) for text in texts]
    # Criteria of two names may ask the same.
    return tuple({(question.name, question): question for question in asked}.values())


def selection_of(options: argparse.Namespace, *more: str) -> Selection:
    """Which files are maps, whose they are, and what belongs to them."""
    from lesioncount.runs import Selection

    names = ("suffix", "root", "name_pattern", "mask_suffix", "scans", *_INSTANCES, *more)
    return Selection(**given(options, *names), reading=reading_of(options))

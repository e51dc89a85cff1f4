"""The options of ``lesioncount count`` and ``lesioncount compare``."""

from __future__ import annotations

import argparse

from lesioncount.changes.coupling import DEFAULT_COUPLING
from lesioncount.cli.map_arguments import LEVEL, add_definition, add_maps, add_run
from lesioncount.cli.options import (
    NUMBER,
    REPEATED,
    SUFFIX,
    Option,
    add_group,
    add_options,
    add_output,
    add_quiet_and_debug,
)

_INTERVAL = "conformal: add a 90 %% interval that is guaranteed for {} like those used for the calibration"
_IMAGES_SUFFIX: Option = (SUFFIX.format("an image", "_FLAIR"), {"default": ""})

_REGIONS: dict[str, Option] = {
    "--regions FILE|FOLDER|PATTERN": "count in each region of this label map, too, on the grid of the maps; in a "
    "folder, that of the same name or BIDS entities as the map, or of the same participant; a pattern is such as "
    "'regions/{participant}_{session}_dseg.nii.gz'",
    "--region-names TABLE": "what labels are called: a table with the columns index and name, as dseg.tsv in BIDS "
    "(default: by their numbers)",
    "--regions-suffix TEXT": (SUFFIX.format("a label map", "_dseg"), {"default": ""}),
    "--within DISTANCE": (
        "a region of its own by distance: 'periventricular = ventricles <= 3mm' holds candidates of which any voxel "
        "comes so near. May be repeated",
        REPEATED,
    ),
    "--ask QUESTION": (
        "the probability that this is so, such as 'count >= 9' or 'periventricular >= 1 and juxtacortical >= 1', or "
        "the name of a criterion (lesioncount questions lists them). May be repeated",
        REPEATED,
    ),
}

_TRUST: dict[str, Option] = {
    "--calibration FILE": "correct the counts with this calibration, made by lesioncount calibrate",
    "--interval {distribution,conformal}": (_INTERVAL.format("scans"), {"default": "distribution"}),
    "--reviews FOLDER": "results that were reviewed (lesioncount review): candidates that were decided there count as "
    "decided, in reviewed_counts.tsv",
    "--reader NAME": "whose reviews (default: the only reader there is)",
    "--members": "treat each input folder as one member of an ensemble (folds, MC dropout, test-time augmentation) and "
    "combine the counts of maps in the same place, or with the same BIDS entities",
}

_COUNT_OUTPUTS: dict[str, Option] = {
    "--save-labels": "also write the candidates as label maps, SCAN_lesions.nii.gz (of large zarr volumes "
    "SCAN_lesions.zarr, of OME-Zarr images also SCAN_lesions.ome.zarr)",
    "--save-existence": "also write maps in which each candidate has its existence, SCAN_existence.nii.gz",
    "--save-colours": "also write label maps with colour tables for ITK-SNAP, 3D Slicer and FSLeyes, SCAN_lesions.*",
    "--bids": "also write the candidates as a BIDS derivative: sub-…/anat/…_dseg.nii.gz, …_probseg.nii.gz and tables",
    "--report": "also write report.html: one page, or of more than 40 scans a page with the folder report/ beside it",
    "--images FOLDER|PATTERN": "show candidates in the report on these images: a folder, in which they have the names "
    "or BIDS entities of the maps, or a pattern such as 'flair/{participant}_{session}_FLAIR.nii.gz'",
    "--images-suffix TEXT": _IMAGES_SUFFIX,
}

_DICOM: dict[str, Option] = {
    "--dicom": "also write the candidates as a segmentation, SCAN_seg.dcm, and the count as a report, SCAN_sr.dcm",
    "--dicom-series FOLDER|PATTERN": "the images that the map was made from; for several maps, a folder with a folder "
    "of the name of each, or a pattern such as 'dicom/{participant}/{session}'. Not needed for DICOM maps. Turns "
    "--dicom on",
    "--dicom-type {labelmap,binary}": "of the segmentation; binary is for older viewers (default: labelmap). Turns "
    "--dicom on",
}

_PAIRING: dict[str, Option] = {
    "--pairs TABLE": "a table (.tsv, .csv) with the columns baseline and followup, paths of maps, and perhaps "
    "participant_id",
    "--sessions SESSION": (
        "compare these sessions of one folder, in this order (default: all, in the order of their numbers)",
        {"nargs": "+"},
    ),
}

_CHANGES: dict[str, Option] = {
    "--tolerance-mm D": (
        "search the other map this far around each voxel of a candidate (default: 2, or a voxel if that is more)",
        NUMBER,
    ),
    "--coupling C": (
        "how the doubts about a place at both times go together: 0 independent, 1 the same, above 1 a faint sign at "
        f"the other time counts for more (default: {DEFAULT_COUPLING:g}; a calibration brings its own)",
        {"type": float, "default": DEFAULT_COUPLING},
    ),
    "--calibration FILE": (
        "correct the numbers with this calibration of new, gone or persisting lesions, made by lesioncount calibrate; "
        "repeat the option for each of them",
        {"action": "append"},
    ),
    "--interval {distribution,conformal}": (_INTERVAL.format("pairs"), {"default": "distribution"}),
    "--ask QUESTION": (
        "the probability that this is so, such as 'new >= 1' or 'new > gone': about new, gone and persisting lesions, "
        "and count, those of the later map. May be repeated",
        REPEATED,
    ),
}

_CHANGE_OUTPUTS: dict[str, Option] = {
    "--save-labels": "also write label maps: PATIENT__SESSION_lineages.nii.gz, in which a lesion has the same number "
    "in all sessions, and PAIR_changes.nii.gz (1 new, 2 persisting, 3 gone)",
    "--report": "also write changes.html, with both scans side by side: one page, or of more than 40 patients a page "
    "with the folder changes/ beside it",
    "--images FOLDER|PATTERN": "show candidates on these images: a folder, in which they have the names or BIDS "
    "entities of the maps, or a pattern such as 'flair/{participant}_{session}_FLAIR.nii.gz' or "
    "'flair/{folder}/{name}.nii.gz'",
    "--images-suffix TEXT": _IMAGES_SUFFIX,
}


def add_count_arguments(parser: argparse.ArgumentParser) -> None:
    """Add them to the parser of the command."""
    parser.epilog = (
        "Writes counts.tsv, lesions.tsv, run.json and one JSON file per scan, regions.tsv and answers.tsv where "
        "these are asked for, and a line of runs.jsonl. Exit code: 0 if all scans were counted, 1 if some failed, 2 if "
        "nothing could be done, 130 if interrupted."
    )
    maps = "probability maps: files, folders, glob patterns, or addresses (s3://, gs://, https://)"
    parser.add_argument("inputs", nargs="+", metavar="MAP", help=maps)
    add_output(parser, "FOLDER", "folder for the results")
    add_definition(parser)
    add_group(parser, "where lesions are, and what that means", _REGIONS)
    add_group(parser, "how far to trust the maps", _TRUST)
    add_maps(parser, {"--level N": LEVEL})
    work = add_run(parser, "count", workers="a scan each, or parts of one large zarr volume")
    add_options(work, _COUNT_OUTPUTS)
    add_group(parser, "results as DICOM (needs lesioncount[dicom])", _DICOM)
    add_quiet_and_debug(work)


def add_compare_arguments(parser: argparse.ArgumentParser) -> None:
    """Add them to the parser of the command."""
    parser.epilog = (
        "Writes changes.tsv, lineages.tsv, run.json and one JSON file per patient, answers.tsv where something is "
        "asked, and a line of runs.jsonl. Maps must be registered to each other. Exit code: 0 if all patients were "
        "compared, 1 if some failed, 2 if nothing could be done, 130 if interrupted. Research software: no diagnosis."
    )
    maps = (
        "BASELINE FOLLOWUP, folders or files, and more for later times; or one folder with sessions of participants, "
        "as BIDS has them"
    )
    parser.add_argument("inputs", nargs="*", metavar="MAPS", help=maps)
    add_output(parser, "FOLDER", "folder for the results")
    add_group(parser, "which maps belong together", _PAIRING)
    add_group(parser, "what is new", _CHANGES)
    add_definition(parser)
    add_maps(parser)
    work = add_run(parser, "compare", workers="a patient each")
    add_options(work, _CHANGE_OUTPUTS)
    add_quiet_and_debug(work)

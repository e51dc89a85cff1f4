"""What a BIDS derivative has besides the files of single scans: its description, its tables, and what to ignore."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from lesioncount.cohort.whose import label_of
from lesioncount.files.remote_path import is_elsewhere
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.plain import to_json
from lesioncount.folder.tables import to_tsv
from lesioncount.outputs.bids import SOURCE, bids_id
from lesioncount.results.results import RunResults
from lesioncount.version import __version__

# The version of BIDS whose rules the files follow.
_BIDS_VERSION = "1.10.0"

# Files of ours that are not of BIDS: tables and records that other commands of ours read.
_IGNORED = (
    "/*.json", "!/dataset_description.json", "!/participants.json", "!/probseg.json", "/counts.tsv",
    "/lesions.tsv", "/members.tsv", "/report.html", "/report/", "/records/", "/runs.jsonl", "/*_lesions.nii.gz",
    "*.html", "/figures/",
)  # fmt: skip

DATASET_FILES = (
    ".bidsignore", "README", "dataset_description.json", "participants.tsv", "participants.json", "probseg.json",
)  # fmt: skip

_README = """Lesion counts
=============

Made by lesioncount from probability maps. For each map, `*_seg-lesions_dseg.nii.gz` holds the candidates, each with
a number of its own, `*_dseg.tsv` says what is known of them, and `*_desc-existence_probseg.nii.gz` has in the voxels
of each candidate the probability that it is a lesion. `counts.tsv` has the counts of all scans, `lesions.tsv` their
candidates, and `run.json` how they were counted.
"""

_PARTICIPANTS = {
    "participant_id": {"Description": "Participant, as in the names of folders and files"},
    "source_id": {"Description": "Participant, as in the paths of the maps and in counts.tsv"},
}

_EXISTENCE = {
    "Description": "In the voxels of each candidate, the probability that it is a lesion; 0 elsewhere.",
    "SpatialReference": "orig",
}


def write_dataset(folder: OutputFolder, results: RunResults) -> None:
    """Write what describes the dataset, and its tables."""
    people = {scan.whose["participant_id"]: None for scan in results.scans if "participant_id" in scan.whose}
    rows = [{"participant_id": bids_id("sub", one), "source_id": one} for one in people]
    has_own = any(label_of(row["participant_id"]) != label_of(row["source_id"]) for row in rows)
    texts = {
        "README": _README,
        ".bidsignore": "\n".join(_IGNORED) + "\n",
        "dataset_description.json": to_json(_description(results)),
        "participants.tsv": to_tsv(["participant_id", *(["source_id"] if has_own else [])], rows),
        "participants.json": to_json(_PARTICIPANTS),
        "probseg.json": to_json(_EXISTENCE),
    }
    for name, text in texts.items():
        folder.write_text(name, text)


def _description(results: RunResults) -> dict[str, Any]:
    maker = {
        "Name": "lesioncount",
        "Version": __version__,
        "Description": f"Candidates and the distribution of their number; {results.protocol}",
    }
    content = {
        "Name": "Lesion counts",
        "BIDSVersion": _BIDS_VERSION,
        "DatasetType": "derivative",
        "GeneratedBy": [maker],
    }
    root = _root(results)
    return content if root is None else content | {"DatasetLinks": {SOURCE: root}}


def _root(results: RunResults) -> str | None:
    """The folder that the paths of maps begin at, seen from that of the results, so that both may be moved together."""
    for scan in results.scans:
        if scan.files is not None and scan.files.relative is not None and not is_elsewhere(Path(scan.files.path)):
            depth = len(PurePosixPath(scan.files.relative).parts)
            root = os.path.relpath(Path(scan.files.path).parents[depth - 1], results.out.absolute())
            return quote(Path(root).as_posix())
    return None

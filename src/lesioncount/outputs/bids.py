"""Results as a BIDS derivative: the files of each scan, and those of the dataset."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import numpy as np

from lesioncount.cohort.item import ScanFiles
from lesioncount.cohort.whose import Whose, label_of
from lesioncount.errors import MapFileError
from lesioncount.files.nifti import nifti_bytes
from lesioncount.files.remote_path import is_elsewhere
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.plain import cells, to_json
from lesioncount.folder.tables import filled_columns, to_tsv
from lesioncount.outputs.output import Keep, Output, check_not_large, lesions_of
from lesioncount.results.lesion_rows import LESION_COLUMNS, OPTIONAL_LESION_COLUMNS
from lesioncount.results.record import Record
from lesioncount.results.results import Results
from lesioncount.results.scan_count import ScanCount
from lesioncount.version import __version__

# Entities that the files of a scan take over from its map, in the order in which BIDS wants them.
_KEPT = ("acq", "ce", "rec", "run", "space")

# Of candidates in look-up tables, beside their number and name.
_COLUMNS = tuple(name for name in LESION_COLUMNS if name not in ("label", "member"))

# What the columns of look-up tables mean.
_MEANING = {
    "existence": "Probability that the candidate is a lesion",
    "existence_calibrated": "The same, corrected by a calibration",
    "n_voxels": "Number of voxels",
    "volume_mm3": "Volume in cubic millimetres",
    "bbox": "First index along each axis, then last index plus one",
    "equivalent_diameter_mm": "Diameter of the ball of the same volume in millimetres",
    "variance_share": "Share of the variance of the count",
    "peak_probability": "Probability of the voxel with the highest one",
    "region": "Region of the voxel with the highest probability",
    "within": "Regions by distance that any of its voxels lies in",
    "within_mm": "Distances of its nearest voxel from these, in millimetres",
    "on_list": "Whether it is on the list that was asked for: yes or no",
    "saddle_probability": "Probability at which it joins a higher candidate; 0 if it does not",
    **{f"peak_{axis}": f"Index {axis} of the voxel with the highest probability, from 0" for axis in "ijk"},
    **{f"saddle_{axis}": f"Index {axis} of the voxel at which it joins a higher candidate, from 0" for axis in "ijk"},
    **{f"peak_{axis}_mm": f"Position {axis} of that voxel in RAS millimetres" for axis in "xyz"},
    **{f"centroid_{axis}_mm": f"Mean position {axis} of the voxels in RAS millimetres" for axis in "xyz"},
}

# Files of scans: see `BidsPlace`.
_OF_SCAN = re.compile(
    r"sub-[^/]+/(ses-[^/]+/)?anat/[^/]+_(seg-lesions[^/]*_dseg|desc-[^/_]*existence_probseg)\.[a-z.]+"
)

# The version of BIDS whose rules the files follow.
_BIDS_VERSION = "1.10.0"

# Files of ours that are not of BIDS: tables and records that other commands of ours read.
_IGNORED = (
    "/*.json", "!/dataset_description.json", "!/participants.json", "!/probseg.json", "/counts.tsv",
    "/lesions.tsv", "/members.tsv", "/report.html", "/report/", "/records/", "/runs.jsonl", "/*_lesions.nii.gz",
    "*.html", "/figures/",
)  # fmt: skip

_DATASET = (
    ".bidsignore", "README", "dataset_description.json", "participants.tsv", "participants.json", "probseg.json",
)  # fmt: skip

_README = """Lesion counts
=============

Made by lesioncount from probability maps. For each map, `*_seg-lesions_dseg.nii.gz` holds the candidates, each with
a number of its own, `*_dseg.tsv` says what is known of them, and `*_desc-existence_probseg.nii.gz` has in the voxels
of each candidate the probability that it is a lesion. Where candidates are from a table of detections, there are no
images, and `*_dseg.tsv` has them alone. `counts.tsv` has the counts of all scans, `lesions.tsv` their
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

# The name of our dataset among those that files are said to come from.
SOURCE = "maps"


@dataclass(frozen=True)
class BidsPlace:
    """Where the files of a scan go, below the folder of results.

    Attributes
    ----------
    folder : str
        Such as ``sub-01/ses-02/anat``.
    base : str
        What all names begin with, such as ``sub-01_ses-02_run-1``.
    desc : str
        What tells maps of one visit apart, such as the name of the network; empty if nothing does.
    """

    folder: str
    base: str
    desc: str = ""

    @classmethod
    def of(cls, whose: Whose) -> BidsPlace:
        """The place of a scan of which the participant is known."""
        ids = bids_id("sub", whose.participant), bids_id("ses", whose.session)
        known = [one for one in ids if one]
        kept = [f"{key}-{_label(whose.entities[key])}" for key in _KEPT if whose.entities.get(key)]
        return cls("/".join([*known, "anat"]), "_".join([*known, *kept]), _label(whose.entities.get("desc")))

    @property
    def labels(self) -> str:
        """The label map, without its ending."""
        desc = f"_desc-{self.desc}" if self.desc else ""
        return f"{self.folder}/{self.base}_seg-lesions{desc}_dseg"

    @property
    def existence(self) -> str:
        """The map of existence probabilities, without its ending."""
        return f"{self.folder}/{self.base}_desc-{self.desc}existence_probseg"

    @property
    def files(self) -> tuple[str, ...]:
        """All files of the scan."""
        return (f"{self.existence}.nii.gz", *(f"{self.labels}{ending}" for ending in (".nii.gz", ".tsv", ".json")))


class Bids(Output):
    """The candidates of scans as a BIDS derivative: label maps, look-up tables, maps of existence, and the dataset."""

    keep = Keep(runs=True)

    @property
    def of_run(self) -> tuple[str, ...]:
        """What describes the dataset."""
        return _DATASET

    def checked(self, items: Sequence[ScanFiles]) -> Sequence[ScanFiles]:
        """Raise unless each scan has a place of its own: BIDS wants to know whose it is."""
        taken: dict[str, ScanFiles] = {}
        people: dict[str, str] = {}
        for scan in items:
            if scan.problem is None:
                _check_place(scan, taken, people)
        return items

    def names(self, item: ScanFiles) -> tuple[str, ...]:
        """All files of a scan whose participant is known."""
        files = BidsPlace.of(item.whose).files if bids_id("sub", item.whose.participant) else ()
        return tuple(name for name in files if not (item.tables and name.endswith(".nii.gz")))

    def write(self, folder: OutputFolder, item: ScanFiles, record: Record, found: ScanCount) -> None:
        """Write label map, look-up table, and a map of existence; of detections, the table alone."""
        check_not_large(found.source, "--write bids")
        place, candidates, grid = BidsPlace.of(item.whose), found.result.candidates, found.source.grid
        rows = [cells(lesion) for lesion in lesions_of(record)]
        columns = filled_columns(_COLUMNS, rows, optional=OPTIONAL_LESION_COLUMNS)
        named = ({"index": row["label"], "name": f"candidate {row['label']}", **row} for row in rows)
        files = {
            f"{place.labels}.tsv": to_tsv(("index", "name", *columns), named).encode(),
            f"{place.labels}.json": to_json(_sidecar(item, record, columns)).encode("utf-8", "backslashreplace"),
        }
        if not item.tables:
            labels = candidates.label_map(_smallest(len(candidates)))
            existence = candidates.existence_map([lesion.best_existence for lesion in lesions_of(record)])
            files[f"{place.labels}.nii.gz"] = nifti_bytes(labels, grid, intent="label")
            files[f"{place.existence}.nii.gz"] = nifti_bytes(existence, grid)
        folder.write_together(files)

    def finish(self, folder: OutputFolder, results: Results, written: Collection[str]) -> None:
        """Write what describes the dataset, and its tables."""
        del written
        if not self.is_wanted:
            return
        caveat = results.run.settings.caveat
        people = {scan.whose["participant_id"]: None for scan in results.scans if "participant_id" in scan.whose}
        rows = [{"participant_id": bids_id("sub", one), "source_id": one} for one in people]
        has_own = any(label_of(row["participant_id"]) != label_of(row["source_id"]) for row in rows)
        texts = {
            "README": f"{_README}\n{caveat}".rstrip() + "\n",
            ".bidsignore": "\n".join(_IGNORED) + "\n",
            "dataset_description.json": to_json(_description(results)),
            "participants.tsv": to_tsv(["participant_id", *(["source_id"] if has_own else [])], rows),
            "participants.json": to_json(_PARTICIPANTS),
            "probseg.json": to_json(_EXISTENCE),
        }
        if all(scan.files is not None and scan.files.is_table for scan in results.scans):
            folder.remove("probseg.json")  # of another time
            del texts["probseg.json"]
        for name, text in texts.items():
            folder.write_text(name, text)

    def remove_stale(self, folder: OutputFolder, made: Collection[str]) -> None:
        """Remove files of scans that are gone; if it is not wanted, also those of the dataset."""
        of_scans = {name for name in folder.names() if _OF_SCAN.fullmatch(name)}
        of_scans |= {f"{name.removesuffix('.tsv')}.json" for name in of_scans if name.endswith(".tsv")}
        for name in (*of_scans.difference(made), *(() if self.is_wanted else _DATASET)):
            folder.remove(name)


def _check_place(scan: ScanFiles, taken: dict[str, ScanFiles], people: dict[str, str]) -> None:
    """Raise if the place of a scan is not known, or is that of another."""
    participant = scan.whose.participant
    if participant is None or not bids_id("sub", participant):
        raise MapFileError(
            f"For --write bids it must be known whose scans they are, but {scan.relative} does not say so. Name the "
            "participant with --name-pattern, such as --name-pattern '(?P<participant>case_[0-9]+)'."
        )
    same = people.setdefault(bids_id("sub", participant).casefold(), participant)
    if label_of(same) != label_of(participant):
        raise MapFileError(
            f"The participants {same} and {participant} would both be {bids_id('sub', participant)}: BIDS allows "
            "for letters and digits only. Name them otherwise with --name-pattern."
        )
    other = taken.setdefault(BidsPlace.of(scan.whose).labels.casefold(), scan)
    if other is not scan:
        raise MapFileError(
            f"{other.relative} and {scan.relative} would have the same files in BIDS, "
            f"{BidsPlace.of(scan.whose).labels}. Tell them apart with --name-pattern (?P<session>…) or (?P<run>…), "
            "or count one kind of map (--suffix)."
        )


def _sidecar(scan: ScanFiles, record: Record, columns: Iterable[str]) -> dict[str, Any]:
    numbers, caveat = record.counted.best, "" if record.settings is None else record.settings.caveat
    return {
        "Description": f"Candidates for lesions in {scan.relative}, each with a number of its own. {caveat}".rstrip(),
        **({} if scan.tables else {"Sources": [f"bids:{SOURCE}:{scan.relative}"]}),
        "SpatialReference": "orig",
        "LesionCount": {
            "Mode": numbers.count_mode,
            "Median": numbers.count_median,
            "Mean": numbers.count_mean,
            "Interval90": [numbers.interval90_low, numbers.interval90_high],
            "Candidates": record.counted.candidates.n_candidates,
        },
        **{name: {"Description": _MEANING[name]} for name in columns},
        "Protocol": None if record.settings is None else record.settings.protocol.to_dict(),
    }


def _smallest(n: int) -> Any:
    """The narrowest type that viewers read labels from."""
    return np.uint8 if n < 1 << 8 else np.uint16 if n < 1 << 16 else np.int32


def bids_id(key: str, value: str | None) -> str:
    """A participant or a session by the rules of BIDS: ``sub-PAT7`` for ``PAT 7``; empty if there is none."""
    label = _label(label_of(value))
    return f"{key}-{label}" if label else ""


def _label(value: str | None) -> str:
    """Letters and digits, all that BIDS allows for."""
    return re.sub(r"[^A-Za-z0-9]", "", value or "")


def _description(results: Results) -> dict[str, Any]:
    maker = {
        "Name": "lesioncount",
        "Version": __version__,
        "Description": f"Candidates and the distribution of their number; {results.protocol}. "
        f"{results.run.settings.caveat}".rstrip(),
    }
    content = {
        "Name": "Lesion counts",
        "BIDSVersion": _BIDS_VERSION,
        "DatasetType": "derivative",
        "GeneratedBy": [maker],
    }
    root = _root(results)
    return content if root is None else content | {"DatasetLinks": {SOURCE: root}}


def _root(results: Results) -> str | None:
    """The folder that the paths of maps begin at, seen from that of the results, so that both may be moved together."""
    for scan in results.scans:
        if scan.files is None or scan.files.is_table:
            continue
        if scan.files.relative is not None and not is_elsewhere(Path(scan.files.path)):
            depth = len(PurePosixPath(scan.files.relative).parts)
            root = os.path.relpath(Path(scan.files.path).parents[depth - 1], results.out.absolute())
            return quote(Path(root).as_posix())
    return None

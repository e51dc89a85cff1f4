"""A cohort → a folder of NIfTI files and tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CohortError, MapFileError
from lesioncount.folder.atomic import replacing, write_text
from lesioncount.folder.tables import to_tsv
from lesioncount.learning.scans import count_of
from lesioncount.runs.workers import results_of
from lesioncount.version import __version__
from lesioncount_reproduction.cohort import SEQUENCES, Cohort, Visit, bids_name

Progress = Callable[[str, int, int], None]

_BIDS_VERSION = "1.10.0"

# Masks are derived from the images; these are their names in BIDS.
BRAIN, LESIONS, ALL_LESIONS = "desc-brain_mask", "label-lesion_mask", "label-lesion_desc-all_mask"
MASKS_FOLDER = Path("derivatives", "masks")

# Known of synthetic scans only: label maps of areas of the brain, and of lesions and what becomes of them.
AREAS_FOLDER, CHANGES_FOLDER = Path("derivatives", "areas"), Path("derivatives", "changes")

DESCRIPTION = "dataset_description.json"

PARTICIPANTS, PARTICIPANT_COLUMNS = "participants.tsv", ("participant_id", "split", "n_scans")

SCANS = "scans.tsv"
SCAN_COLUMNS = ("scan", "participant_id", "session_id", "count", "at_least", "at_most", "count_all", "split")

# Images are stored as multiples of this where that loses nothing; it is fine compared with noise. Synthetic ones are
# rounded to it, which removes the last bits, in which machines differ.
STEP = 2.0**-10


def write_cohort(folder: str | Path, cohort: Cohort, /, *, jobs: int = 1, progress: Progress | None = None) -> None:
    """Write scans as NIfTI files, in the layout of BIDS.

    No file is ever half-written, and the tables come last: a folder without ``scans.tsv`` is unfinished.

    Parameters
    ----------
    folder : path
        Created if it does not exist. It must be empty: nothing is ever overwritten.
    cohort : Cohort
    jobs : int, default 1
        Number of processes. The files do not depend on it.
    progress : callable, optional
        Called with the name of a scan, the number of scans written so far, and their total number.

    Examples
    --------
    >>> from lesioncount_reproduction.synthetic import GadCohort
    >>> folder = getfixture("tmp_path") / "cohort"
    >>> write_cohort(folder, GadCohort(1, seed=1, shape=(12, 24, 20)))
    >>> image_path(folder, "001", "01", "FLAIR").relative_to(folder).as_posix()
    'sub-001/ses-01/anat/sub-001_ses-01_FLAIR.nii.gz'
    """
    folder = Path(folder)
    if jobs < 1:
        raise CohortError(f"Expected at least one process, but got jobs={jobs}.")
    _prepare(folder)
    done: dict[int, dict[str, Any]] = {}
    rows: list[dict[str, Any]] = []
    for place, future in results_of(partial(_write_scan, folder, cohort), range(len(cohort)), jobs=jobs):
        done[place] = future.result()
        while len(rows) in done:  # in the order of the cohort, whatever the order they are done in
            rows.append(done.pop(len(rows)))
            if progress is not None:
                progress(str(rows[-1]["scan"]), len(rows), len(cohort))
    _write_tables(folder, cohort, rows)


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise CohortError(f"The folder {folder} is not empty. Choose another one, or empty it first.")
    except OSError as error:
        raise MapFileError(f"The folder {folder} cannot be made: {error.strerror}.") from None


def _write_scan(folder: Path, cohort: Cohort, index: int) -> dict[str, Any]:
    """Write the files of a scan and return its row of the table."""
    scan = cohort.scan(index)
    for sequence, image in zip(SEQUENCES, scan.images, strict=True):
        save_volume(image_path(folder, scan.patient, scan.session, sequence), image, scan.affine)
    masks = {BRAIN: scan.brain, LESIONS: scan.lesions, ALL_LESIONS: scan.all_lesions}
    for name, mask in masks.items():
        if mask is not None:
            save_volume(mask_path(folder, scan.patient, scan.session, name), mask, scan.affine)
    return _row(scan)


def _row(scan: Visit) -> dict[str, Any]:
    return {
        "scan": scan.name,
        "participant_id": f"sub-{scan.patient}",
        "session_id": f"ses-{scan.session}" if scan.session else None,
        "count": scan.count,
        "at_least": scan.at_least,
        "at_most": scan.at_most,
        "count_all": None if scan.all_lesions is None else count_of(scan.all_lesions),
        "split": scan.split,
    }


def save_volume(path: Path, volume: NDArray[Any], affine: NDArray[np.float64]) -> None:
    """Write an image, a mask or a label map (z, y, x) as NIfTI, complete or not at all."""
    from nibabel import Nifti1Image

    stored, step = _stored(volume)
    image = Nifti1Image(stored.T, affine)  # the axes of NIfTI are x, y, z
    image.header.set_slope_inter(step, 0)
    image.header.set_xyzt_units("mm")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        image.to_filename(temporary)


def _stored(volume: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """What to store and the factor to multiply it with: whole steps, in half the space, where that loses nothing."""
    if volume.dtype == np.bool_:
        return volume.astype(np.uint8), 1.0
    if np.issubdtype(volume.dtype, np.integer):
        return volume, 1.0
    steps = volume / np.float32(STEP)
    if np.abs(steps).max() < 2**15 and np.array_equal(steps, np.round(steps)):
        return steps.astype(np.int16), STEP
    return volume, 1.0


def _write_tables(folder: Path, cohort: Cohort, rows: list[dict[str, Any]]) -> None:
    patients: dict[str, dict[str, Any]] = {}
    for row in rows:
        first = {"participant_id": row["participant_id"], "split": row["split"], "n_scans": 0}
        patients.setdefault(row["participant_id"], first)["n_scans"] += 1
    write_description(folder / MASKS_FOLDER, "Masks of brains and lesions")
    write_description(folder, "Scans for lesioncount", kind="raw", more=cohort.provenance)
    write_text(folder / PARTICIPANTS, to_tsv(PARTICIPANT_COLUMNS, patients.values()))
    write_text(folder / SCANS, to_tsv(SCAN_COLUMNS, rows))


def write_description(
    folder: Path, name: str, *, kind: str = "derivative", more: Mapping[str, Any] | None = None
) -> None:
    """Say what a folder holds, as BIDS has it."""
    content = {
        "Name": name,
        "BIDSVersion": _BIDS_VERSION,
        "DatasetType": kind,
        "GeneratedBy": [{"Name": "lesioncount", "Version": __version__}],
        **(more or {}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / DESCRIPTION, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def image_path(folder: Path, patient: str, session: str, sequence: str) -> Path:
    """The path of an image: ``sub-001/ses-01/anat/sub-001_ses-01_T1w.nii.gz``."""
    visit = folder / f"sub-{patient}" / f"ses-{session}" if session else folder / f"sub-{patient}"
    return visit / "anat" / f"{bids_name(patient, session)}_{sequence}.nii.gz"


def mask_path(folder: Path, patient: str, session: str, mask: str) -> Path:
    """The path of a mask: the same, in ``derivatives/masks``."""
    return image_path(folder / MASKS_FOLDER, patient, session, mask)

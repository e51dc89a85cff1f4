"""Where a cohort's files are: a BIDS folder, with tables of patients and scans."""

from __future__ import annotations

from pathlib import Path

from lesioncount.learning.cohort import bids_name

# Masks are derived from the images; these are their names in BIDS.
BRAIN, LESIONS, ALL_LESIONS = "desc-brain_mask", "label-lesion_mask", "label-lesion_desc-all_mask"
MASKS_FOLDER = Path("derivatives", "masks")

# Known of synthetic scans only: label maps of areas of the brain, and of lesions and what becomes of them.
AREAS_FOLDER, CHANGES_FOLDER = Path("derivatives", "areas"), Path("derivatives", "changes")

DESCRIPTION = "dataset_description.json"

PARTICIPANTS, PARTICIPANT_COLUMNS = "participants.tsv", ("participant_id", "split", "n_scans")

SCANS = "scans.tsv"
SCAN_COLUMNS = ("scan", "participant_id", "session_id", "count", "at_least", "at_most", "count_all")


def image_path(folder: Path, patient: str, session: str, sequence: str) -> Path:
    """The path of an image: ``sub-001/ses-01/anat/sub-001_ses-01_T1w.nii.gz``."""
    visit = folder / f"sub-{patient}" / f"ses-{session}" if session else folder / f"sub-{patient}"
    return visit / "anat" / f"{bids_name(patient, session)}_{sequence}.nii.gz"


def mask_path(folder: Path, patient: str, session: str, mask: str) -> Path:
    """The path of a mask: the same, in ``derivatives/masks``."""
    return image_path(folder / MASKS_FOLDER, patient, session, mask)

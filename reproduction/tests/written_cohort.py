"""A cohort in files, read by nibabel alone: an oracle for what was written."""

import csv
from types import SimpleNamespace

import nibabel
import numpy as np

SEQUENCES = ("T1w", "ce-gadolinium_T1w", "T2w", "FLAIR", "PDw")


def rows(path):
    """The rows of a table, as texts."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def image_of(folder, name, what):
    """An image of a visit."""
    patient, session = name.split("_")
    return nibabel.load(folder / patient / session / "anat" / f"{name}_{what}.nii.gz")


def volume_of(folder, name, what):
    """Its voxels, in the order z, y, x."""
    return np.asarray(image_of(folder, name, what).dataobj).T


def scans_in(folder):
    """All scans, in the order of the table."""
    for row in rows(folder / "scans.tsv"):
        name, masks = row["scan"], folder / "derivatives" / "masks"
        yield SimpleNamespace(
            name=name,
            split=row["split"],
            count=int(row["count"]),
            images=np.stack([volume_of(folder, name, sequence) for sequence in SEQUENCES]),
            brain=volume_of(masks, name, "desc-brain_mask"),
            lesions=volume_of(masks, name, "label-lesion_mask"),
            all_lesions=volume_of(masks, name, "label-lesion_desc-all_mask"),
            affine=image_of(folder, name, SEQUENCES[0]).affine,
        )

"""Small maps of patients at several times, as files: what stays, what comes and what goes is known."""

import os

import numpy as np
from nifti_files import save

SHAPE = (14, 15, 16)


def lesions(*heights, shape=SHAPE):
    """A map with a lesion of 2 × 2 × 2 voxels for each height, far from each other; 0 leaves one out."""
    probabilities = np.zeros(shape, dtype=np.float32)
    for place, height in enumerate(heights):
        i, j = divmod(place, 3)
        probabilities[5 * i + 1 : 5 * i + 3, 5 * j + 1 : 5 * j + 3, 2:4] = height * 0.8
        probabilities[5 * i + 1, 5 * j + 1, 2] = height
    return probabilities


# Of each patient, the heights of his lesions at each time.
PATIENTS = {
    "p1": ((0.9, 0.8, 0.0), (0.9, 0.0, 0.7), (0.9, 0.0, 0.7)),
    "p2": ((0.5, 0.0, 0.0), (0.5, 0.0, 0.0), (0.0, 0.6, 0.0)),
    "p3": ((0.0, 0.0, 0.0), (0.0, 0.9, 0.0), (0.0, 0.9, 0.3)),
}


def folders(root, n_times=2, affine=None):
    """A folder for each time, with a map of each patient; their paths."""
    for name, times in PATIENTS.items():
        for time, heights in enumerate(times[:n_times]):
            save(root / f"t{time + 1}" / f"{name}.nii.gz", lesions(*heights), np.eye(4) if affine is None else affine)
    return [root / f"t{time + 1}" for time in range(n_times)]


def dataset(root, sessions=("01", "02")):
    """The same as BIDS has it."""
    for name, times in PATIENTS.items():
        for session, heights in zip(sessions, times, strict=False):
            stem = f"sub-{name}_ses-{session}_probseg.nii.gz"
            save(root / f"sub-{name}" / f"ses-{session}" / "anat" / stem, lesions(*heights), np.eye(4))
    return root


def die_of_p2(_folder, course, _record, _maps):
    """What somebody wants to show of a patient, and cannot."""
    if course.name == "p2":
        os._exit(1)

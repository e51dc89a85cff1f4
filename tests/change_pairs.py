"""Maps of a few patients at two or three times, with changes that are known."""

import nibabel as nib
import numpy as np

AFFINE = np.diag([3.0, 1.0, 1.0, 1.0])
SHAPE = (16, 40, 36)

OLD, NEW, GONE = (4, 10, 10), (11, 30, 8), (8, 20, 28)


def bumps(peaks, shape=SHAPE):
    probabilities = np.zeros(shape, dtype=np.float32)
    for index, peak in peaks.items():
        probabilities[tuple(slice(i - 1, i + 2) for i in index)] = peak / 2
        probabilities[index] = peak
    return probabilities


def save(path, array, affine=AFFINE):
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.Nifti1Image(array, affine).to_filename(path)
    return path


def save_pair(folder, name, before, after):
    save(folder / "before" / f"{name}.nii.gz", bumps(before))
    save(folder / "after" / f"{name}.nii.gz", bumps(after))


def save_course(folder, participant, *sessions):
    for number, peaks in enumerate(sessions, start=1):
        save(folder / f"sub-{participant}_ses-{number:02}_probseg.nii.gz", bumps(peaks))

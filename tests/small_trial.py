"""A trial of twelve patients in two arms, as maps and a table of participants."""

import numpy as np
from nifti_files import save

from lesioncount.runs import count_batch

# Lesions of each patient, of which the last is in doubt; the treated ones have about a third of them.
PLACEBO, TREATED = (5, 8, 4, 10, 6, 9), (2, 3, 1, 3, 2, 4)
ARMS = {
    f"sub-{number:02}": ("placebo" if number <= len(PLACEBO) else "treated")
    for number in range(1, 1 + len(PLACEBO) + len(TREATED))
}


def a_map(n_lesions):
    """Lesions that lie apart: the last with 0.5, all others with 0.95."""
    p = np.zeros((40, 9, 6), np.float32)
    for i in range(n_lesions):
        p[3 * i : 3 * i + 2, 3:6, 2:4] = 0.95 if i < n_lesions - 1 else 0.5
    return p


def write_maps(folder, *, sessions=1):
    """A map of each patient and session, and the table."""
    for patient, n_lesions in zip(ARMS, (*PLACEBO, *TREATED), strict=True):
        for session in range(1, sessions + 1):
            name = patient if sessions == 1 else f"{patient}_ses-{session:02}"
            save(folder / f"{name}.nii.gz", a_map(n_lesions + session - 1))
    write_table(folder / "participants.tsv")


def write_table(path, **columns):
    """A row per patient with its arm, and other columns, of which each is a list of values."""
    lines = ["\t".join(["participant_id", "arm", *columns])]
    others = list(zip(*columns.values(), strict=True)) or [()] * len(ARMS)
    lines += ["\t".join([*of, *map(str, cells)]) for of, cells in zip(ARMS.items(), others, strict=True)]
    path.write_text("\n".join(lines) + "\n")


def counted(folder, out, **options):
    """The maps, counted."""
    write_maps(folder, **options)
    return count_batch([folder], out)

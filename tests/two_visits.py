"""Maps of a few patients before and after, whose lesions stay, come and go with known probabilities."""

import numpy as np
from nifti_files import save

# Of each patient, the peaks of his lesions before and after.
VISITS = {
    "sub-01": ((0.9, 0.8, 0.0, 0.0), (0.9, 0.0, 0.7, 0.0)),
    "sub-02": ((0.5, 0.0, 0.0, 0.0), (0.5, 0.0, 0.6, 0.4)),
    "sub-03": ((0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)),
}


def a_map(peaks):
    """Lesions that lie apart, each with its peak; none for 0."""
    p = np.zeros((8 * len(peaks), 9, 6), np.float32)
    for place, peak in enumerate(peaks):
        p[8 * place + 2 : 8 * place + 4, 3:6, 2:4] = peak
    return p


def write_visits(folder, visits=VISITS):
    """A folder of maps for each time; their paths."""
    for name, times in visits.items():
        for when, peaks in zip(("before", "after"), times, strict=True):
            save(folder / when / f"{name}.nii.gz", a_map(peaks))
    return [folder / "before", folder / "after"]

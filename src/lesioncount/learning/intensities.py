"""Values of a picture → what a network is given: the same in training and in prediction."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lesioncount.learning.cohort import z_scored
from lesioncount.learning.pictures import as_unit

# Mean 0 and variance 1 over the whole picture, or where some channel is not 0; integers from 0 to 1; or as stored.
Intensities = Literal["whole", "brain", "unit", "stored"]
INTENSITIES: tuple[str, ...] = get_args(Intensities)


def intensities_of(source: str, *, normalize: bool) -> str:
    """What is done to images of a source."""
    if source == "leaf":
        return "unit"
    if source == "files":
        return "whole" if normalize else "unit"
    return "brain" if normalize else "stored"


def prepared(values: NDArray[Any], intensities: str) -> NDArray[np.float32]:
    """Channels as a network is given them.

    Parameters
    ----------
    values : ndarray, shape (channels, *spatial)
        As they are stored.
    intensities : {"whole", "brain", "unit", "stored"}
    """
    if intensities == "unit":
        return as_unit(values)
    images = values.astype(np.float32)
    if intensities == "stored":
        return images
    inside = np.ones(images.shape[1:], dtype=np.bool_) if intensities == "whole" else (images != 0).any(axis=0)
    return z_scored(images, np.asarray(inside))

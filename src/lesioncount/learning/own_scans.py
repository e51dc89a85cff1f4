"""Pictures of one's own, with masks or only counts → scans to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CohortError
from lesioncount.learning.config_sections import DataConfig
from lesioncount.learning.expected import intensities_of, prepared
from lesioncount.learning.picture_files import PictureFiles
from lesioncount.learning.pictures import Picture, check_lies_on, open_picture, resized
from lesioncount.learning.scans import LearningScan, count_of

# A mask may have no other values than 0 and one more: this many are named in a message.
_NAMED = 6


@dataclass(frozen=True)
class OwnScan:
    """What is known of a picture before it is read.

    Attributes
    ----------
    files : PictureFiles
    patient : str
    split : str
        As the table has it; empty if it says nothing.
    mask : Path or None
    at_least, at_most : int
        Bounds of the number of lesions.
    """

    files: PictureFiles
    patient: str
    split: str
    mask: Path | None
    at_least: int
    at_most: int


class OwnScans:
    """Pictures of one's own, each read when it is asked for.

    Parameters
    ----------
    data : DataConfig
    scans : sequence of OwnScan
    shape : tuple of int
        That they are brought to.
    """

    def __init__(self, data: DataConfig, scans: Sequence[OwnScan], shape: tuple[int, ...]) -> None:
        self.scans = tuple(scans)
        self._data, self._shape = data, shape

    def __len__(self) -> int:
        return len(self.scans)

    def __getitem__(self, index: int) -> LearningScan:
        scan = self.scans[index]
        picture, mask = open_picture(scan.files.paths), None
        if scan.mask is not None:
            lesions = lesions_of(scan.mask, self._data, picture)[0]
            mask = self._fitted(lesions[None].astype(np.float32), smooth=False)[0].astype(np.uint8)
        fitted = self._fitted(prepared(picture, intensities_of(self._data)), smooth=True)
        return LearningScan(scan.files.name, scan.patient, fitted, mask, scan.at_least, scan.at_most)

    def _fitted(self, images: NDArray[np.float32], *, smooth: bool) -> NDArray[np.float32]:
        if self._data.resize:
            return resized(images, self._shape, smooth=smooth)
        missing = [(0, wanted - n) for wanted, n in zip(self._shape, images.shape[1:], strict=True)]
        return np.pad(images, [(0, 0), *missing])


def lesions_of(path: Path, data: DataConfig, picture: Picture) -> tuple[NDArray[np.bool_], int]:
    """Where the lesions of the mask of a picture are, and how many there are."""
    opened = open_picture([path], labels=True)
    check_lies_on(picture.grid, opened.grid, "the mask")
    [values] = opened.read()
    if len(values) > 1 and not (values == values[0]).all():
        raise CohortError(f"Expected a mask of one channel, but {path} has {len(values)} that differ.")
    mask = np.nan_to_num(values[0], nan=0)  # NaN is outside
    found = np.unique(mask)
    if data.instances:
        return mask != 0, int((found != 0).sum())
    if data.mask_label:
        return mask == data.mask_label, count_of(mask == data.mask_label)
    if len(found[found != 0]) > 1:
        named = ", ".join(f"{value:g}" for value in found[:_NAMED]) + (" …" if len(found) > _NAMED else "")
        raise CohortError(
            f"Expected a mask of 0 and one other value, but {path} holds {named}. In [data], name the value of "
            f"lesions: mask_label = {found[-1]:g}, or, if each value is a lesion of its own, write: instances = true"
        )
    return mask != 0, count_of(mask != 0)

"""Fluorescence images of nuclei, each drawn by experts (2018 Data Science Bowl, CC0): large counts, and they touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CohortError, MapFileError, reason_of

FILE = "nuclei.npz"


@dataclass(frozen=True, eq=False)
class NucleiImage:
    """One image.

    Attributes
    ----------
    name : str
        Its name in the data set.
    image : ndarray of float32, shape (y, x)
        From 0 to 1.
    instances : ndarray of int, shape (y, x)
        0, or the number of a nucleus.
    count : int
        Number of nuclei.
    """

    name: str
    image: NDArray[np.float32] = field(repr=False)
    instances: NDArray[np.int64] = field(repr=False)
    count: int


class Nuclei(Sequence[NucleiImage]):
    """The images of a file. Made by `read_nuclei`."""

    def __init__(self, images: NDArray[np.uint8], instances: NDArray[np.int64], names: Sequence[str]) -> None:
        self._images, self._instances, self._names = images, instances, names

    def __len__(self) -> int:
        """Number of images."""
        return len(self._images)

    @overload
    def __getitem__(self, index: int) -> NucleiImage: ...
    @overload
    def __getitem__(self, index: slice) -> list[NucleiImage]: ...
    def __getitem__(self, index: int | slice) -> NucleiImage | list[NucleiImage]:
        """An image by its place, or some of them."""
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        instances = self._instances[index].astype(np.int64)
        count = len(np.unique(instances[instances > 0]))
        return NucleiImage(self._names[index], self._images[index] / np.float32(255), instances, count)


def read_nuclei(folder: str | Path, /) -> Nuclei:
    """Open the images of nuclei.

    Parameters
    ----------
    folder : path
        With ``nuclei.npz``: ``image`` (n, y, x) of uint8, ``instances`` of the same shape, ``source_id`` (n,).
    """
    path = Path(folder) / FILE
    try:
        with np.load(path, allow_pickle=False) as found:
            images, instances, names = found["image"], found["instances"], found["source_id"].tolist()
    except KeyError as error:
        raise CohortError(f"Expected arrays image, instances and source_id in {path}: {reason_of(error)}.") from None
    except (OSError, ValueError) as error:
        raise MapFileError(f"The images {path} cannot be read: {reason_of(error)}.") from None
    if images.ndim != 3 or images.dtype != np.uint8 or images.shape != instances.shape or len(names) != len(images):
        raise CohortError(
            f"Expected images of uint8 and instances of one shape (n, y, x) in {path}, but got {images.dtype} "
            f"{images.shape} and {instances.shape}, with {len(names)} names."
        )
    return Nuclei(images, instances, [str(name) for name in names])

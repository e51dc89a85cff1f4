"""Photographs of coffee leaves with lesion masks (Esgario, Krohling and Ventura 2020): real images at CPU scale."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import CohortError, MapFileError, reason_of
from lesioncount.learning.scans import count_of
from lesioncount.learning.split import Split
from lesioncount.optional import optional
from lesioncount_reproduction.cohort import checked_split

# What the values of a mask mean.
_LEAF, _LESION = 1, 2


@dataclass(frozen=True, eq=False)
class Leaf:
    """One photograph of a leaf.

    Attributes
    ----------
    name : str
        Its number in the data set.
    split : str
        ``"train"``, ``"val"`` or ``"test"``.
    images : ndarray of float32, shape (3, y, x)
        Red, green and blue, from 0 to 1.
    leaf : ndarray of bool, shape (y, x)
        Where the leaf is, lesions and all.
    lesions : ndarray of bool, shape (y, x)
    count : int
        Number of lesions at this size, corners connected.
    """

    name: str
    split: str
    images: NDArray[np.float32] = field(repr=False)
    leaf: NDArray[np.bool_] = field(repr=False)
    lesions: NDArray[np.bool_] = field(repr=False)
    count: int


class LeafCohort(Sequence[Leaf]):
    """The leaves of a folder, each read when it is asked for. Made by `read_leaves`.

    Attributes
    ----------
    folder : Path
    size : tuple of int
        Height and width in pixels that images and masks are brought to.
    names : tuple of (str, str)
        Part and number of each leaf.
    """

    def __init__(self, folder: Path, size: tuple[int, int], names: tuple[tuple[str, str], ...]) -> None:
        self.folder, self.size, self.names = folder, size, names

    def __len__(self) -> int:
        """Number of leaves."""
        return len(self.names)

    def split(self, name: Split, /) -> Self:
        """The leaves of one part, as the authors of the data have divided them."""
        names = tuple(leaf for leaf in self.names if leaf[0] == checked_split(name))
        return type(self)(self.folder, self.size, names)

    @overload
    def __getitem__(self, index: int) -> Leaf: ...
    @overload
    def __getitem__(self, index: slice) -> list[Leaf]: ...
    def __getitem__(self, index: int | slice) -> Leaf | list[Leaf]:
        """A leaf by its place, or some of them."""
        names = self.names[index]
        return [self._read(*name) for name in names] if isinstance(index, slice) else self._read(*self.names[index])

    def __iter__(self) -> Iterator[Leaf]:
        """One leaf after the other."""
        return (self._read(*name) for name in self.names)

    def _read(self, split: str, name: str) -> Leaf:
        photograph = self._pixels(self.folder / "images" / split / f"{name}.jpg", smooth=True)
        mask = self._pixels(self.folder / "masks" / split / f"{name}.png", smooth=False)
        if mask.ndim != 2 or mask.max() > _LESION:
            raise CohortError(f"Leaf {name}: expected a mask of 0, {_LEAF} and {_LESION}, but it holds other values.")
        lesions = mask == _LESION
        images = np.ascontiguousarray(photograph.transpose(2, 0, 1), dtype=np.float32) / np.float32(255)
        return Leaf(name, split, images, mask >= _LEAF, lesions, count_of(lesions))

    def _pixels(self, path: Path, *, smooth: bool) -> NDArray[Any]:
        """The pixels of a picture at the size of this cohort; values of masks stay what they are."""
        pillow: Any = optional("PIL.Image", "report", "Reading photographs")
        try:
            with pillow.open(path) as picture:
                how = pillow.Resampling.BOX if smooth else pillow.Resampling.NEAREST
                return np.asarray((picture.convert("RGB") if smooth else picture).resize(self.size[::-1], how))
        except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
            raise MapFileError(f"The picture {path} cannot be read: {reason_of(error)}.") from None


def read_leaves(folder: str | Path, /, *, size: tuple[int, int] = (64, 128)) -> LeafCohort:
    """Open the coffee leaf data set.

    Parameters
    ----------
    folder : path
        With ``counts.csv``, ``images/train/3.jpg`` and ``masks/train/3.png`` and so on.
    size : tuple of int, default (64, 128)
        Height and width in pixels; leaves are twice as wide as high.
    """
    table = Path(folder) / "counts.csv"
    if len(size) != 2 or min(size) < 1:
        raise CohortError(f"Expected a size of two numbers (height, width) of at least 1, but got {size}.")
    try:
        with table.open(encoding="utf-8", newline="") as stream:
            names = tuple((checked_split(row["split"]), row["id"]) for row in csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise MapFileError(f"The table {table} cannot be read: {reason_of(error)}.") from None
    except KeyError as error:
        raise CohortError(f"Expected a column {error} in {table}.") from None
    return LeafCohort(Path(folder), (int(size[0]), int(size[1])), names)

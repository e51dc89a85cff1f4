"""What a network expects of images, kept in its checkpoint; and values of images → what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from lesioncount.learning.config_sections import DataConfig
from lesioncount.learning.pictures import Picture, channels_in_words

# Mean 0 and variance 1 over the whole picture, or where some channel is not 0; integers from 0 to 1; or as stored.
Intensities = Literal["whole", "brain", "unit", "stored"]


@dataclass(frozen=True)
class Expected:
    """What images a network was trained on.

    Attributes
    ----------
    n_channels, n_axes : int
    intensities : str
        What is done to their values: see `prepared`.
    resize : bool
        Whether images are brought to the size of the training, and maps back to that of the image.
    suffixes : tuple of str
        How the names of files end, where each channel has a file of its own.
    """

    n_channels: int
    n_axes: int
    intensities: Intensities = "stored"
    resize: bool = False
    suffixes: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: DataConfig, n_channels: int) -> Self:
        """What the images of a training are like."""
        return cls(n_channels, len(data.shape), intensities_of(data), bool(data.resize), data.channels)

    @classmethod
    def from_checkpoint(cls, content: Mapping[str, Any], shape: tuple[int, ...], n_channels: int) -> Self:
        """What a checkpoint says; without a word about them, images are taken as they are.

        Raises
        ------
        ValueError, TypeError, msgspec.ValidationError
            If what it says is of another kind.
        """
        said = content.get("expects", {})
        found = msgspec.convert({**said, "n_channels": n_channels, "n_axes": len(shape)}, cls)
        if any("/" in text or "\\" in text for text in found.suffixes):
            raise ValueError("no ends of names")
        return found

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for a checkpoint."""
        return asdict(self) | {"suffixes": list(self.suffixes)}

    def allows(self, picture: Picture) -> bool:
        """Whether images have as many channels and axes."""
        return (picture.n_channels, len(picture.shape)) == (self.n_channels, self.n_axes)

    def __str__(self) -> str:
        """In words, for messages."""
        return f"{channels_in_words(self.n_channels)} and {self.n_axes} axes"


def intensities_of(data: DataConfig) -> Intensities:
    """What is done to the images of a training."""
    if not data.normalize:
        return "unit"
    return "brain" if data.nonzero else "whole"


def prepared(picture: Picture, intensities: Intensities) -> NDArray[np.float32]:
    """Read a picture, as a network is given it: the same in training and in prediction.

    Parameters
    ----------
    picture : Picture
    intensities : {"whole", "brain", "unit", "stored"}

    Returns
    -------
    array of float32, shape (channels, *spatial)
    """
    files = picture.read()
    images = np.concatenate([_as_unit(of) if intensities == "unit" else of.astype(np.float32) for of in files])
    if intensities in ("unit", "stored"):
        return images
    inside = np.ones(images.shape[1:], dtype=np.bool_) if intensities == "whole" else (images != 0).any(axis=0)
    return z_scored(images, np.asarray(inside))


def _as_unit(values: NDArray[Any]) -> NDArray[np.float32]:
    """Values as numbers: those of bytes and 16 bits from 0 to 1, others as they are."""
    if values.dtype.kind == "u" and values.dtype.itemsize <= 2:
        return (values / np.float32(np.iinfo(values.dtype).max)).astype(np.float32)
    return values.astype(np.float32)


def z_scored(images: NDArray[np.float32], inside: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Images with mean 0 and variance 1 inside of something, such as the brain, each by itself, and 0 outside.

    Parameters
    ----------
    images : ndarray, shape (n, *spatial)
    inside : ndarray of bool, shape spatial
    """
    scored = np.zeros_like(images, dtype=np.float32)
    for image, out in zip(images, scored, strict=True):
        values = image[inside].astype(np.float64)  # single precision sums differently on other machines
        spread = values.std() if values.size else 0.0
        if spread > 0:
            out[inside] = (values - values.mean()) / spread
    return scored

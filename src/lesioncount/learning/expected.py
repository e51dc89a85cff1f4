"""What a network expects of images: kept in its checkpoint, and checked before it predicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from lesioncount.learning.config_sections import DataConfig
from lesioncount.learning.intensities import INTENSITIES, intensities_of
from lesioncount.learning.pictures import PictureSize


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
    intensities: str
    resize: bool = False
    suffixes: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: DataConfig, n_channels: int) -> Self:
        """What the images of a training are like."""
        return cls(
            n_channels,
            len(data.shape),
            intensities_of(data.source, normalize=data.normalize),
            data.source == "leaf" or bool(data.resize),
            data.channels,
        )

    @classmethod
    def from_checkpoint(cls, content: Mapping[str, Any], shape: tuple[int, ...], n_channels: int) -> Self:
        """What a checkpoint says; of one that does not, what the trainings of its time did.

        Raises
        ------
        ValueError, KeyError, TypeError, AttributeError
            If what it says is of another kind.
        """
        if "expects" not in content:  # in two dimensions, there were only leaves
            normalize = bool(content.get("normalize", False))
            how = intensities_of("leaf" if len(shape) == 2 else "folder", normalize=normalize)
            return cls(n_channels, len(shape), how, len(shape) == 2)
        said = dict(content["expects"])
        suffixes = tuple(said["suffixes"])
        found = cls(n_channels, len(shape), str(said["intensities"]), bool(said["resize"]), suffixes)
        are_names = all(isinstance(text, str) and "/" not in text and "\\" not in text for text in suffixes)
        if not are_names or found.intensities not in INTENSITIES:
            raise ValueError("not as it was written")
        return found

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for a checkpoint."""
        return asdict(self) | {"suffixes": list(self.suffixes)}

    def allows(self, size: PictureSize) -> bool:
        """Whether images have as many channels and axes."""
        return (size.n_channels, len(size.shape)) == (self.n_channels, self.n_axes)

    def __str__(self) -> str:
        """In words, for messages."""
        channels = f"{self.n_channels} channel{'' if self.n_channels == 1 else 's'}"
        return f"{channels} and {self.n_axes} axes"

"""The metadata of OME-Zarr images (0.4 and 0.5): axes, resolution levels, and the size of their voxels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from lesioncount.errors import ChannelError, MapFileError

VERSIONS = ("0.4", "0.5")

# Lengths by the names that the format has for them, and by their usual short forms. Others are not used for anything
# that lesions are in.
_MILLIMETRES = {
    **dict.fromkeys(("angstrom", "Å"), 1e-7),
    **dict.fromkeys(("picometer", "pm"), 1e-9),
    **dict.fromkeys(("nanometer", "nm"), 1e-6),
    **dict.fromkeys(("micrometer", "micron", "um", "µm", "μm"), 1e-3),
    **dict.fromkeys(("millimeter", "mm"), 1.0),
    **dict.fromkeys(("centimeter", "cm"), 10.0),
    **dict.fromkeys(("decimeter", "dm"), 100.0),
    **dict.fromkeys(("meter", "m"), 1000.0),
    "inch": 25.4,
}

# What axes are that do not say it.
_KINDS = {"x": "space", "y": "space", "z": "space", "t": "time", "c": "channel"}


@dataclass(frozen=True)
class OmeAxis:
    """An axis: its name, whether it is one of space, of time or of channels, and its unit."""

    name: str
    kind: str
    unit: str | None = None

    def to_dict(self) -> dict[str, str]:
        """As in the metadata."""
        return {"name": self.name, "type": self.kind} | ({} if self.unit is None else {"unit": self.unit})


@dataclass(frozen=True)
class OmeLevel:
    """A resolution: the array it is in, and for each axis the step and the place of the first voxel."""

    path: str
    scale: tuple[float, ...]
    translation: tuple[float, ...]


@dataclass(frozen=True)
class OmeImage:
    """An image in several resolutions, the finest first.

    Attributes
    ----------
    version : str
    axes : tuple of OmeAxis
        In the order of the arrays.
    levels : tuple of OmeLevel
    level : int
        Which of them was chosen.
    """

    version: str
    axes: tuple[OmeAxis, ...]
    levels: tuple[OmeLevel, ...]
    level: int = 0

    @property
    def space(self) -> tuple[int, ...]:
        """Which axes are those of space."""
        return tuple(place for place, axis in enumerate(self.axes) if axis.kind == "space")

    @property
    def channels(self) -> int | None:
        """Which axis is that of the channels."""
        return next((place for place, axis in enumerate(self.axes) if axis.kind not in ("space", "time")), None)

    def spacing_mm(self, level: int) -> tuple[float, ...] | None:
        """The voxel size of a level; None unless every axis of space has a unit of length."""
        factors = [_MILLIMETRES.get(self.axes[place].unit or "") for place in self.space]
        sizes = [self.levels[level].scale[place] for place in self.space]
        known = [size * factor for size, factor in zip(sizes, factors, strict=True) if factor is not None]
        # A micrometre has no exact form: what was written as 0.65 is to be read as 0.00065.
        return tuple(float(f"{size:.12g}") for size in known) if len(known) == len(sizes) else None

    def check_level(self, path: Path, level: int | None) -> int:
        """The level that is meant, the finest unless another is chosen."""
        if level is not None and not 0 <= level < len(self.levels):
            held = f"0 to {len(self.levels) - 1}" if len(self.levels) > 1 else "0 only"
            raise ChannelError(f"{path} has no resolution level {level}: it has {held}.")
        return level or 0

    def index(self, path: Path, shape: Sequence[int], channel: int) -> list[int | None]:
        """The place along each axis that picks a channel of the only time point; None along those of space."""
        index: list[int | None] = [None] * len(self.axes)
        for place, axis in enumerate(self.axes):
            if axis.kind == "time" and shape[place] > 1:
                raise MapFileError(
                    f"{path} holds {shape[place]} points in time. A count is of one: store each as an image of its own."
                )
            if axis.kind != "space":
                index[place] = channel if place == self.channels else 0
        return index

    @property
    def lines(self) -> dict[str, str]:
        """What to tell people of it."""
        sizes = [self.spacing_mm(level) for level in range(len(self.levels))]
        shown = [
            f"{'*' if level == self.level else ''}{level}: " + _size_text(self, level, size)
            for level, size in enumerate(sizes)
        ]
        axes = ", ".join(f"{axis.name}{f' ({axis.unit})' if axis.unit else ''}" for axis in self.axes)
        return {"axes": axes, "levels": "; ".join(shown)}


def _size_text(image: OmeImage, level: int, size: tuple[float, ...] | None) -> str:
    if size is not None:
        return " × ".join(f"{mm:g}" for mm in size) + " mm"
    return " × ".join(f"{image.levels[level].scale[place]:g}" for place in image.space) + " in no known unit"


def ome_image(path: Path, attributes: Mapping[str, Any]) -> OmeImage | None:
    """The image that the attributes of a group describe; None if they describe none.

    Examples
    --------
    >>> scale = [{"type": "scale", "scale": [0.5, 0.25, 0.25]}]
    >>> axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]
    >>> level = {"path": "0", "coordinateTransformations": scale}
    >>> image = ome_image(Path("x.zarr"), {"multiscales": [{"version": "0.4", "axes": axes, "datasets": [level]}]})
    >>> image.spacing_mm(0)
    (0.0005, 0.00025, 0.00025)
    """
    ome = attributes.get("ome")
    content = ome if isinstance(ome, dict) else attributes
    if "multiscales" not in content:
        _refuse_collection(path, content)
        return None
    try:
        first = content["multiscales"][0]
        version = str(content.get("version") if isinstance(ome, dict) else first.get("version", "0.4"))
        if version not in VERSIONS:
            raise MapFileError(
                f"{path} is OME-Zarr of version {version[:20]}, but {' and '.join(VERSIONS)} are known. Convert it, or "
                f"give an array in it, as {path}/0."
            )
        return _image(version, first)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)[:200].rstrip(".")
        raise MapFileError(
            f"{path}: its OME-Zarr metadata are not as the format says: {why}. Give an array in it, as {path}/0."
        ) from None


def _refuse_collection(path: Path, content: Mapping[str, Any]) -> None:
    for key, what in (("plate", "a plate"), ("well", "a well"), ("bioformats2raw.layout", "a collection of images")):
        if key in content:
            raise MapFileError(f"{path} is {what} of OME-Zarr, not an image. Give an image in it, as {path}/0.")


def _image(version: str, content: Mapping[str, Any]) -> OmeImage:
    axes = tuple(_axis(one) for one in content["axes"])
    kinds = [axis.kind for axis in axes]
    n_space, n_time = kinds.count("space"), kinds.count("time")
    if n_space not in (2, 3) or n_time > 1 or len(axes) - n_space - n_time > 1:
        raise ValueError(
            "expected two or three axes of space, at most one of time and one of channels, but got "
            + ", ".join(axis.name for axis in axes)
        )
    shared = content.get("coordinateTransformations", ())
    levels = tuple(_level(one, shared, len(axes)) for one in content["datasets"])
    if not levels:
        raise ValueError("there are no datasets")
    return OmeImage(version, axes, levels)


def _axis(content: Mapping[str, Any]) -> OmeAxis:
    name, unit = str(content["name"]), content.get("unit")
    kind = content.get("type") or _KINDS.get(name.lower(), "channel")
    return OmeAxis(name, str(kind), None if unit is None else str(unit))


def _level(content: Mapping[str, Any], shared: Sequence[Mapping[str, Any]], n_axes: int) -> OmeLevel:
    path = PurePosixPath(str(content["path"]))
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError("the path of a level leads out of the image")
    scale, translation = [1.0] * n_axes, [0.0] * n_axes
    # Those of the level come first, then those of all levels.
    for step in (*content["coordinateTransformations"], *shared):
        kind = step["type"]
        if kind == "identity":
            continue
        if kind not in ("scale", "translation"):
            raise ValueError(f"a transformation of the type {str(kind)[:40]} is not known here")
        numbers = _numbers(step[kind], n_axes, positive=kind == "scale")
        if kind == "scale":
            scale = [old * new for old, new in zip(scale, numbers, strict=True)]
            translation = [old * new for old, new in zip(translation, numbers, strict=True)]
        else:
            translation = [old + new for old, new in zip(translation, numbers, strict=True)]
    return OmeLevel(str(path), tuple(scale), tuple(translation))


def _numbers(values: Sequence[Any], n_axes: int, *, positive: bool) -> list[float]:
    numbers = [float(value) for value in values]
    if len(numbers) != n_axes or not all(math.isfinite(one) and (one > 0 or not positive) for one in numbers):
        raise ValueError(f"expected a number for each of {n_axes} axes, but got {str(values)[:80]}")
    return numbers

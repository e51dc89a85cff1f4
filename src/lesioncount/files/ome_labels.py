"""Labels of candidates → an OME-Zarr label image, in the version and with the axes of the image they were found in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.files.ome_zarr import OmeImage, OmeLevel
from lesioncount.optional import optional

# Voxels of a chunk along an axis of space. Most are empty, and these are not written.
_CHUNK = 256


def ome_label_files(
    labels: NDArray[Any], image: OmeImage, existence: Sequence[float], *, shapes: Sequence[tuple[int, ...]]
) -> dict[str, bytes]:
    """The files of a label image, by their names in its folder.

    It has the levels of the image from the counted one on: for the finest, as many as the image, as the format asks
    of labels that are to be put into its group ``labels``. Time and channels have a length of 1.

    Parameters
    ----------
    labels : array of int
        Along the axes of space.
    image : OmeImage
        What was counted, at its level.
    existence : sequence of float
        Of the candidates 1, 2, …: a property of each label.
    shapes : sequence of tuple of int
        Of space, at the level of the image and at each that is coarser.
    """
    zarr = optional("zarr", "cluster", "Writing OME-Zarr")
    levels = image.levels[image.level :]
    content: dict[str, Any] = {}
    group = zarr.open_group(zarr.storage.MemoryStore(content), mode="w", zarr_format=3 if image.version == "0.5" else 2)
    group.attrs.update(_attributes(image, levels, existence))
    names = {"dimension_names": [axis.name for axis in image.axes]} if image.version == "0.5" else {}
    for number, shape in enumerate(shapes):
        voxels = _with_all_axes(_coarser(labels, shape), image)
        array = group.create_array(
            str(number),
            shape=voxels.shape,
            chunks=tuple(min(_CHUNK, n) for n in voxels.shape),
            dtype=voxels.dtype,
            chunk_key_encoding={"name": "default" if names else "v2", "separator": "/"},
            **names,
        )
        array[...] = voxels
    return {name: one.to_bytes() for name, one in sorted(content.items())}


def _attributes(image: OmeImage, levels: Sequence[OmeLevel], existence: Sequence[float]) -> dict[str, Any]:
    datasets = [
        {
            "path": str(number),
            "coordinateTransformations": [
                {"type": "scale", "scale": list(level.scale)},
                {"type": "translation", "translation": list(level.translation)},
            ],
        }
        for number, level in enumerate(levels)
    ]
    axes = [axis.to_dict() for axis in image.axes]
    scales: dict[str, Any] = {"name": "lesioncount", "axes": axes, "datasets": datasets, "type": "nearest"}
    properties = [{"label-value": number, "existence": one} for number, one in enumerate(existence, start=1)]
    label: dict[str, Any] = {"properties": properties}
    if image.version == "0.5":
        return {"ome": {"version": "0.5", "multiscales": [scales], "image-label": label}}
    return {"multiscales": [{"version": "0.4"} | scales], "image-label": {"version": "0.4"} | label}


def _coarser(labels: NDArray[Any], shape: Sequence[int]) -> NDArray[Any]:
    """The voxels in the middle of those of a coarser level: labels cannot be averaged."""
    middle = tuple(
        np.minimum(((np.arange(m) + 0.5) * (n / m)).astype(int), n - 1)
        for n, m in zip(labels.shape, shape, strict=True)
    )
    picked: NDArray[Any] = labels[np.ix_(*middle)]
    return picked


def _with_all_axes(labels: NDArray[Any], image: OmeImage) -> NDArray[Any]:
    shape = [1] * len(image.axes)
    for place, n in zip(image.space, labels.shape, strict=True):
        shape[place] = n
    return labels.reshape(shape)

"""Labels of candidates → an OME-Zarr label image, in the version and with the axes of the image they were found in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lesioncount.candidates import Candidates
from lesioncount.files.ome_zarr import OmeImage, OmeLevel
from lesioncount.optional import optional

# Voxels of a chunk along an axis of space: some megabytes. Most are empty, and these are not written.
_CHUNK = 128


def last_ome_file(version: str) -> str:
    """The file of a label image that is written last: where it is, all are."""
    return "zarr.json" if version == "0.5" else ".zgroup"


def ome_label_files(
    candidates: Candidates, image: OmeImage, existence: Sequence[float], *, shapes: Sequence[tuple[int, ...]]
) -> Iterator[tuple[str, bytes]]:
    """The files of a label image, by their names in its folder: chunk by chunk, and its description last.

    It has the levels of the image from the counted one on: for the finest, as many as the image, as the format asks
    of labels that are to be put into its group ``labels``. Time and channels have a length of 1.

    Parameters
    ----------
    candidates : Candidates
        With their runs, along the axes of space.
    image : OmeImage
        What was counted, at its level.
    existence : sequence of float
        Of the candidates 1, 2, …: a property of each label.
    shapes : sequence of tuple of int
        Of space, at the level of the image and at each that is coarser.
    """
    zarr = optional("zarr", "cluster", "Writing OME-Zarr")
    files: dict[str, Any] = {}
    group = zarr.open_group(zarr.storage.MemoryStore(files), mode="w", zarr_format=3 if image.version == "0.5" else 2)
    group.attrs.update(_attributes(image, image.levels[image.level :][: len(shapes)], existence))
    names = {"dimension_names": [axis.name for axis in image.axes]} if image.version == "0.5" else {}
    arrays = [
        group.create_array(
            str(number),
            shape=_with_all_axes(shape, image),
            chunks=_with_all_axes([min(_CHUNK, n) for n in shape], image),
            dtype=np.uint16 if len(candidates) < 1 << 16 else np.int32,
            chunk_key_encoding={"name": "default" if names else "v2", "separator": "/"},
            **names,
        )
        for number, shape in enumerate(shapes)
    ]
    described = dict(files)
    for array, shape in zip(arrays, shapes, strict=True):
        for place, labels in candidates.label_blocks((_CHUNK,) * len(shape), shape=shape):
            files.clear()
            array[_index(place, image)] = labels.reshape(_with_all_axes(labels.shape, image))
            yield from ((name, content.to_bytes()) for name, content in files.items())
    last = last_ome_file(image.version)
    yield from ((name, described[name].to_bytes()) for name in sorted(described, key=lambda one: (one == last, one)))


def list_label(path: Path, version: str) -> None:
    """Name a label image in the group of labels that it is in; the group is made if it is not there."""
    zarr = optional("zarr", "cluster", "Writing OME-Zarr")
    group = zarr.open_group(str(path.parent), mode="a", zarr_format=3 if version == "0.5" else 2)
    content = dict(group.attrs)
    listed = content.get("ome", {"version": version}) if version == "0.5" else content
    listed = {**listed, "labels": [*listed.get("labels", ()), path.name]}
    group.attrs.update({"ome": listed} if version == "0.5" else listed)


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


def _with_all_axes(of_space: Sequence[int], image: OmeImage) -> tuple[int, ...]:
    """The length along each axis of the image, given those along the axes of space."""
    lengths = iter(of_space)
    return tuple(next(lengths) if axis.kind == "space" else 1 for axis in image.axes)


def _index(place: Sequence[slice], image: OmeImage) -> tuple[slice, ...]:
    slices = iter(place)
    return tuple(next(slices) if axis.kind == "space" else slice(0, 1) for axis in image.axes)

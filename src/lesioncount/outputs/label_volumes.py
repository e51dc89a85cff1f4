"""Labels of candidates as zarr: an array, or a label image of OME-Zarr; chunk by chunk, and only those with labels."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lesioncount.candidates import Candidates
from lesioncount.errors import MapFileError
from lesioncount.files.ome_zarr import OmeImage, OmeLevel
from lesioncount.folder.output import OutputFolder
from lesioncount.optional import optional

# Files that are written together, more or less in bytes.
_TOGETHER = 1 << 24

# Voxels of a chunk along an axis of space: some megabytes. Most are empty, and these are not written.
_CHUNK = 128

# The files that are written last, of an array and of a label image of each version: where they are, all are.
LAST_OF_ARRAY = ".zarray"
LAST_OF_OME = {"0.4": ".zgroup", "0.5": "zarr.json"}


def check_new_volume(path: Path) -> None:
    """Raise if something of this name is there."""
    if path.exists() or path.is_symlink():
        raise MapFileError(f"{path} is there already. Choose another name for the label map, or remove it.")


def write_label_volume(path: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write the files of labels as a new zarr array, or as a new label image of OME-Zarr."""
    check_new_volume(path)
    for name, content in files:
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def write_labels_into(folder: OutputFolder, name: str, all_files: Iterable[tuple[str, bytes]]) -> None:
    """Write the same into a folder of results, where it may replace what we wrote before."""
    made: set[str] = set()
    for files in _batches(all_files):
        folder.write_together({f"{name}/{file}": content for file, content in files.items()})
        made.update(f"{name}/{file}" for file in files)
    remove_store(folder, name, but=made)


def remove_store(folder: OutputFolder, name: str, *, but: Collection[str] = ()) -> None:
    """Remove those files of an array or a label image in a folder of results that are ours, and folders left empty."""
    if not (folder.path / name).is_dir():  # of very many scans, most have none
        return
    for file in folder.names():
        if file.startswith(f"{name}/") and file not in but:
            folder.remove(file)
    for below, _, _ in os.walk(folder.path / name, topdown=False):
        folder.remove_empty(Path(below).relative_to(folder.path).as_posix())


def label_files(candidates: Candidates, chunks: tuple[int, ...]) -> Iterator[tuple[str, bytes]]:
    """The files of a zarr array of labels, by their names: its description comes last, when all chunks are there.

    Labels are 0 outside, and i + 1 in the voxels of row i.
    """
    zarr = optional("zarr", "cluster", "Writing zarr")
    dtype = np.uint16 if len(candidates) < 1 << 16 else np.int32
    files: dict[str, Any] = {}
    # Version 2, which everybody reads, and whose description is not called .json: a check sum in it would not be zarr.
    array = zarr.create_array(files, shape=candidates.shape, chunks=chunks, dtype=dtype, fill_value=0, zarr_format=2)
    description = {name: content.to_bytes() for name, content in files.items()}
    for index, labels in candidates.label_blocks(chunks):
        files.clear()
        array[index] = labels
        yield from ((name, content.to_bytes()) for name, content in files.items())
    yield from description.items()


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
    last = LAST_OF_OME[image.version]
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


def _batches(files: Iterable[tuple[str, bytes]]) -> Iterator[dict[str, bytes]]:
    batch: dict[str, bytes] = {}
    n_bytes = 0
    for name, content in files:
        batch[name] = content
        n_bytes += len(content)
        if n_bytes > _TOGETHER:
            yield batch
            batch, n_bytes = {}, 0
    yield batch

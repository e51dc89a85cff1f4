"""Label maps of volumes, written as zarr: chunk by chunk, and only chunks that hold something."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lesioncount.candidates import Candidates
from lesioncount.errors import MapFileError
from lesioncount.folder.output import OutputFolder
from lesioncount.optional import optional

# Files that are written together, more or less in bytes.
_TOGETHER = 1 << 24


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

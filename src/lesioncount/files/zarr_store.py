"""zarr arrays, chunk by chunk: for volumes larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import MapFileError
from lesioncount.files.geometry import VoxelGrid
from lesioncount.files.source import MapSource, chosen_channel, planes_per_piece
from lesioncount.optional import optional


def open_zarr(path: Path, channel: int | None = None) -> MapSource:
    """A zarr array of two or three axes, or of four with the channel first."""
    zarr = optional("zarr", "cluster", "Reading zarr")
    try:
        array = zarr.open_array(str(path), mode="r")
    except Exception as error:  # noqa: BLE001 - zarr raises many kinds for a store that is none
        raise MapFileError(
            f"{path} is not a zarr array: {str(error).rstrip('.')}. If it is a group, give an array in it, as {path}/0."
        ) from None
    if array.ndim not in (2, 3, 4) or 0 in array.shape:
        raise MapFileError(f"{path}: a map has two or three axes with voxels, but this array's shape is {array.shape}.")
    dtype = np.dtype(array.dtype)
    if dtype.kind not in "biuf":
        raise MapFileError(f"{path}: values of type {dtype} cannot be probabilities.")
    n_channels = array.shape[0] if array.ndim == 4 else 1
    chosen = chosen_channel(path, n_channels, channel)
    leading = (chosen,) if array.ndim == 4 else ()
    shape = tuple(int(n) for n in array.shape[-3:]) if array.ndim >= 3 else tuple(int(n) for n in array.shape)
    # Whole chunks, so that none is decompressed twice; as many as make a piece of a good size.
    chunk = int(array.chunks[len(leading)])
    n_planes = max(chunk, planes_per_piece(shape, 0, dtype.itemsize) // chunk * chunk)

    def pieces() -> Iterator[NDArray[Any]]:
        for begin in range(0, shape[0], n_planes):
            try:
                yield np.asarray(array[(*leading, slice(begin, begin + n_planes))])
            except Exception as error:  # noqa: BLE001 - codecs raise many kinds for a damaged chunk
                raise MapFileError(f"{path}: a chunk is damaged: {error}.") from None

    grid = VoxelGrid(path, shape, why_unplaced="a zarr array has no place in space")
    return MapSource(grid, "zarr", dtype, 0, pieces, n_channels=n_channels)

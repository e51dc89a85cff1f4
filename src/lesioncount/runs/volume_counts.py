"""One volume in chunks → its count, box by box: on this machine, or on the workers of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.candidates import Candidates, candidates_of
from lesioncount.checks import checked_mask, checked_spacing, defined
from lesioncount.counting import LesionCount
from lesioncount.errors import MapError, ShapeError
from lesioncount.files import open_map, open_mask
from lesioncount.files.masks import mask_on
from lesioncount.files.remote_path import check_local
from lesioncount.files.source import MapSource
from lesioncount.files.volumes import ChunkedVolume
from lesioncount.files.zarr_store import level_shapes, source_of_array
from lesioncount.outputs.label_volumes import (
    check_new_volume,
    label_files,
    list_label,
    ome_label_files,
    write_label_volume,
)
from lesioncount.protocol import CountingProtocol, ProtocolFields
from lesioncount.runs.volume_sweep import Swept, VolumeSweep, sum_here, sum_on_cluster
from lesioncount.runs.workers import CLUSTER_TIMEOUT, Watched
from lesioncount.sweep.bricks import BrickSum
from lesioncount.sweep.sizes import VoxelSize
from lesioncount.sweep.slabs import SweepPlan
from lesioncount.sweep.voxels import encoding_of

if TYPE_CHECKING:
    import zarr

# Adds up the bricks of a volume: here, in processes, or on a cluster.
SumUp = Callable[[VolumeSweep], Swept]


def count_volume(  # noqa: PLR0913 - as many as a count has options
    volume: zarr.Array[Any] | str | os.PathLike[str],
    /,
    *,
    protocol: CountingProtocol | str | None = None,
    mask: ArrayLike | str | os.PathLike[str] | None = None,
    spacing_mm: ArrayLike | None = None,
    channel: int | None = None,
    level: int | None = None,
    scale: float | None = None,
    logits: bool = False,
    client: Any = None,
    cluster_timeout: float = CLUSTER_TIMEOUT,
    jobs: int = 1,
    labels: str | os.PathLike[str] | None = None,
    keep_runs: bool = False,
    **definition: Unpack[ProtocolFields],
) -> LesionCount:
    """Count the lesions of one volume that need not fit into memory, nor any of its planes.

    Boxes of chunks are read and swept, on many machines if there is a cluster, and what was found in them is added up.
    The result is that of `count_lesions` on the whole volume. Chunks that are not stored are background and are not
    read, unless their fill value is above the threshold.

    Parameters
    ----------
    volume : zarr.Array, or path
        Of two or three axes, or of four with the channel first; or the path or address of an OME-Zarr image. The
        workers of a cluster must be able to read it.
    protocol : CountingProtocol or str, optional
        What counts as one lesion, or the name of a preset. Default: the protocol of the paper.
    mask : zarr.Array, path or array_like, optional
        Of the same shape; only voxels where it is neither 0 nor NaN are looked at. Best as zarr: then it is read box by
        box, too.
    spacing_mm : array_like, optional
        As in `count_lesions`. Default: that of an OME-Zarr image; of others it is unknown, and volumes are NaN.
    channel, level, scale, logits
        As in `count_file`.
    client : distributed.Client, optional
        Of a Dask cluster whose workers do the work.
    cluster_timeout : float, default 300
        Seconds to wait for a cluster that has lost all its workers.
    jobs : int, default 1
        Number of processes on this machine, where there is no client.
    labels : path, optional
        Write the candidates as a label map, which must not be there yet: a zarr array of the same chunks; of an
        OME-Zarr image, a label image with its levels. One at ``image.zarr/labels/name`` is listed among the labels of
        the image.
    keep_runs : bool, default False
        Keep what is needed to paint label maps from the result.
    **definition
        Fields of `CountingProtocol`, such as ``threshold=0.3``, in place of those of the protocol.
    """
    protocol = defined(protocol, definition, count_volume)
    source = _source(volume, channel, level).read_as(scale=scale, logits=logits)
    if labels is not None:
        check_new_volume(check_local(labels))
    spacing_mm = source.grid.voxel_edges_mm if spacing_mm is None else spacing_mm
    voxel_size = checked_spacing(spacing_mm, len(source.shape), protocol)
    keep = keep_runs or labels is not None
    (candidates,), _ = volume_candidates(
        source, [protocol], _mask(mask, source), voxel_size, summing_up(jobs, client, cluster_timeout), keep_runs=keep
    )
    candidates.warn(stacklevel=2)
    if labels is not None:
        _write_labels(check_local(labels), candidates, source)
    return LesionCount.of(candidates)


def _write_labels(path: Path, candidates: Candidates, source: MapSource) -> None:
    if source.ome is None:
        write_label_volume(path, label_files(candidates, volume_of(source).chunk_shape))
        return
    existence = (candidates.peak_probability - candidates.saddle_probability).tolist()
    shapes = level_shapes(source.path, source.ome)
    write_label_volume(path, ome_label_files(candidates, source.ome, existence, shapes=shapes))
    if path.absolute().parent == source.path.absolute() / "labels":
        list_label(path, source.ome.version)


def summing_up(jobs: int, client: Any, cluster_timeout: float = CLUSTER_TIMEOUT) -> SumUp:
    """Who does the work: so many processes, or the workers of a cluster."""
    if isinstance(client, str):
        raise MapError(f"Expected a client of a cluster, but got its address. Pass distributed.Client({client!r}).")
    if client is None:
        return partial(sum_here, jobs=jobs)
    return partial(sum_on_cluster, cluster=client if isinstance(client, Watched) else Watched(client, cluster_timeout))


def volume_candidates(
    source: MapSource,
    protocols: Sequence[CountingProtocol],
    mask: ChunkedVolume | NDArray[np.bool_] | None,
    voxel_size: VoxelSize | None,
    sum_up: SumUp,
    *,
    keep_runs: bool,
) -> tuple[list[Candidates], int]:
    """The candidates of a volume by several protocols, and how many voxels were looked at; runs are of the first."""
    encoding = encoding_of(source.dtype, source.scale, source.offset, source.logits)
    axes = tuple(range(len(source.shape)))
    sums = [
        BrickSum(SweepPlan(axes, source.shape, encoding, protocol), keep_runs=keep_runs and place == 0)
        for place, protocol in enumerate(protocols)
    ]
    swept = sum_up(VolumeSweep.of(volume_of(source), mask, sums))
    found = zip(sums, swept.bricks, strict=True)
    return [
        candidates_of(one.finish(brick), one.plan, source.shape, voxel_size) for one, brick in found
    ], swept.n_voxels


def volume_mask(source: MapSource, mask: str | os.PathLike[str]) -> ChunkedVolume | NDArray[np.bool_]:
    """A mask in a file: box by box where its format has chunks, else as a whole."""
    opened = open_mask(mask)
    if opened.volume is None:
        return mask_on(source.grid, opened)
    if opened.shape != source.shape:
        raise ShapeError(f"Expected a mask of the shape {source.shape}, but {opened.path} has {opened.shape}.")
    return opened.volume


def volume_of(source: MapSource) -> ChunkedVolume:
    """The chunks of a map, which must have some."""
    if source.volume is None:
        raise MapError(f"{source.path} has no chunks. Count it with lesioncount.count_file, or store it as zarr.")
    return source.volume


def _source(volume: Any, channel: int | None, level: int | None) -> MapSource:
    if isinstance(volume, str | os.PathLike):
        return open_map(volume, channel=channel, level=level)
    if level is not None:
        raise MapError("An array is one resolution of an image: leave level out, or pass the path of the image.")
    return source_of_array(volume, channel)


def _mask(mask: Any, source: MapSource) -> ChunkedVolume | NDArray[np.bool_] | None:
    if isinstance(mask, str | os.PathLike):
        return volume_mask(source, mask)
    if mask is not None and hasattr(mask, "store"):
        opened = source_of_array(mask, None)
        if opened.shape != source.shape:
            raise ShapeError(f"Expected a mask of the map's shape {source.shape}, but the mask has {opened.shape}.")
        return volume_of(opened)
    return checked_mask(mask, source.shape, np.zeros(0))

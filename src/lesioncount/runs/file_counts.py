"""One file → its count: pieces are read, counted and forgotten."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.counting import LesionCount
from lesioncount.files import MapSource, open_map
from lesioncount.files.geometry import check_same_grid
from lesioncount.protocol import CountingProtocol
from lesioncount.streaming import StreamingCounter

# The threshold of the count that everyone reports, kept beside ours in every table.
COMPONENT_THRESHOLD = 0.5

Mask = str | os.PathLike[str] | None


@dataclass(frozen=True, eq=False)
class ScanCount:
    """The count of one file.

    Attributes
    ----------
    source : MapSource
    result : LesionCount
    component_count : int
        Number of connected components above 0.5 of the same connectivity and smallest size: the usual count.
    warnings : tuple of str
        What to think of before using the count.
    """

    source: MapSource
    result: LesionCount
    component_count: int
    warnings: tuple[str, ...]


def count_file(
    path: str | os.PathLike[str],
    /,
    *,
    protocol: CountingProtocol | None = None,
    mask: Mask = None,
    channel: int | None = None,
    scale: float | None = None,
    logits: bool = False,
    keep_runs: bool = False,
) -> ScanCount:
    """Count the lesions of a map in a file, without holding the map where the format allows it.

    Parameters
    ----------
    path : path
        Any file that `open_map` reads. The voxel size is the file's.
    protocol : CountingProtocol, optional
        What counts as one lesion. Default: the protocol of the paper.
    mask : path, optional
        A file of the same grid; only voxels where it is neither 0 nor NaN are looked at.
    channel, scale, logits
        As in `open_map`.
    keep_runs : bool, default False
        Keep what is needed to paint a label map.
    """
    source = open_map(path, channel=channel, scale=scale, logits=logits)
    protocol = CountingProtocol() if protocol is None else protocol
    counters = [
        _counter(source, protocol, keep_runs=keep_runs),
        _counter(source, replace(protocol, threshold=COMPONENT_THRESHOLD)),
    ]
    _push_all(counters, source, mask)
    result, components = (counter.result(warn=False) for counter in counters)
    warning = result.candidates.warning
    return ScanCount(source, result, len(components.candidates), () if warning is None else (str(warning),))


def component_counts(
    source: MapSource, /, *, thresholds: Sequence[float], protocol: CountingProtocol, mask: Mask = None
) -> tuple[int, ...]:
    """The usual count, of connected components, at several thresholds; the file is read once.

    Parameters
    ----------
    source : MapSource
    thresholds : sequence of float
        Each takes the place of the protocol's.
    protocol, mask
        As in `count_file`.
    """
    counters = [_counter(source, replace(protocol, threshold=threshold)) for threshold in thresholds]
    _push_all(counters, source, mask)
    return tuple(len(counter.result(warn=False).candidates) for counter in counters)


def _counter(source: MapSource, protocol: CountingProtocol, *, keep_runs: bool = False) -> StreamingCounter:
    return StreamingCounter(
        tuple(np.delete(source.shape, source.axis)),
        source.dtype,
        protocol,
        axis=source.axis,
        spacing_mm=source.spacing_mm,
        voxel_volume_mm3=source.grid.voxel_volume_mm3,
        scale=source.scale,
        offset=source.offset,
        logits=source.logits,
        keep_runs=keep_runs,
    )


def _push_all(counters: list[StreamingCounter], source: MapSource, mask: Mask) -> None:
    inside = None if mask is None else _inside(source, open_map(mask))
    for piece, part in _with_mask(source, inside):
        for counter in counters:
            counter.push(piece, part)


def _inside(source: MapSource, mask: MapSource) -> NDArray[np.bool_]:
    check_same_grid(source.grid, mask.grid, "the mask")
    return mask.mask()


def _with_mask(
    source: MapSource, inside: NDArray[np.bool_] | None
) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_] | None]]:
    begin = 0
    for piece in source.pieces():
        end = begin + piece.shape[source.axis]
        yield piece, None if inside is None else inside[(slice(None),) * source.axis + (slice(begin, end),)]
        begin = end

"""One file → its count: pieces are read, counted and forgotten."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.counting import LesionCount
from lesioncount.files.formats import open_map
from lesioncount.files.geometry import check_same_grid
from lesioncount.files.source import MapSource
from lesioncount.protocol import CountingProtocol
from lesioncount.streaming import StreamingCounter

# The threshold of the count that everyone reports, kept beside ours in every table.
COMPONENT_THRESHOLD = 0.5


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
    mask: str | os.PathLike[str] | None = None,
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
        A file of the same grid; only voxels where it is not zero are looked at.
    channel : int, optional
        Which map, where the file holds several.
    scale : float, optional
        What one unit of the values is worth, on top of a scale that the file itself has.
    logits : bool, default False
        Whether the values are logits.
    keep_runs : bool, default False
        Keep what is needed to paint a label map.
    """
    source = open_map(path, channel=channel)
    protocol = CountingProtocol() if protocol is None else protocol
    counters = [
        _counter(source, p, scale, logits, keep_runs=keep_runs and p is protocol)
        for p in (protocol, replace(protocol, threshold=COMPONENT_THRESHOLD))
    ]
    _push_all(counters, source, mask)
    result, components = (counter.result(warn=False) for counter in counters)
    warning = result.candidates.warning
    return ScanCount(source, result, len(components.candidates), () if warning is None else (str(warning),))


def component_counts(
    path: str | os.PathLike[str],
    /,
    *,
    thresholds: Sequence[float],
    protocol: CountingProtocol,
    mask: str | os.PathLike[str] | None = None,
    channel: int | None = None,
    scale: float | None = None,
    logits: bool = False,
) -> tuple[int, ...]:
    """The usual count, of connected components, at several thresholds; the file is read once.

    Parameters
    ----------
    thresholds : sequence of float
        Each takes the place of the protocol's.
    path, protocol, mask, channel, scale, logits
        As in `count_file`.
    """
    source = open_map(path, channel=channel)
    counters = [_counter(source, replace(protocol, threshold=t), scale, logits, keep_runs=False) for t in thresholds]
    _push_all(counters, source, mask)
    return tuple(len(counter.result(warn=False).candidates) for counter in counters)


def _push_all(counters: list[StreamingCounter], source: MapSource, mask: str | os.PathLike[str] | None) -> None:
    inside = None if mask is None else _mask_of(source, mask)
    for piece, part in _with_mask(source, inside):
        for counter in counters:
            counter.push(piece, part)


def _counter(
    source: MapSource, protocol: CountingProtocol, scale: float | None, logits: bool, *, keep_runs: bool
) -> StreamingCounter:
    both = scale if source.scale is None else source.scale * (1.0 if scale is None else scale)
    return StreamingCounter(
        tuple(np.delete(source.shape, source.axis)),
        source.dtype,
        protocol,
        axis=source.axis,
        spacing_mm=source.spacing_mm,
        voxel_volume_mm3=source.voxel_volume_mm3,
        scale=both,
        offset=source.offset * (1.0 if scale is None else scale),
        logits=logits,
        keep_runs=keep_runs,
    )


def _mask_of(source: MapSource, mask: str | os.PathLike[str]) -> NDArray[np.bool_]:
    other = open_map(mask)
    check_same_grid(source, other, "the mask")
    if other.scale is None:
        inside = [(piece != 0) & (piece == piece) for piece in other.pieces()]  # noqa: PLR0124 - NaN is not inside
    else:  # a stored 0 may be nearly 0 only: less than half a step counts as outside
        step = abs(other.scale) / 2
        inside = [np.abs(piece * other.scale + other.offset) > step for piece in other.pieces()]
    return np.concatenate(inside, axis=other.axis)


def _with_mask(
    source: MapSource, inside: NDArray[np.bool_] | None
) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_] | None]]:
    begin = 0
    for piece in source.pieces():
        end = begin + piece.shape[source.axis]
        yield piece, None if inside is None else inside[(slice(None),) * source.axis + (slice(begin, end),)]
        begin = end

"""One file → its count, pieces are read, counted and forgotten; two files → what has changed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from lesioncount.candidates import Candidates
from lesioncount.changes.coupling import DEFAULT_COUPLING
from lesioncount.changes.lesion_changes import LesionChanges, changes_between
from lesioncount.checks import checked_spacing, defined
from lesioncount.cohort.item import ScanFiles
from lesioncount.counting import LesionCount
from lesioncount.errors import LesionCountError
from lesioncount.files import MapSource, open_map, open_mask
from lesioncount.files.masks import mask_on
from lesioncount.files.remote_path import RemotePath, to_path, without_secrets
from lesioncount.protocol import CountingProtocol, ProtocolFields
from lesioncount.regions import Within
from lesioncount.results.count_warnings import UNENCRYPTED, warnings_of
from lesioncount.results.region_settings import RegionSettings, region_settings
from lesioncount.results.scan_count import COMPONENT_THRESHOLD, Mask, ScanCount
from lesioncount.results.settings import ChangeSettings
from lesioncount.runs.session_maps import read_maps
from lesioncount.runs.volume_counts import summing_up, volume_candidates, volume_mask
from lesioncount.runs.workers import CLUSTER_TIMEOUT
from lesioncount.streaming import StreamingCounter

# Of maps with more voxels no copy is held for pictures: with its labels it would take a gigabyte.
MOST_SHADES = 1 << 27


def count_file(  # noqa: PLR0913 - as many as a count of a file has options
    path: str | os.PathLike[str],
    /,
    *,
    protocol: CountingProtocol | str | None = None,
    mask: Mask = None,
    channel: int | None = None,
    scale: float | None = None,
    logits: bool = False,
    level: int | None = None,
    keep_runs: bool = False,
    keep_shades: bool = False,
    thresholds: Sequence[float] = (),
    regions: str | os.PathLike[str] | None = None,
    region_names: RegionSettings | Mapping[int, str] | str | os.PathLike[str] | None = None,
    within: str | Within | Iterable[str | Within] = (),
    jobs: int = 1,
    client: Any = None,
    cluster_timeout: float = CLUSTER_TIMEOUT,
    **definition: Unpack[ProtocolFields],
) -> ScanCount:
    """Count the lesions of a map in a file, without holding the map where the format allows it.

    Parameters
    ----------
    path : path
        Any file or address that `open_map` reads. The voxel size is the file's.
    protocol : CountingProtocol or str, optional
        What counts as one lesion, or the name of a preset. Default: the protocol of the paper.
    mask : path, optional
        A file of the same grid; only voxels where it is neither 0 nor NaN are looked at.
    channel, scale, logits, level
        As in `open_map`.
    keep_runs : bool, default False
        Keep what is needed to paint a label map.
    keep_shades : bool, default False
        Keep the map in shades of grey, for pictures.
    thresholds : sequence of float, optional
        At which to count connected components as well, besides 0.5; the file is read once.
    regions : path, optional
        A label map of the same grid: the result then has ``regions``, the count in each.
    region_names : mapping of int to str, or path, optional
        What labels are called, or a table with the columns ``index`` and ``name``. Default: their numbers.
    within : str, or sequence of str, optional
        Regions of their own, by distance: ``"periventricular = ventricles <= 3mm"``.
    jobs : int, default 1
        Number of processes that count the boxes of a zarr volume; other formats are read by one.
    client : distributed.Client, optional
        Of a Dask cluster whose workers do so instead, as in `count_volume`.
    cluster_timeout : float, default 300
        As in `count_volume`.
    **definition
        Fields of `CountingProtocol`, such as ``threshold=0.3``, in place of those of the protocol.
    """
    protocol = defined(protocol, definition, count_file)
    source = open_map(path, channel=channel, scale=scale, logits=logits, level=level)
    source.check_scale()
    known = region_settings(regions, region_names, within)
    where = None if regions is None or known is None else known.on(to_path(regions), source.grid)
    keep_runs = keep_runs or (where is not None and bool(where.within))
    protocols = [protocol, *(protocol.components_above(at) for at in (COMPONENT_THRESHOLD, *thresholds))]
    shades = _room_for_shades(source) if keep_shades else None
    if source.volume is not None and (source.volume.is_large or (shades is None and (jobs > 1 or client is not None))):
        voxel_size = checked_spacing(source.grid.voxel_edges_mm, len(source.shape), protocol)
        inside = None if mask is None else volume_mask(source, mask)
        sum_up = summing_up(jobs, client, cluster_timeout)
        found, n_voxels = volume_candidates(source, protocols, inside, voxel_size, sum_up, keep_runs=keep_runs)
        largest = None  # bricks do not keep it
    else:
        in_doubt = mask is not None or scale is not None
        found, n_voxels, largest = _streamed(source, protocols, mask, shades, keep_runs=keep_runs, in_doubt=in_doubt)
    result, (n_components, *at) = LesionCount.of(found[0]), map(len, found[1:])
    result = result if where is None else replace(result, places=where.places(result.candidates))
    warnings = warnings_of(
        result,
        n_components,
        component_threshold=COMPONENT_THRESHOLD,
        n_voxels=n_voxels,
        largest=largest,
        scale=None if logits else scale,
    )
    return ScanCount(source, result, n_components, (*warnings, *_of_the_way(source)), tuple(at), shades)


def error_in_words(error: Exception) -> str:
    """The error in the row of a file that failed: in its own words if it is foreseen, else with its name."""
    words = without_secrets(str(error))  # nobody knows what an error quotes that was not foreseen
    if isinstance(error, LesionCountError | OSError | MemoryError):
        return words or type(error).__name__
    return f"unexpected {type(error).__name__}: {words}"


def _of_the_way(source: MapSource) -> tuple[str, ...]:
    """A warning about how a map came here."""
    is_open = isinstance(source.path, RemotePath) and source.path.is_open_to_all
    return (UNENCRYPTED,) if is_open else ()


def _streamed(
    source: MapSource,
    protocols: Sequence[CountingProtocol],
    mask: Mask,
    shades: NDArray[np.uint8] | None,
    *,
    keep_runs: bool,
    in_doubt: bool,
) -> tuple[list[Candidates], int, float | None]:
    """The candidates of a map that is read plane by plane, and how many voxels were looked at.

    Where it is in doubt whether the map says anything there, also the largest probability of the whole map.
    """
    counters = [_counter(source, one, keep_runs=keep_runs and one is protocols[0]) for one in protocols]
    n_voxels, largest = _push_all(counters, source, mask, shades, in_doubt=in_doubt)
    return [counter.result(warn=False).candidates for counter in counters], n_voxels, largest


def _counter(source: MapSource, protocol: CountingProtocol, *, keep_runs: bool = False) -> StreamingCounter:
    return StreamingCounter(
        tuple(np.delete(source.shape, source.axis)),
        source.dtype,
        protocol,
        axis=source.axis,
        spacing_mm=source.grid.voxel_edges_mm,
        scale=source.scale,
        offset=source.offset,
        logits=source.logits,
        keep_runs=keep_runs,
    )


def _push_all(
    counters: list[StreamingCounter],
    source: MapSource,
    mask: Mask,
    shades: NDArray[np.uint8] | None,
    *,
    in_doubt: bool,
) -> tuple[int, float | None]:
    """Push a whole map through counters, and fill in its shades; what `_streamed` gives besides."""
    inside = None if mask is None else mask_on(source.grid, open_mask(mask))
    largest = 0.0
    for piece, part, along in _with_mask(source, inside):
        for counter in counters:
            counter.push(piece, part)
        if shades is not None:
            _fill(shades[along], source, piece, is_checked=inside is None)
        if in_doubt:
            largest = max(largest, source.largest(piece))
    n_voxels = math.prod(source.shape) if inside is None else int(np.count_nonzero(inside))
    return n_voxels, largest if in_doubt else None


def _room_for_shades(source: MapSource) -> NDArray[np.uint8] | None:
    if math.prod(source.shape) > MOST_SHADES:
        return None
    # As the pieces come, slab after slab.
    return np.empty(source.shape, np.uint8, order="F" if source.axis == len(source.shape) - 1 else "C")


def _fill(shades: NDArray[np.uint8], source: MapSource, piece: NDArray[Any], *, is_checked: bool) -> None:
    """Fill in the shades of a piece; ``is_checked``: all its numbers are known to be probabilities."""
    if is_checked and not source.logits and source.scale is None and piece.dtype.kind == "f":
        np.multiply(piece, piece.dtype.type(255), out=shades, casting="unsafe")
        return
    scaled = source.to_probabilities(piece) * np.float32(255)
    # Numbers may end outside by rounding; and outside of a mask, anything may be stored. `fmax` makes 0 of NaN.
    np.fmin(np.fmax(scaled, 0, out=scaled), 255, out=shades, casting="unsafe")


def _with_mask(
    source: MapSource, inside: NDArray[np.bool_] | None
) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_] | None, tuple[slice, ...]]]:
    """The pieces of a map, of its mask, and where they are."""
    begin = 0
    for piece in source.pieces():
        end = begin + piece.shape[source.axis]
        along = (slice(None),) * source.axis + (slice(begin, end),)
        yield piece, None if inside is None else inside[along], along
        begin = end


def compare_files(
    before: str | os.PathLike[str],
    after: str | os.PathLike[str],
    /,
    *,
    protocol: CountingProtocol | str | None = None,
    mask: str | os.PathLike[str] | None = None,
    channel: int | None = None,
    scale: float | None = None,
    logits: bool = False,
    tolerance_mm: float | None = None,
    coupling: float = DEFAULT_COUPLING,
    **definition: Unpack[ProtocolFields],
) -> LesionChanges:
    """How many lesions are new, gone and still there between two maps in files.

    Parameters
    ----------
    before, after : path
        Any files that `open_map` reads. A map on another grid of the same space is resampled to that of ``after``.
    protocol, channel, scale, logits, **definition
        As in `count_file`, for both maps.
    mask : path, optional
        On the grid of the map after; only voxels where it is neither 0 nor NaN are looked at.
    tolerance_mm, coupling
        As in `lesioncount.compare`.
    """
    settings = ChangeSettings(
        defined(protocol, definition, compare_files), channel, scale, logits, tolerance_mm, coupling
    )
    settings.check()
    later = None if mask is None else to_path(mask)
    first_path, second_path = to_path(before), to_path(after)
    scans = [ScanFiles(first_path.name, first_path), ScanFiles(second_path.name, second_path, mask=later)]
    maps = read_maps(scans, settings, ("1", "2"))
    first, second = (one.counted for one in maps.sessions)
    return changes_between(first, second, tolerance_mm=tolerance_mm, coupling=coupling)

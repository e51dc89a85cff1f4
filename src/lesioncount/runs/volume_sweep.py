"""One volume in chunks → its bricks, swept box by box, here or on many machines → their sum.

A volume is cut in two between chunks, its halves again, and so on: a tree. Boxes at its lower end are swept, and the
bricks of two halves are added on the way back. Nothing but bricks goes from one process to another, and since sums
depend on nothing else, whatever is lost with a worker is made again from the same chunks.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import WorkerDiedError
from lesioncount.files.ahead import ahead
from lesioncount.files.volumes import ChunkedVolume, MaskInMemory
from lesioncount.runs.workers import Watched, results_of
from lesioncount.sweep.boxes import Box
from lesioncount.sweep.bricks import Brick, BrickSum
from lesioncount.sweep.slabs import BadVoxels
from lesioncount.sweep.voxels import is_inside

# What is read and swept at once: large enough to make seams and calls negligible, and small enough for memory that was
# freed to be used again (glibc gives 32 MB and more back to the system at once, and the next piece pays for it).
_PIECE_BYTES = 1 << 24

# Pieces of a volume elsewhere that are on their way while one is swept.
_PIECES_AHEAD = 3

# What one task of a cluster or a process reads at most, after decompression: some tenths of a second of work, since to
# hand out a task takes some milliseconds of every process. Of smaller volumes less, so that each has several.
_TASK_BYTES = 1 << 28
_TASKS_PER_WORKER = 2

_Piece = tuple[NDArray[Any], NDArray[np.bool_] | None]


@dataclass(frozen=True, eq=False)
class Swept:
    """What was found in a box: a brick for each way to count, and how many voxels were looked at."""

    bricks: tuple[Brick, ...]
    n_voxels: int


@dataclass(frozen=True, eq=False)
class VolumeSweep:
    """A volume that is to be swept in boxes, in several ways to count at once.

    Attributes
    ----------
    volume : ChunkedVolume
        Chunks that it does not store are background.
    mask : ChunkedVolume or MaskInMemory, or None
        Where to look: what a volume does not store is outside.
    sums : tuple of BrickSum
        One for each way to count.
    has_soft, has_gray : bool
        Whether background has values between 0 and 0.5, and between 0 and 1.
    """

    volume: ChunkedVolume
    mask: ChunkedVolume | MaskInMemory | None
    sums: tuple[BrickSum, ...]
    has_soft: bool = False
    has_gray: bool = False

    @classmethod
    def of(
        cls, volume: ChunkedVolume, mask: ChunkedVolume | NDArray[np.bool_] | None, sums: Sequence[BrickSum]
    ) -> VolumeSweep:
        """A sweep that reads what is stored, and all else where it may be more than background."""
        inside = MaskInMemory(mask) if isinstance(mask, np.ndarray) else mask
        if isinstance(inside, ChunkedVolume) and not _is_outside(inside.fill_value):
            inside = inside.all_stored()
        background = cls._background(volume, sums)
        if background is None or inside is not None:
            return cls(volume.all_stored(), inside, tuple(sums))
        return cls(volume, None, tuple(sums), *background)

    @staticmethod
    def _background(volume: ChunkedVolume, sums: Sequence[BrickSum]) -> tuple[bool, bool] | None:
        """The shades of voxels that are not stored; None if they must be read."""
        if volume.fill_value is None:
            return None
        if sums[0].plan.encoding.logits and volume.fill_value == -np.inf:  # a probability of 0, though not finite
            return False, False
        voxel = np.full((1,) * len(volume.shape), volume.fill_value, volume.dtype)
        try:
            slabs = [one.plan.sweep(voxel, None, 0) for one in sums]
        except BadVoxels:
            return None
        has_soft, has_gray = slabs[0].has_soft, slabs[0].has_gray
        is_above = any(len(memoryview(slab.finish()[0])) > 0 for slab in slabs)
        return None if is_above else (has_soft, has_gray)

    @property
    def whole(self) -> Box:
        """The box of the whole volume."""
        return Box.whole(self.volume.shape)

    def within(self, box: Box) -> VolumeSweep:
        """The same sweep, which knows no more than is needed for a box."""
        mask = None if self.mask is None else self.mask.within(box)
        return replace(self, volume=self.volume.within(box), mask=mask)

    def is_quiet(self, box: Box) -> bool:
        """Whether nothing of a box need be read. With a mask, it alone decides: all that is inside is looked at."""
        return (self.volume if self.mask is None else self.mask).n_stored(box) == 0

    def nothing(self, box: Box) -> Swept:
        """What is found in a box of which nothing need be read."""
        if self.mask is not None:
            return Swept(tuple(one.nothing(box) for one in self.sums), 0)
        shades = {"has_soft": self.has_soft, "has_gray": self.has_gray}
        return Swept(tuple(one.nothing(box, **shades) for one in self.sums), box.n_voxels)

    def halves(self, box: Box, *, most_bytes: int) -> tuple[Box, Box] | None:
        """The halves of a box that holds more than so many bytes in stored chunks; None if it is small enough."""
        if self.volume.n_bytes(self.volume.n_stored(box)) <= most_bytes:
            return None
        return self.volume.halves(box)

    def sum(self, box: Box) -> Swept:
        """Sweep a box piece by piece, and add up its bricks."""
        calls = (partial(self._read, piece) for piece in self._pieces(box))
        if self.volume.is_elsewhere:
            return self._sum(box, ahead(calls, n_threads=_PIECES_AHEAD, n_ahead=_PIECES_AHEAD))
        return self._sum(box, (call() for call in calls))

    def _sum(self, box: Box, read: Iterator[_Piece]) -> Swept:
        """The same, given what is read of all its pieces, in their order."""
        if self.is_quiet(box):
            return self.nothing(box)
        halves = self._halves(box)
        if halves is None:
            return self._sweep(box, *next(read))
        return added(self.sums, *(self._sum(half, read) for half in halves))

    def _pieces(self, box: Box) -> Iterator[Box]:
        """The boxes that are read at once, in the order in which they are added."""
        if self.is_quiet(box):
            return
        halves = self._halves(box)
        if halves is None:
            yield box
        else:
            for half in halves:
                yield from self._pieces(half)

    def _halves(self, box: Box) -> tuple[Box, Box] | None:
        return None if self._is_piece(box) else self.volume.halves(box)

    def _is_piece(self, box: Box) -> bool:
        """Whether a box is read at once: it is small, and all of it is stored."""
        n_chunks = self.volume.n_chunks(box)
        return self.volume.n_bytes(n_chunks) <= _PIECE_BYTES and self.volume.n_stored(box) == n_chunks

    def _read(self, box: Box) -> _Piece:
        """The voxels of a piece, and which of them are looked at."""
        inside = None if self.mask is None else is_inside(self.mask.read(box))
        return self.volume.read(box), inside

    def _sweep(self, box: Box, voxels: NDArray[Any], inside: NDArray[np.bool_] | None) -> Swept:
        bricks = tuple(one.sweep(voxels, inside, box) for one in self.sums)
        return Swept(bricks, box.n_voxels if inside is None else int(np.count_nonzero(inside)))


def added(sums: Sequence[BrickSum], one: Swept, other: Swept) -> Swept:
    """The sum of two boxes."""
    bricks = (how.add(*pair) for how, *pair in zip(sums, one.bricks, other.bricks, strict=True))
    return Swept(tuple(bricks), one.n_voxels + other.n_voxels)


def _is_outside(fill_value: Any) -> bool:
    return fill_value is not None and not is_inside(np.asarray(fill_value)).any()


def sum_here(sweep: VolumeSweep, *, jobs: int = 1) -> Swept:
    """Sweep a volume on this machine, in so many processes."""
    if jobs == 1:
        return _sum_task((sweep, sweep.whole))
    most_bytes = _task_bytes(sweep, jobs)
    tasks = list(_tasks(sweep, sweep.whole, most_bytes))
    found: dict[Box, Swept] = {}
    for place, future in results_of(_sum_task, [(sweep.within(box), box) for box in tasks], jobs=jobs):
        found[tasks[place]] = future.result()
    return _folded(sweep, sweep.whole, found, most_bytes)


def _task_bytes(sweep: VolumeSweep, n_workers: int) -> int:
    """What a task reads at most, of so many workers."""
    stored = sweep.volume.n_bytes(sweep.volume.n_stored(sweep.whole))
    return max(_PIECE_BYTES, min(_TASK_BYTES, -(-stored // (_TASKS_PER_WORKER * n_workers))))


def _tasks(sweep: VolumeSweep, box: Box, most_bytes: int) -> Iterator[Box]:
    """The boxes at the lower end of the tree of tasks, but for those of which nothing need be read."""
    halves = sweep.halves(box, most_bytes=most_bytes)
    if sweep.is_quiet(box):
        return
    if halves is None:
        yield box
    else:
        for half in halves:
            yield from _tasks(sweep, half, most_bytes)


def _sum_task(task: tuple[VolumeSweep, Box]) -> Swept:
    sweep, box = task
    with kept_memory():
        return sweep.sum(box)


def _folded(sweep: VolumeSweep, box: Box, found: dict[Box, Swept], most_bytes: int) -> Swept:
    """The sum of a box, given those of its tasks."""
    if box in found:
        return found.pop(box)
    halves = None if sweep.is_quiet(box) else sweep.halves(box, most_bytes=most_bytes)
    if halves is None:
        return sweep.nothing(box)
    return added(sweep.sums, *(_folded(sweep, half, found, most_bytes) for half in halves))


def sum_on_cluster(sweep: VolumeSweep, cluster: Watched) -> Swept:
    """Sweep a volume on the workers of a Dask cluster, where the bricks of two halves are added as well."""
    submit = partial(cluster.client.submit, pure=False)
    most_bytes = _task_bytes(sweep, max(1, sum(cluster.client.nthreads().values())))

    def submitted(box: Box) -> Any:
        """A future, or what is known already. After its halves, so that they are added before others are swept."""
        if sweep.is_quiet(box):
            return sweep.nothing(box)
        halves = sweep.halves(box, most_bytes=most_bytes)
        if halves is None:
            return submit(_sum_task, (sweep.within(box), box))
        return submit(added, sweep.sums, *map(submitted, halves))

    total = submitted(sweep.whole)
    if isinstance(total, Swept):
        return total
    try:
        result: Swept = cluster.result(total)
    except Exception as error:
        if type(error).__name__ == "KilledWorker":  # of a package that is not imported here
            raise WorkerDiedError(f"The workers that counted it died, possibly out of memory: {error}") from None
        raise
    return result


# Names of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3

# What both are at first; and the highest that glibc lets them grow to by itself, until it is told a value.
_USUAL = 128 * 1024
_HIGHEST_TRIM, _HIGHEST_MMAP = 64 * 1024 * 1024, 32 * 1024 * 1024

# More than a task has in its hands at a time: what is read, what it is decoded from, and what is found in it.
_KEPT = 256 * 1024 * 1024


@contextmanager
def kept_memory() -> Iterator[None]:
    """Let glibc keep what is freed, for as long as a task runs; elsewhere, do nothing.

    A task that reads a volume piece by piece asks for the same memory again and again. Where it is given back to the
    system in between, that fills it with zeros each time, which takes as long as reading and counting together. glibc
    does so with pieces and chunks of tens of megabytes; and Dask tells its workers to do so with everything.
    """
    mallopt = _mallopt()
    if mallopt is None:
        yield
        return
    mallopt(_TRIM_THRESHOLD, _KEPT)
    mallopt(_MMAP_THRESHOLD, _KEPT // 2)
    try:
        yield
    finally:
        trim, mmap = _wanted()
        mallopt(_TRIM_THRESHOLD, trim)
        mallopt(_MMAP_THRESHOLD, mmap)


def _wanted() -> tuple[int, int]:
    """What the process was started with, as workers of Dask are, or what comes closest to it."""
    try:
        return int(os.environ["MALLOC_TRIM_THRESHOLD_"]), _USUAL
    except (KeyError, ValueError):
        return _HIGHEST_TRIM, _HIGHEST_MMAP


@lru_cache(maxsize=1)
def _mallopt() -> Callable[[int, int], int] | None:
    if sys.platform != "linux":
        return None
    try:
        found: Callable[[int, int], int] = ctypes.CDLL(None).mallopt  # musl has none
    except (OSError, AttributeError):
        return None
    return found

"""Memory that a task has freed stays with its process until the task ends."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

# Names of glibc's malloc.h, and its own values.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_USUAL = 128 * 1024

# More than a task has in its hands at a time: what is read, what it is decoded from, and what is found in it.
_KEPT = 256 * 1024 * 1024


@contextmanager
def kept_memory() -> Iterator[None]:
    """Let glibc keep what is freed, for as long as a task runs; elsewhere, do nothing.

    Dask tells its workers to give everything back to the system at once. A task that reads a volume piece by piece then
    asks for the same memory again and again, and the system fills it with zeros each time, which takes as long as
    reading and counting together.
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
        mallopt(_TRIM_THRESHOLD, _wanted_of_dask())
        mallopt(_MMAP_THRESHOLD, _USUAL)


def _wanted_of_dask() -> int:
    """What the process was started with."""
    try:
        return int(os.environ["MALLOC_TRIM_THRESHOLD_"])
    except (KeyError, ValueError):
        return _USUAL


@lru_cache(maxsize=1)
def _mallopt() -> Callable[[int, int], int] | None:
    if sys.platform != "linux":
        return None
    try:
        found: Callable[[int, int], int] = ctypes.CDLL(None).mallopt  # musl has none
    except (OSError, AttributeError):
        return None
    return found

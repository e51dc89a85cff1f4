"""Memory that a task has freed stays with its process until the task ends."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

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

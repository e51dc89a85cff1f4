"""Scans counted one after the other, in several processes, or on a cluster: summaries as they come."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from lesioncount.errors import MapFileError
from lesioncount.optional import optional
from lesioncount.runs.records import Scan, Settings, count_scan

_SECONDS_TO_CONNECT = 10


def count_scans(
    scans: list[Scan], settings: Settings, out: Path, *, jobs: int, cluster: str | None
) -> Iterator[dict[str, Any]]:
    """Count scans and give their summaries in the order in which they are done."""
    if cluster is None and (jobs == 1 or len(scans) <= 1):
        yield from (count_scan(scan, settings, out) for scan in scans)
        return
    left = {scan.name: scan for scan in scans}
    with _executor(jobs, cluster) as executor:
        for summary in _counted_by(executor, scans, settings, out):
            del left[summary["scan"]]
            yield summary
    # A worker that dies takes its pool with it, and does not say what it was working on: the rest goes one by one, so
    # that the death of a process can be put down to a scan.
    for scan in left.values():
        yield _counted_alone(scan, settings, out)


def failure(scan: Scan, why: str) -> dict[str, Any]:
    """The summary of a scan that has none of its own."""
    return {"scan": scan.name, "status": "failed", "error": why, "count": None, "input": {"path": str(scan.path)}}


def _counted_by(executor: Executor, scans: list[Scan], settings: Settings, out: Path) -> Iterator[dict[str, Any]]:
    """Summaries as they come. Scans that a broken pool has lost are left out."""
    try:
        futures = {executor.submit(count_scan, scan, settings, out): scan for scan in scans}
    except BrokenProcessPool:  # a worker died while scans were still being handed out
        return
    try:
        for future in as_completed(futures):
            try:
                yield future.result()
            except BrokenProcessPool:
                continue
            except Exception as error:  # noqa: BLE001 - a cluster has errors of its own: a worker killed again and again
                yield failure(futures[future], f"{type(error).__name__}: {error}")
    except (KeyboardInterrupt, GeneratorExit):
        executor.shutdown(wait=True, cancel_futures=True)
        raise


def _counted_alone(scan: Scan, settings: Settings, out: Path) -> dict[str, Any]:
    with _executor(1, None) as executor:
        try:
            return executor.submit(count_scan, scan, settings, out).result()
        except BrokenProcessPool:
            return failure(scan, "the process that counted it died, possibly for want of memory")


@contextmanager
def _executor(jobs: int, cluster: str | None) -> Iterator[Executor]:
    if cluster is None:
        # A fresh interpreter per worker: forking one that has threads may lock up.
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as executor:
            yield executor
        return
    distributed = optional("distributed", "cluster", "Counting on a cluster")
    try:
        client = distributed.Client(cluster, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise MapFileError(f"There is no Dask scheduler at {cluster}: {error}.") from None
    with client, client.get_executor() as executor:
        yield executor

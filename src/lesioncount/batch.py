"""Many maps → one folder of results: counted side by side, resumed where a run stopped."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from lesioncount.errors import MapFileError
from lesioncount.io.atomic import remove_left_overs, write_text
from lesioncount.io.inputs import counterpart, find_maps, name_scans
from lesioncount.io.optional import optional
from lesioncount.io.records import Scan, Settings, count_scan, is_done, read_record, to_json
from lesioncount.io.tables import COUNT_COLUMNS, LESION_COLUMNS, to_tsv

# A worker that dies takes the pool with it; what was not done is tried again this often before it counts as failed.
_RESTARTS = 2

_SECONDS_TO_CONNECT = 10

Progress = Callable[[dict[str, Any], int, int], None]


@dataclass(frozen=True)
class BatchResult:
    """What a run did: one summary per scan, in the order of the inputs."""

    out: Path
    summaries: tuple[dict[str, Any], ...]
    interrupted: bool = False

    @property
    def failed(self) -> tuple[dict[str, Any], ...]:
        """The summaries of scans that could not be counted."""
        return tuple(summary for summary in self.summaries if summary["status"] != "ok")


def count_batch(
    inputs: Sequence[str | Path],
    out: str | Path,
    /,
    *,
    settings: Settings | None = None,
    mask: str | Path | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> BatchResult:
    """Count all maps of some files, folders or globs, and write tables and records into a folder.

    Parameters
    ----------
    inputs : sequence of path
        Files, folders (searched through and through) or glob patterns.
    out : path
        Folder of the results; made if it is not there.
    settings : Settings, optional
        Protocol, channel, scale, logits, and whether to write label maps.
    mask : path, optional
        A mask for all maps, or a folder with a mask of the same name for each.
    jobs : int, default 1
        Number of processes.
    cluster : str, optional
        Address of a Dask scheduler that does the work instead. Its workers must see the same files.
    resume : bool, default False
        Keep what is there and still right: same files, same settings, no error.
    overwrite : bool, default False
        Do everything again, over what is there.
    progress : callable, optional
        Called with the summary of a scan, the number of scans done, and the number of all.
    """
    settings = Settings() if settings is None else settings
    scans = _scans(inputs, mask, Path(out))
    out = _prepared(Path(out), resume=resume, overwrite=overwrite)
    begin = time.time()
    todo = [scan for scan in scans if not (resume and is_done(scan, settings, out))]
    done: dict[str, dict[str, Any]] = {}
    for scan in scans:
        if scan not in todo:
            done[scan.name] = _summary(out, scan)
            _tell(progress, done[scan.name], len(done), len(scans))
    interrupted = False
    try:
        for summary in _counted(todo, settings, out, jobs, cluster):
            done[summary["scan"]] = summary
            _tell(progress, summary, len(done), len(scans))
    except KeyboardInterrupt:
        interrupted = True
    summaries = tuple(done[scan.name] for scan in scans if scan.name in done)
    _write_tables(out, summaries)
    _write_run(out, settings, summaries, begin, {"jobs": jobs, "cluster": cluster, "interrupted": interrupted})
    return BatchResult(out, summaries, interrupted)


def _scans(inputs: Sequence[str | Path], mask: str | Path | None, out: Path) -> list[Scan]:
    paths = name_scans(find_maps(inputs, leave_out=out))
    if mask is None:
        return [Scan(name, path) for name, path in paths.items()]
    if not Path(mask).exists():
        raise MapFileError(f"The mask {mask} does not exist.")
    return [Scan(name, path, counterpart(Path(mask), path)) for name, path in paths.items()]


def _prepared(out: Path, *, resume: bool, overwrite: bool) -> Path:
    if (out / "run.json").exists() and not (resume or overwrite):
        raise MapFileError(
            f"{out} holds the results of an earlier run. Choose another folder, go on with it (--resume), or do "
            "everything again (--overwrite)."
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
        remove_left_overs(out)
    except OSError as error:
        raise MapFileError(f"The folder {out} cannot be made: {error.strerror}.") from None
    return out


def _counted(
    scans: list[Scan], settings: Settings, out: Path, jobs: int, cluster: str | None
) -> Iterator[dict[str, Any]]:
    if cluster is None and (jobs == 1 or len(scans) <= 1):
        yield from (count_scan(scan, settings, out) for scan in scans)
        return
    left = {scan.name: scan for scan in scans}
    for attempt in range(_RESTARTS + 1):
        with _executor(jobs, cluster) as executor:
            for summary in _counted_by(executor, list(left.values()), settings, out, attempt == _RESTARTS):
                del left[summary["scan"]]
                yield summary
        if not left:
            return


def _counted_by(
    executor: Executor, scans: list[Scan], settings: Settings, out: Path, last_attempt: bool
) -> Iterator[dict[str, Any]]:
    """Summaries as they come. Scans whose worker died are left out, unless there is no other attempt."""
    try:
        futures = {executor.submit(count_scan, scan, settings, out): scan for scan in scans}
    except BrokenProcessPool:  # a worker died while the scans were still being handed out
        futures = {}
    try:
        for future in as_completed(futures):
            try:
                yield future.result()
            except BrokenProcessPool:
                if last_attempt:
                    yield _failure(futures[future], "the process that counted it died, possibly for want of memory")
            except Exception as error:  # noqa: BLE001 - a cluster has errors of its own, such as a worker killed again and again
                yield _failure(futures[future], f"{type(error).__name__}: {error}")
    except KeyboardInterrupt:
        executor.shutdown(wait=False, cancel_futures=True)
        raise


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


def _failure(scan: Scan, why: str) -> dict[str, Any]:
    return {"scan": scan.name, "status": "failed", "error": why, "count": None, "input": {"path": str(scan.path)}}


def _summary(out: Path, scan: Scan) -> dict[str, Any]:
    record = read_record(out, scan.name) or _failure(scan, "its record is gone")
    return {key: record.get(key) for key in ("scan", "status", "error", "count", "input", "warnings")}


def _tell(progress: Progress | None, summary: dict[str, Any], done: int, total: int) -> None:
    if progress is not None:
        progress(summary, done, total)


def _write_tables(out: Path, summaries: tuple[dict[str, Any], ...]) -> None:
    rows = [{**(summary["count"] or {}), **summary} for summary in summaries]
    write_text(out / "counts.tsv", to_tsv(COUNT_COLUMNS, rows))
    lesions = (
        {"scan": summary["scan"], **row}
        for summary in summaries
        if summary["status"] == "ok"
        for row in (read_record(out, summary["scan"]) or {}).get("lesions", ())
    )
    write_text(out / "lesions.tsv", to_tsv(LESION_COLUMNS, lesions))


def _write_run(
    out: Path, settings: Settings, summaries: tuple[dict[str, Any], ...], begin: float, run: dict[str, Any]
) -> None:
    packages = ("lesioncount", "numpy", "nibabel", "isal")
    content = {
        "settings": asdict(settings),
        "run": run,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(begin)),
        "seconds": round(time.time() - begin, 3),
        "n_ok": sum(summary["status"] == "ok" for summary in summaries),
        "n_failed": sum(summary["status"] != "ok" for summary in summaries),
        "inputs": [
            {
                "scan": summary["scan"],
                "status": summary["status"],
                "error": summary["error"],
                **(summary["input"] or {}),
            }
            for summary in summaries
        ],
    }
    write_text(out / "run.json", to_json(content))

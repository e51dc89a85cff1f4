"""Many maps → one folder of results: counted side by side, resumed where a run stopped."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lesioncount.errors import CalibrationError, MapFileError
from lesioncount.files.atomic import remove_left_overs, write_text
from lesioncount.runs.inputs import counterpart, find_maps, match_members, name_scans
from lesioncount.runs.records import Scan, Settings, foreign_file, is_done, read_record, remove_results, to_json
from lesioncount.runs.tables import (
    CALIBRATED_COLUMNS,
    CONFORMAL_COLUMNS,
    COUNT_COLUMNS,
    ENSEMBLE_COLUMNS,
    LESION_COLUMNS,
    MEMBER_COLUMNS,
    columns_of,
    to_tsv,
)
from lesioncount.runs.workers import count_scans, failure

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
    members: bool = False,
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
        Files, folders (searched through and through) or glob patterns. With ``members``, two or more folders that hold
        maps of the same scans under the same names.
    out : path
        Folder of the results; made if it is not there.
    settings : Settings, optional
        Protocol, channel, scale, logits, and whether to write label maps.
    mask : path, optional
        A mask for all maps, or a folder with a mask of the same name for each.
    members : bool, default False
        Whether each input is one member of an ensemble: the count of a scan is the mixture of its members' counts.
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
    out = Path(out)
    scans = _scans(inputs, mask, out, members=members)
    _check_calibration(settings, members=members)
    _prepared(out, scans, settings, resume=resume, overwrite=overwrite)
    begin = time.time()
    run: dict[str, Any] = {"jobs": jobs, "cluster": cluster, "status": "running"}
    _write_run(out, settings, (), begin, run)  # from here on the folder is ours, also if the run is killed
    done: dict[str, dict[str, Any]] = {}
    interrupted = False
    try:
        todo = []
        for scan in scans:
            if resume and is_done(scan, settings, out):
                done[scan.name] = _summary(out, scan)
                _tell(progress, done[scan.name], len(done), len(scans))
            else:
                todo.append(scan)
        for summary in count_scans(todo, settings, out, jobs=jobs, cluster=cluster):
            done[summary["scan"]] = summary
            _tell(progress, summary, len(done), len(scans))
    except KeyboardInterrupt:
        interrupted = True
    summaries = tuple(done[scan.name] for scan in scans if scan.name in done)
    remove_left_overs(out)  # of workers that died
    _write_tables(out, summaries)
    _write_run(out, settings, summaries, begin, run | {"status": "interrupted" if interrupted else "finished"})
    return BatchResult(out, summaries, interrupted)


def _scans(inputs: Sequence[str | Path], mask: str | Path | None, out: Path, *, members: bool) -> list[Scan]:
    if mask is not None and not Path(mask).exists():
        raise MapFileError(f"The mask {mask} does not exist.")
    if not members:
        return [_scan(name, path, mask) for name, path in name_scans(find_maps(inputs, leave_out=out)).items()]
    return [replace(_scan(name, paths[0], mask), members=paths) for name, paths in match_members(inputs, out).items()]


def _check_calibration(settings: Settings, *, members: bool) -> None:
    fit = settings.calibration
    if fit is not None:
        fit.calibration.check_protocol(settings.protocol)
    if settings.conformal and (fit is None or fit.conformal is None):
        raise CalibrationError(
            "Guaranteed intervals need a calibration that was fitted on scans with known truth (lesioncount calibrate, "
            "not with --positive-weight), and --calibration FILE."
        )
    if settings.conformal and fit is not None and fit.conformal is not None:
        fit.conformal.conformal.check(0.9)
    if settings.conformal and members:
        raise CalibrationError(
            "Guaranteed intervals hold for maps of one network, as they were calibrated, and not for an ensemble. "
            "Leave --interval conformal out, or count one member."
        )


def _scan(name: str, path: Path, mask: str | Path | None) -> Scan:
    try:
        return Scan(name, path, None if mask is None else counterpart(Path(mask), path))
    except MapFileError as error:  # a scan without its mask is one that fails, as any other
        return Scan(name, path, problem=str(error))


def _prepared(out: Path, scans: list[Scan], settings: Settings, *, resume: bool, overwrite: bool) -> None:
    """Make the folder, and see that nothing is written over that should not be."""
    if (out / "run.json").exists() and not (resume or overwrite):
        raise MapFileError(
            f"{out} holds the results of an earlier run. Choose another folder, go on with it (--resume), or do "
            "everything again (--overwrite)."
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
        remove_left_overs(out)
        if overwrite and not resume:
            remove_results(out)
    except OSError as error:
        raise MapFileError(f"The folder {out} cannot be used: {error.strerror}.") from None
    for scan in scans:
        foreign = foreign_file(out, scan.name, labels=settings.save_labels)
        if foreign is not None:
            raise MapFileError(
                f"{foreign} is not a result of an earlier run, and would be written over. Choose another folder."
            )


def _summary(out: Path, scan: Scan) -> dict[str, Any]:
    record = read_record(out, scan.name) or failure(scan, "its record is gone")
    return {key: record.get(key) for key in ("scan", "status", "error", "count", "input", "warnings")}


def _tell(progress: Progress | None, summary: dict[str, Any], done: int, total: int) -> None:
    if progress is not None:
        progress(summary, done, total)


def _write_tables(out: Path, summaries: tuple[dict[str, Any], ...]) -> None:
    rows = [{**(summary["count"] or {}), **summary} for summary in summaries]
    optional = {"total_volume_mm3": (*CALIBRATED_COLUMNS, *CONFORMAL_COLUMNS, *ENSEMBLE_COLUMNS)}
    write_text(out / "counts.tsv", to_tsv(columns_of(COUNT_COLUMNS, rows, optional), rows))
    records = [read_record(out, summary["scan"]) or {} for summary in summaries if summary["status"] == "ok"]
    lesions = [{"scan": record["scan"], **row} for record in records for row in record.get("lesions", ())]
    columns = columns_of(LESION_COLUMNS, lesions, {"label": ("member",), "existence": ("existence_calibrated",)})
    write_text(out / "lesions.tsv", to_tsv(columns, lesions))
    members = [{"scan": record["scan"], **row} for record in records for row in record.get("members", ())]
    if members:
        write_text(out / "members.tsv", to_tsv(MEMBER_COLUMNS, members))
    else:
        (out / "members.tsv").unlink(missing_ok=True)  # of an earlier run


def _write_run(
    out: Path, settings: Settings, summaries: tuple[dict[str, Any], ...], begin: float, run: dict[str, Any]
) -> None:
    packages = ("lesioncount", "numpy", "nibabel", "isal")
    content = {
        "settings": settings.to_dict(),
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

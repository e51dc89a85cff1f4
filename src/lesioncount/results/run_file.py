"""What ``run.json`` holds: how a run counted, and what became of each of its scans."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Self

from lesioncount.cohort.item import FileFacts, Known, ScanFiles
from lesioncount.errors import MapFileError
from lesioncount.files.remote_path import without_secrets
from lesioncount.folder.plain import read_json, to_json, typed
from lesioncount.results.earlier import RUN_FILE, WAITING
from lesioncount.results.record import ScanSummary
from lesioncount.results.settings import CountedWith

Status = Literal["running", "finished", "interrupted"]
_PACKAGES = ("lesioncount", "numpy", "nibabel", "isal")


def versions_now() -> dict[str, str]:
    """Versions of Python and the packages that a count depends on."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


def time_now() -> str:
    """Date and time, for people."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime())


@dataclass(frozen=True, slots=True)
class RunScan:
    """What became of a scan: its error, or None; and the path of its map, where it is known."""

    name: str
    status: str
    error: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class _Input:
    """The same by the keys that the file has."""

    scan: str
    status: str
    error: str | None = None
    path: str | None = None


@dataclass(frozen=True)
class Run:
    """A run of ``lesioncount count``.

    Attributes
    ----------
    counted_with : CountedWith
    jobs : int
    cluster : str or None
    status : {"running", "finished", "interrupted"}
    began : float
        Seconds since the epoch.
    versions : dict
        Of Python and the packages that a count depends on.
    scans : tuple of RunScan
        In the order of the inputs.
    started : str
        Date and time, for people.
    command : str or None
        What was typed; None from Python.
    given : tuple of str or None
        What maps were given with: a mask, members. None if that is not known.
    """

    counted_with: CountedWith
    jobs: int = 1
    cluster: str | None = None
    status: Status = "running"
    versions: Mapping[str, str] = field(default_factory=versions_now)
    started: str = field(default_factory=time_now)
    scans: tuple[RunScan, ...] = ()
    command: str | None = None
    given: tuple[str, ...] | None = None

    @property
    def known(self) -> dict[str, Known]:
        """The names of its scans, and whose they are."""
        return {scan.name: Known((scan.path,)) for scan in self.scans if scan.path is not None}

    @property
    def settings(self) -> dict[str, Any]:
        """How it counted, as plain values."""
        return self.counted_with.to_dict()

    def to_json(
        self,
        summaries: Sequence[ScanSummary] = (),
        waiting: Sequence[ScanFiles] = (),
        *,
        seconds: float = 0.0,
        files: Mapping[str, str] | None = None,
    ) -> str:
        """As text, with the scans it has come to, those that wait, and the SHA-256 of the files it has written."""
        inputs = [
            {"scan": one.name, "status": one.status, "error": one.error}
            | ({} if one.files is None else one.files.to_dict())
            for one in summaries
        ]
        inputs += [
            {"scan": one.name, "status": WAITING, "error": None} | FileFacts.unread(one).to_dict() for one in waiting
        ]
        cluster = None if self.cluster is None else without_secrets(self.cluster)
        n_ok = sum(summary.is_counted for summary in summaries)
        return to_json(
            {
                "settings": self.settings,
                "run": {
                    "jobs": self.jobs,
                    "cluster": cluster,
                    "status": self.status,
                    "command": self.command,
                    "given": self.given,
                },
                "versions": self.versions,
                "started": self.started,
                "seconds": round(seconds, 3),
                "n_ok": n_ok,
                "n_failed": len(summaries) - n_ok,
                "inputs": inputs,
                "files": files or {},
            }
        )

    @classmethod
    def from_plain(cls, content: Any) -> Self:
        """From what its file holds; ValueError, KeyError, TypeError or one of our errors if it is no run."""
        content = typed(content, dict[str, Any])
        how = typed(content["run"], dict[str, Any])
        versions = typed(content["versions"], dict[str, str])
        if "lesioncount" not in versions:  # the page says who counted
            raise KeyError("lesioncount")
        return cls(
            CountedWith.from_dict(typed(content["settings"], dict[str, Any])),
            typed(how.get("jobs", 1), int),
            typed(how.get("cluster"), str | None),
            typed(how.get("status", "finished"), Status),
            versions,
            typed(content["started"], str),
            tuple(
                RunScan(one.scan, one.status, one.error, one.path)
                for one in typed(content["inputs"], tuple[_Input, ...])
            ),
            typed(how.get("command"), str | None),
            typed(how.get("given"), tuple[str, ...] | None),
        )


def find_run(out: Path) -> Run | None:
    """The run whose results are in a folder; None when there is none, or its file is not one of ours."""
    try:
        return Run.from_plain(read_json(out / RUN_FILE))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


def read_run(out: Path) -> Run:
    """The run whose results are in a folder."""
    run = find_run(out)
    if run is None:
        raise MapFileError(
            f"Expected the results of a run in {out}, but its run.json is not there or cannot be read. Count first: "
            f"lesioncount count MAPS -o {out}"
        )
    return run

"""What ``run.json`` holds: how a run counted or compared, and what became of each of its scans or patients."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from lesioncount.cohort.item import FileFacts, Known, ScanFiles
from lesioncount.files.remote_path import without_secrets
from lesioncount.folder.atomic import is_certified_text
from lesioncount.folder.plain import cells, decoded, flat, to_json
from lesioncount.results.record import CHANGES, Record
from lesioncount.results.recorded import Recorded, held_once

if TYPE_CHECKING:
    from lesioncount.cohort.courses import Course

# Where a run is described.
RUN_FILE = "run.json"

# Of an input that a run has not come to: it was stopped, or goes on.
WAITING = "waiting"

Status = Literal["running", "finished", "interrupted"]
_PACKAGES = ("lesioncount", "numpy", "nibabel", "isal")

# The keys that a file has, whatever is in them.
_ALWAYS = {"settings", "run", "versions", "started", "seconds", "n_ok", "n_failed", "files"}
_OF_COUNTS, _OF_CHANGES = frozenset(_ALWAYS | {"inputs"}), frozenset(_ALWAYS | {"kind", "alone", "patients"})


def versions_now() -> dict[str, str]:
    """Versions of Python and the packages that a count depends on."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


def time_now() -> str:
    """Date and time, for people."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime())


class How(Struct, frozen=True):
    """How a run is done.

    Attributes
    ----------
    jobs : int
    cluster : str or None
    status : {"running", "finished", "interrupted"}
    command : str or None
        What was typed; None from Python.
    given : tuple of str
        What maps were given with: a mask, members.
    """

    jobs: int = 1
    cluster: str | UnsetType | None = UNSET
    status: Status = "finished"
    command: str | UnsetType | None = UNSET
    given: tuple[str, ...] | UnsetType | None = UNSET


class _Outcome(Struct, frozen=True, gc=False):
    scan: str = ""
    patient: str = ""
    status: str = ""
    error: str | None = ""
    paths: tuple[str, ...] = ()


class RunItem(flat(_Outcome, FileFacts)):  # type: ignore[misc]  # has the fields of both
    """What became of a scan, whose files are known, or of a patient, with the paths of the maps."""

    @classmethod
    def of(cls, record: Record) -> Self:
        """From its record."""
        if record.is_of_changes:
            return cls(patient=record.name, status=record.status, error=record.error, paths=record.paths)
        files = {} if record.input is None else cells(record.input)
        return cls(scan=record.name, status=record.status, error=record.error, **files)

    @classmethod
    def waiting(cls, item: ScanFiles | Course) -> Self:
        """What a run has not come to."""
        if isinstance(item, ScanFiles):
            return cls(scan=item.name, status=WAITING, error=None, **cells(FileFacts.unread(item)))
        return cls(patient=item.name, status=WAITING, error=None, paths=item.paths)

    @property
    def name(self) -> str:
        """That of the scan or the patient."""
        return str(self.patient or self.scan)


class Run(Struct, frozen=True):
    """A run of ``lesioncount count`` or ``lesioncount compare``.

    Attributes
    ----------
    kind : str
        "changes", if scans of patients were compared.
    settings : Recorded
    run : How
    versions : dict
        Of Python and the packages that a count depends on.
    started : str
        Date and time, for people.
    seconds : float
    n_ok, n_failed : int
    alone : tuple of str
        Of a comparison: patients with one map only.
    inputs, patients : tuple of RunItem
        What became of scans, or of patients, in the order of the inputs.
    unlike, alike : str
        How the scans differ from those of the calibration, or that they seem not to, in words; empty if that cannot be
        told: of fewer than ten scans, or if the calibration remembers none.
    outliers : tuple of str
        Scans that look unlike every single one of the calibration.
    files : dict of str to str
        The SHA-256 of the files that were written.
    """

    kind: str = ""
    settings: Recorded = Recorded()
    run: How = How()
    versions: dict[str, str] = {}
    started: str = ""
    seconds: float = 0.0
    n_ok: int = 0
    n_failed: int = 0
    alone: tuple[str, ...] = ()
    inputs: tuple[RunItem, ...] = ()
    patients: tuple[RunItem, ...] = ()
    unlike: str = ""
    alike: str = ""
    outliers: tuple[str, ...] = ()
    files: dict[str, str] = {}

    @classmethod
    def begun(
        cls,
        settings: Recorded,
        *,
        jobs: int = 1,
        cluster: str | None = None,
        command: str | None = None,
        given: tuple[str, ...] = (),
        alone: tuple[str, ...] = (),
    ) -> Self:
        """One that begins now."""
        how = How(jobs, None if cluster is None else without_secrets(cluster), "running", command, given)
        kind = CHANGES if settings.is_of_changes else ""
        return cls(kind, settings, how, versions_now(), time_now(), alone=alone)

    @property
    def is_of_changes(self) -> bool:
        """Whether scans of patients were compared."""
        return self.kind == CHANGES

    @property
    def status(self) -> Status:
        """How it ended, or that it has not."""
        return self.run.status

    @property
    def command(self) -> str | None:
        """What was typed; None from Python, or if that is not known."""
        return self.run.command or None

    @property
    def given(self) -> tuple[str, ...] | None:
        """What maps were given with; None if that is not known."""
        return None if self.run.given is UNSET else self.run.given

    @property
    def items(self) -> tuple[RunItem, ...]:
        """What became of all scans or patients."""
        return self.patients if self.is_of_changes else self.inputs

    @property
    def is_all_failed(self) -> bool:
        """Whether it is done and came to no result at all: there is nothing to lose."""
        return self.status == "finished" and self.n_failed == len(self.items) > 0

    @property
    def known(self) -> dict[str, Known]:
        """The names of its scans or patients, and whose they are."""
        paths = ((one.name, one.paths or (one.path,)) for one in self.items)
        return {name: Known(those) for name, those in paths if any(those)}

    def with_status(self, status: Status) -> Self:
        """The same, after it has come so far."""
        return replace(self, run=replace(self.run, status=status))

    def with_likeness(self, *, unlike: str = "", alike: str = "", outliers: tuple[str, ...] = ()) -> Self:
        """The same, with whether its scans are like those of the calibration."""
        return replace(self, unlike=unlike, alike=alike, outliers=outliers)

    def with_items(
        self,
        done: Iterable[Record] = (),
        waiting: Iterable[ScanFiles | Course] = (),
        *,
        seconds: float = 0.0,
        files: Mapping[str, str] | None = None,
    ) -> Self:
        """The same with what it has come to, what waits, and the SHA-256 of the files it has written."""
        came_to = tuple(map(RunItem.of, done))
        items = (*came_to, *map(RunItem.waiting, waiting))
        n_ok = sum(one.status == "ok" for one in came_to)
        return replace(
            self,
            seconds=round(seconds, 3),
            n_ok=n_ok,
            n_failed=len(came_to) - n_ok,
            files=dict(files or {}),
            **{"patients" if self.is_of_changes else "inputs": items},
        )

    @property
    def without_items(self) -> Self:
        """The same for those who have all records at hand."""
        return replace(self, inputs=(), patients=(), files={})

    def to_json(self) -> str:
        """As text."""
        always = _OF_CHANGES if self.is_of_changes else _OF_COUNTS
        always |= {name for name in ("unlike", "alike", "outliers") if getattr(self, name)}
        values = {name: getattr(self, name) for name in self.__struct_fields__ if name in always}
        return to_json(values | {"settings": self.settings.plain})

    def checked(self) -> Self:
        """The same; ValueError or one of our errors if it is no run."""
        if self.kind not in ("", CHANGES) or self.is_of_changes != self.settings.is_of_changes:
            raise ValueError("expected a run of lesioncount count or compare, and its settings")
        if not self.started or "lesioncount" not in self.versions:
            raise ValueError("expected when it began, and by which version")
        if not all(one.name and one.status for one in self.items):
            raise ValueError("expected names, and what became of them")
        return replace(self, settings=held_once(self.settings))


def find_run(out: Path) -> Run | None:
    """The run whose results are in a folder; None when there is none, or its file is not one of ours."""
    try:
        text = (out / RUN_FILE).read_text("utf-8")
        return decoded(text, Run, is_ours=is_certified_text(RUN_FILE, text)).checked()
    except (OSError, ValueError, TypeError, OverflowError):
        return None

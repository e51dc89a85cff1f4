"""``runs.jsonl``: what has been done in a folder of results, a line per run, to which lines are only ever added."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from lesioncount.errors import MapFileError
from lesioncount.folder.output import OutputFolder
from lesioncount.folder.plain import in_one_line
from lesioncount.results.run_file import Run

HISTORY = "runs.jsonl"

# How each line begins, also one that a full disk has cut.
_BEGIN = b'{"started":'


class History:
    """The runs of a folder, and what the last of them had.

    Each line names the SHA-256 of the line before it, so that a line which was changed or taken out later is noticed.

    Parameters
    ----------
    folder : OutputFolder
        Raises `MapFileError` if a file of somebody else has the name of the history.
    """

    def __init__(self, folder: OutputFolder) -> None:
        self._folder = folder
        self._last: dict[str, Any] = {}
        self._inputs: dict[str, Any] = {}
        self._digest: str | None = None
        path = folder.path / HISTORY
        try:
            lines = [] if not path.is_symlink() and not path.exists() else path.read_bytes().splitlines()
        except OSError:
            lines = [b"a folder, or not to be read"]
        for line in filter(None, lines):
            if not line.startswith(_BEGIN):
                raise MapFileError(
                    f"{path} is not the history of runs that lesioncount writes under this name. Move it, or choose "
                    "another folder."
                )
            self._take(line)

    def add_killed(self, run: Run | None) -> None:
        """Add the earlier run in the folder, if there is one that was killed before it could do so itself."""
        if run is not None and run.status == "running" and self._last.get("started") != run.started:
            self._append(run, "killed", {name: self._inputs.get(name) for name in run.known}, {}, None)

    def add(self, run: Run, inputs: Mapping[str, Any], tables: Mapping[str, str], *, seconds: float) -> None:
        """Add a run.

        Parameters
        ----------
        run : Run
        inputs : mapping of str to list
            The hashes of what went in, by names of scans or patients. Only those that have changed are written.
        tables : mapping of str to str
            The SHA-256 of the tables that came out.
        seconds : float
            How long it took.
        """
        self._append(run, run.status, inputs, tables, round(seconds, 3))

    def _append(
        self, run: Run, status: str, inputs: Mapping[str, Any], tables: Mapping[str, str], seconds: float | None
    ) -> None:
        settings = run.settings.plain
        before, tables_before = self._last.get("settings", settings), self._last.get("tables", {})
        together = in_one_line(dict(sorted(inputs.items()))).encode("utf-8", "backslashreplace")
        content = {
            "started": run.started,
            "seconds": seconds,
            "status": status,
            "command": run.command,
            "versions": run.versions,
            "settings": settings,
            "given": run.given,
            "inputs": {"n": len(inputs), "sha256": hashlib.sha256(together).hexdigest()},
            "tables": tables,
            "changed": {
                "settings": sorted(key for key in {*settings, *before} if settings.get(key) != before.get(key)),
                "inputs": {name: one for name, one in inputs.items() if self._inputs.get(name) != one},
                "gone": sorted(set(self._inputs) - set(inputs)),
                "tables": sorted(name for name in tables if tables_before.get(name) != tables[name]),
            },
            "previous": self._digest,
        }
        line = in_one_line(content).encode("utf-8", "backslashreplace")
        self._folder.append_line(HISTORY, line)
        self._take(line)

    def _take(self, line: bytes) -> None:
        """Follow what a line says; one that a full disk has cut, or somebody has changed, says nothing."""
        try:
            content = json.loads(line)
            if not all(isinstance(content[part], dict) for part in ("settings", "tables")):
                return
            changed = content["changed"]
            inputs = {name: one for name, one in self._inputs.items() if name not in set(changed["gone"])}
            self._inputs = inputs | changed["inputs"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return
        self._last, self._digest = content, hashlib.sha256(line).hexdigest()

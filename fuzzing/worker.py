"""A process that makes inputs, has them read, and says what became of them; it may die of any."""

from __future__ import annotations

import os
import re
import resource
import shutil
import sys
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fuzzing.cases import Case, Numbers, Outcome, RefusedError, Target
from fuzzing.read_back import READ_BACK
from fuzzing.readers import MAPS
from fuzzing.tables import TABLES

TARGETS: dict[str, Target] = {**MAPS, **READ_BACK, **TABLES}

# What is a finding, and where the system stops a process: above it, so that what is in between is seen.
MOST_BYTES = 2 << 30
_HARD_LIMIT = 6 << 30

# How a command prints that there was not enough memory. A decompressor may refuse a file with other words about it.
_SAID_TO_RUN_OUT = re.compile(r"into memory|enough memory|want of memory|out of memory|MemoryError")

# Peaks this close are equal: a scale may be applied in single or double precision.
_SAME = 1e-6


def work(connection: Connection, home: Path, folder: Path) -> None:
    """Handle cases until there are no more."""
    os.setsid()  # so that it is killed together with what it has started
    resource.setrlimit(resource.RLIMIT_AS, (_HARD_LIMIT, _HARD_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    warnings.simplefilter("ignore")
    while (case := connection.recv()) is not None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _handle(connection, case, home, folder)


def _handle(connection: Connection, case: Case, home: Path, folder: Path) -> None:
    """Say ("made",), ("handled", outcome) and ("checked", outcome), one after the other."""
    target = TARGETS[case.format]
    try:
        plan = target.make(case.rng(), home, folder)
    except Exception:  # noqa: BLE001 - whatever it is, it is our own fault
        connection.send(("handled", Outcome("fuzzer", _last_line(), traceback.format_exc()[-3000:])))
        connection.send(("checked", None))
        return
    connection.send(("made", None))
    outcome, numbers = _judged(target, folder, plan)
    connection.send(("handled", outcome))
    connection.send(("checked", _compared(target, folder, plan, numbers) if outcome.kind == "accepted" else None))


def _judged(target: Target, folder: Path, plan: dict[str, Any]) -> tuple[Outcome, Numbers | None]:
    from lesioncount.errors import LesionCountError

    _forget_peak()
    numbers = None
    try:
        numbers = target.handle(folder, plan)
        outcome = Outcome("accepted")
    except (LesionCountError, RefusedError, OSError) as error:  # the command line prints these
        outcome = _refused(error)
    except MemoryError:
        outcome = Outcome("memory", _place("MemoryError"), traceback.format_exc()[-3000:])
    except BaseException as error:  # noqa: BLE001 - SystemExit and others are findings too
        outcome = Outcome("traceback", _place(type(error).__name__), traceback.format_exc()[-3000:])
    peak = _peak_bytes()
    if peak > MOST_BYTES:
        outcome = Outcome("memory", f"{peak / 2**30:.1f} GB at most", outcome.detail)
    return outcome, numbers


def _refused(error: Exception) -> Outcome:
    """A sentence is as it should be, unless only our limit of memory made it one: elsewhere, the process would die."""
    said = str(error).strip()
    if not said:
        return Outcome("traceback", "an error without a word")
    if _has_run_out(error) or (isinstance(error, RefusedError) and _SAID_TO_RUN_OUT.search(said)):
        return Outcome("memory", f"over {_HARD_LIMIT >> 30} GB asked for", said[:500])
    return Outcome("refused", detail=said[:500])


def _has_run_out(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, MemoryError):
        error = error.__context__
    return error is not None


def _compared(target: Target, folder: Path, plan: dict[str, Any], numbers: Numbers | None) -> Outcome | None:
    if target.check is None or numbers is None:
        return None
    try:
        right = target.check(folder, plan)
    except Exception:  # noqa: BLE001 - other readers refuse what we accept: no number to compare with
        return None
    if right is None:
        return None
    same = numbers.n == right.n and all(
        abs(a - b) <= _SAME * max(1, abs(b)) for a, b in zip(numbers.peaks, right.peaks, strict=True)
    )
    if same:
        return None
    return Outcome("differs", "another number", f"counted {_shown(numbers)}, but it is {_shown(right)}")


def _shown(numbers: Numbers) -> str:
    return f"{numbers.n} with peaks {numbers.peaks[:5]}"


def _place(error: str) -> str:
    """The error, and the last of our lines that it came through: the same cause has the same place."""
    frames = traceback.extract_tb(sys.exc_info()[2])
    ours = [frame for frame in frames if "lesioncount/" in frame.filename.replace(os.sep, "/")]
    last = (ours or frames)[-1]
    return f"{error} in {Path(last.filename).name}:{last.name}"


def _last_line() -> str:
    return traceback.format_exc().strip().splitlines()[-1][:200]


def _forget_peak() -> None:
    """Make the system measure the highest memory anew."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:  # elsewhere than on Linux, the peak of the process is that of all its inputs
        return


def _peak_bytes() -> int:
    of_children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    try:
        status = Path("/proc/self/status").read_text()
        own = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024
    except OSError:
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return max(own, of_children)

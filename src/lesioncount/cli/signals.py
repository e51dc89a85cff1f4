"""Signals that end a run: as Ctrl-C does, with the tables of what was finished."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

# What schedulers, shut-downs and terminals that are closed send. Windows has no SIGHUP.
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt what is done, unless somebody has decided about them (nohup)."""
    if threading.current_thread() is not threading.main_thread():  # others cannot
        yield
        return
    before = {one: signal.getsignal(one) for one in _ENDING}
    for one in _ENDING:
        if before[one] is signal.SIG_DFL:
            signal.signal(one, _interrupt)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt

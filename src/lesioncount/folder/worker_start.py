"""What a worker process does first. Not in `runs`: a killed run must not wait for its workers to import all of that."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable


def begin(prepare: Callable[[], None] | None = None) -> None:
    """End with the parent from now on, and prepare for the first task.

    A terminal sends Ctrl-C, and that it was closed, to workers too: only the parent decides what is still finished.
    """
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if prepare is not None:
        prepare()


def _end_with_parent() -> None:
    """Two runs must not write to one folder: no worker outlives the run it belongs to."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

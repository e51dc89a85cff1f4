"""Tasks for the workers of a cluster, which cannot import test modules: pytest has those by no name that others know.

A worker that is sent a function which it cannot import closes its connection, again and again: nothing is ever done.
"""

import os
import signal
import time


def slow_task(task):
    """Sum a box, not too fast."""
    time.sleep(0.1)
    sweep, box = task
    return sweep.sum(box)


def deadly_task(_task):
    """Kill the worker."""
    os.kill(os.getpid(), signal.SIGKILL)

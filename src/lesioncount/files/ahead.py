"""Work that waits for others, begun ahead of its turn: results come in order, while the next are under way."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Result = TypeVar("Result")

# What takes less time than a thread to begin.
_FEW_BYTES = 1 << 21


def ahead(
    calls: Iterable[Callable[[], Result]], /, *, n_threads: int, n_ahead: int, wait: bool = False
) -> Generator[Result]:
    """The results of calls, in their order.

    Parameters
    ----------
    calls : iterable of callable
        Asked for one by one, so it may be endless.
    n_threads : int
        How many calls are under way at once; with 1, each begins when the one before has ended.
    n_ahead : int
        How many results may wait to be taken.
    wait : bool, default False
        Whether to wait for calls that are under way when no more results are taken: what they use may be closed next.

    Examples
    --------
    >>> list(ahead([lambda: "a", lambda: "b"], n_threads=2, n_ahead=2))
    ['a', 'b']
    """
    remaining = iter(calls)
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="lesioncount-ahead")
    waiting: deque[Future[Result]] = deque()
    try:
        waiting.extend(pool.submit(call) for call in islice(remaining, n_ahead))
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(pool.submit(call) for call in islice(remaining, 1))
            yield result
    finally:  # whoever takes the results may have had enough
        pool.shutdown(wait=wait, cancel_futures=True)


def is_worth_a_thread(n_bytes: int) -> bool:
    """Whether to work on so many bytes in a thread, beside what this one does: where a core is left for that.

    Processes side by side, as many as a user wants, have none.
    """
    import multiprocessing  # not at the top: few need it

    return n_bytes > _FEW_BYTES and multiprocessing.parent_process() is None and (os.cpu_count() or 1) > 1

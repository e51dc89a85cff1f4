"""Work that waits for others, begun ahead of its turn: results come in order, while the next are under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Result = TypeVar("Result")


def ahead(calls: Iterable[Callable[[], Result]], /, *, n_threads: int, n_ahead: int) -> Iterator[Result]:
    """The results of calls, in their order.

    Parameters
    ----------
    calls : iterable of callable
        Asked for one by one, so it may be endless.
    n_threads : int
        How many calls are under way at once; with 1, each begins when the one before has ended.
    n_ahead : int
        How many results may wait to be taken.

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
        pool.shutdown(wait=False, cancel_futures=True)

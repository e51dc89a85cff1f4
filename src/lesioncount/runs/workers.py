"""Work in several processes, or on a cluster: results as they come, whatever becomes of a single process."""

from __future__ import annotations

import logging
import multiprocessing
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from lesioncount.errors import MapFileError, WorkerDiedError, reason_of
from lesioncount.files.remote_path import without_secrets
from lesioncount.folder import worker_start
from lesioncount.optional import optional

Item = TypeVar("Item")
Result = TypeVar("Result")

_SECONDS_TO_CONNECT = 10

# How long a run waits for a cluster that has no workers left, unless it is told: Dask replaces one within seconds, a
# queue may take minutes.
CLUSTER_TIMEOUT = 300.0

# While a run waits for a cluster: between looks at its workers; and without any, until it says so, and again.
_SECONDS_TO_LOOK, _SECONDS_TO_SAY, _SECONDS_TO_REPEAT = 2.0, 10.0, 60.0

# Items that wait for each process here, so that none ever waits for an item.
_AHEAD_PER_JOB = 8


def results_of(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    /,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    cluster_timeout: float = CLUSTER_TIMEOUT,
) -> Generator[tuple[int, Future[Result]]]:
    """Call a function on every item; give the place of an item and its finished future, in the order they finish.

    Parameters
    ----------
    function : callable
        Of one item. Other processes must be able to import it.
    items : sequence
    jobs : int, default 1
        Number of processes; with 1, the work is done here, one item whenever the next result is asked for.
    cluster : str, optional
        Address of a Dask scheduler that does the work instead.
    cluster_timeout : float
        Seconds to wait for a cluster that has lost all its workers; then, what is left is cancelled.
    """
    if cluster is not None:
        yield from _on_cluster(function, items, cluster, cluster_timeout)
        return
    if jobs == 1 or len(items) <= 1:
        yield from ((place, _called(function, item)) for place, item in enumerate(items))
        return
    with Workers(jobs) as executor:
        try:
            # Not all at once: a hundred thousand that wait, as those of a report, would take hundreds of megabytes.
            yield from _handed_out(executor, function, items, _AHEAD_PER_JOB * jobs)
        except (KeyboardInterrupt, GeneratorExit):
            executor.shutdown(wait=True, cancel_futures=True)
            raise


def _on_cluster(
    function: Callable[[Item], Result], items: Sequence[Item], address: str, seconds: float
) -> Iterator[tuple[int, Future[Result]]]:
    with connected(address) as client:
        executor = client.get_executor()
        try:
            # All at once: nobody knows how many items a cluster takes.
            yield from _handed_out(executor, function, items, len(items), Watched(client, seconds))
        finally:
            executor.shutdown(wait=False)  # cancels what nobody waits for any more


def _handed_out(
    executor: Executor,
    function: Callable[[Item], Result],
    items: Sequence[Item],
    n_ahead: int,
    cluster: Watched | None = None,
) -> Iterator[tuple[int, Future[Result]]]:
    """Places and futures as they finish. Nothing here holds a result once the caller has asked for the next one."""
    finished: SimpleQueue[Future[Result]] = SimpleQueue()
    places: dict[Future[Result], int] = {}

    def next_finished() -> Future[Result]:
        while cluster is not None:
            with suppress(Empty):
                return finished.get(timeout=_SECONDS_TO_LOOK)
            if cluster.is_lost():
                for future in places:
                    future.cancel()  # which finishes it
        return finished.get()

    for n_out, item in enumerate(items):
        if n_out >= n_ahead:
            future = next_finished()
            yield places.pop(future), future
        future = executor.submit(function, item)
        places[future] = n_out
        future.add_done_callback(finished.put)
    while places:
        future = next_finished()
        yield places.pop(future), future


def _called(function: Callable[[Item], Result], item: Item) -> Future[Result]:
    future: Future[Result] = Future()
    try:
        future.set_result(function(item))
    except Exception as error:  # noqa: BLE001 - as from another process: for the caller to look at
        future.set_exception(error)
    return future


@dataclass(eq=False)
class _Task:
    """A call that is waiting or under way."""

    call: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)
    is_suspect: bool = False


class Workers(Executor):
    """Processes that work side by side and survive each other's death.

    When a process dies, its pool breaks, and nothing says which task killed it. So only as many tasks are handed out as
    the processes can hold. Those under way when a pool breaks are suspects: in a new pool, each is tried again alone.
    One that breaks its pool again fails with `WorkerDiedError`; all others are unaffected. Workers end when their
    parent does, however that ends.

    Parameters
    ----------
    n_processes : int
    prepare : callable, optional
        Called once in each process before its first task.
    """

    def __init__(self, n_processes: int, *, prepare: Callable[[], None] | None = None) -> None:
        self._n, self._prepare = n_processes, prepare
        self._waiting: deque[_Task] = deque()
        self._suspects: deque[_Task] = deque()
        self._running: set[_Task] = set()
        self._changed = threading.Condition(threading.RLock())
        self._is_closed = self._is_cancelled = False
        self._pool = self._new_pool()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a call done in one of the processes."""
        task = _Task(partial(fn, *args, **kwargs))
        with self._changed:
            if self._is_closed:
                raise RuntimeError("These workers have been shut down.")
            self._waiting.append(task)
            self._hand_out()
        return task.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks; wait for those that were taken, or cancel those that have not begun."""
        with self._changed:
            self._is_closed = True
            while cancel_futures and self._waiting:
                self._waiting.popleft().future.cancel()
            if cancel_futures:  # whoever stops the run may have stopped its processes, too: nothing is tried again
                self._is_cancelled = True
                self._suspects.clear()
            while wait and (self._waiting or self._suspects or self._running):
                self._changed.wait()
        self._pool.shutdown(wait=wait)

    def _new_pool(self) -> ProcessPoolExecutor:
        # A fresh interpreter per worker: forking one that has threads may lock up.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(
            self._n, mp_context=context, initializer=worker_start.begin, initargs=(self._prepare,)
        )

    def _hand_out(self) -> None:
        """Give tasks to the pool: suspects one at a time, others one more than there are processes."""
        while not any(task.is_suspect for task in self._running):
            if self._suspects:
                if self._running:
                    return
                task = self._suspects.popleft()
                task.is_suspect = True
            elif self._waiting and len(self._running) <= self._n:
                task = self._waiting.popleft()
                if not task.future.set_running_or_notify_cancel():
                    continue
            else:
                return
            self._running.add(task)
            try:
                under_way = self._pool.submit(task.call)
            except BrokenProcessPool as error:  # it broke just now: as if it had broken a moment later
                under_way = Future()
                under_way.set_exception(error)
            except BaseException:  # a signal: nobody would ever say that this task is done
                self._running.discard(task)
                raise
            under_way.add_done_callback(partial(self._done, task, self._pool))

    def _done(self, task: _Task, pool: ProcessPoolExecutor, under_way: Future[Any]) -> None:
        error = under_way.exception()
        with self._changed:
            self._running.discard(task)
            if isinstance(error, BrokenProcessPool):
                if pool is self._pool:
                    self._pool = self._new_pool()
                    pool.shutdown(wait=False)
                if not task.is_suspect and not self._is_cancelled:
                    self._suspects.append(task)
                    task = _Task(task.call)  # nobody waits for this one
                error = WorkerDiedError("The process that worked on it died, possibly out of memory.")
            self._hand_out()
            self._changed.notify_all()
        if error is not None:
            task.future.set_exception(error)
        else:
            task.future.set_result(under_way.result())


class Watched:
    """A Dask cluster that may lose its workers while a run waits for it, which is then said, and ends.

    Parameters
    ----------
    client : distributed.Client
    seconds : float
        How long to wait for workers when there are none.
    """

    def __init__(self, client: Any, seconds: float) -> None:
        self.client, self._seconds = client, seconds
        self._begin()

    def _begin(self) -> None:
        self._seen_at, self._say_after = time.monotonic(), _SECONDS_TO_SAY

    def is_lost(self) -> bool:
        """Whether there have been no workers for too long. Says now and then that the run waits for some."""
        if self._has_workers():
            self._begin()
        waited = time.monotonic() - self._seen_at
        if waited >= self._say_after:  # on a busy machine, perhaps only when it is too long: it is said all the same
            self._say_after = waited + _SECONDS_TO_REPEAT
            logging.getLogger("lesioncount").warning(
                "The cluster has had no workers for %.0f s: waiting for some, for %.0f s more. Why they ended is in "
                "their logs.", waited, max(self._seconds - waited, 0),
            )  # fmt: skip
        return waited >= self._seconds

    def _has_workers(self) -> bool:
        try:
            return bool(self.client.nthreads())
        except Exception:  # noqa: BLE001 - a scheduler that does not answer has none for us
            return False

    def result(self, future: Any) -> Any:
        """The result of one of the futures of the client."""
        self._begin()
        while True:
            try:
                return future.result(timeout=_SECONDS_TO_LOOK)
            except TimeoutError:
                if future.done():  # it is the error of the work itself
                    raise
            if self.is_lost():
                future.cancel()
                raise WorkerDiedError(
                    f"The cluster was lost: it has had no workers for {self._seconds:g} s. --resume continues a run."
                )


def check_reachable(address: str | None) -> None:
    """Raise if there is to be a cluster, and none can be reached."""
    if address is not None:
        with connected(address):
            pass


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the Dask scheduler at an address, which has workers."""
    distributed = optional("distributed", "cluster", "Counting on a cluster")
    shown = without_secrets(address)
    try:
        client = distributed.Client(address, timeout=_SECONDS_TO_CONNECT)
    except Exception as error:  # noqa: BLE001 - an address, a certificate or a scheduler can be wrong in many ways
        raise MapFileError(
            f"There is no Dask scheduler at {shown} that can be reached: {without_secrets(reason_of(error))}."
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_SECONDS_TO_CONNECT)
        except Exception:  # noqa: BLE001 - its time-out has had several types
            raise MapFileError(
                f"The Dask scheduler at {shown} has no workers. Start some: dask worker {shown}"
            ) from None
        yield client

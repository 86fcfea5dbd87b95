"""Runs requests in parallel, within the rate that a server allows."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

A = TypeVar("A")
B = TypeVar("B")


class Pace:
    """A rate limit that threads share. It spaces calls evenly.

    Args:
        per_minute: Most calls per minute; None for no limit.
        clock: Returns monotonic seconds.
        sleep: Waits for a number of seconds.
    """

    def __init__(
        self,
        per_minute: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._clock, self._sleep = clock, sleep
        self._next, self._lock = 0.0, threading.Lock()

    def wait(self) -> None:
        """Blocks until the caller may continue."""
        if not self._gap:
            return
        with self._lock:
            now = self._clock()
            turn = max(now, self._next)
            self._next = turn + self._gap
        if turn > now:
            self._sleep(turn - now)


class DaemonPool(Generic[A, B]):
    """Calls a function in threads that a program does not wait for at its end.

    Threads exist while there is work. Cancelled items are not begun.

    Args:
        work: The function.
        threads: Most calls at the same time.
    """

    def __init__(self, work: Callable[[A], B], threads: int) -> None:
        self._work, self._threads, self._running = work, threads, 0
        self._waiting: deque[tuple[A, Future[B]]] = deque()
        self._lock = threading.Lock()

    def submit(self, item: A) -> Future[B]:
        """Queues one call."""
        future: Future[B] = Future()
        with self._lock:
            self._waiting.append((item, future))
            begin = self._running < self._threads
            self._running += begin
        if begin:
            threading.Thread(target=self._work_through, daemon=True).start()
        return future

    def _next(self) -> tuple[A, Future[B]] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._running -= 1
            return None

    def _work_through(self) -> None:
        """Takes items until there are none."""
        while (pair := self._next()) is not None:
            item, future = pair
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = self._work(item)
            except BaseException as error:  # the waiting caller gets it
                future.set_exception(error)
            else:
                future.set_result(result)


def in_order(futures: Sequence[Future[B]]) -> list[B]:
    """Waits for results.

    Returns:
        The results in the order of the futures.

    Raises:
        Exception: The exception of the first one that has one. Calls that have not begun by then
            are not made.
    """
    try:
        return [future.result() for future in futures]
    except BaseException:  # raised again below
        for future in futures:
            future.cancel()
        raise


def chained(first: Future[A], follow: Callable[[A], Future[B]]) -> Future[B]:
    """A future of the call that follows another one. An error of either is its error.

    Args:
        first: The first call. It is cancelled with the result, if it has not begun.
        follow: Begins the second call with the result of the first one.
    """
    last: Future[B] = Future()
    last.add_done_callback(lambda future: first.cancel() if future.cancelled() else None)

    def end(done: Future[B]) -> None:
        _pass_on(done.result, last)

    def go_on(done: Future[A]) -> None:
        if last.cancelled() or done.cancelled():
            return
        try:
            second = follow(done.result())
        except BaseException as error:  # the waiting caller gets it
            last.set_exception(error)
        else:
            second.add_done_callback(end)

    first.add_done_callback(go_on)
    return last


def _pass_on(result: Callable[[], B], to: Future[B]) -> None:
    """Sets a future to the result of a call or to its exception, unless it was cancelled."""
    if not to.set_running_or_notify_cancel():
        return
    try:
        to.set_result(result())
    except BaseException as error:  # the waiting caller gets it
        to.set_exception(error)

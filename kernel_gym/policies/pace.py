"""Runs requests in parallel, within the rate that a server allows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TypeVar

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


def side_by_side(work: Callable[[A], B], items: Sequence[A], threads: int) -> list[B]:
    """Calls a function on every item in parallel.

    The threads are daemons, so that an interrupted program does not wait for them.

    Args:
        work: The function.
        items: Its arguments.
        threads: Most calls at the same time.

    Returns:
        The results in the order of the items.

    Raises:
        Exception: The exception of the first item that raised one. Calls that have not begun by
            then are not made.
    """
    waiting: SimpleQueue[tuple[A, Future[B]]] = SimpleQueue()
    futures: list[Future[B]] = [Future() for _ in items]
    for pair in zip(items, futures, strict=True):
        waiting.put(pair)
    for _ in range(min(threads, len(items))):
        threading.Thread(target=_work_through, args=(work, waiting), daemon=True).start()
    try:
        return [future.result() for future in futures]
    except BaseException:
        _drain(waiting)
        raise


def _work_through(work: Callable[[A], B], waiting: SimpleQueue[tuple[A, Future[B]]]) -> None:
    """Takes items until the queue is empty."""
    while True:
        try:
            item, future = waiting.get_nowait()
        except Empty:
            return
        try:
            future.set_result(work(item))
        except BaseException as error:
            future.set_exception(error)


def _drain(waiting: SimpleQueue[tuple[A, Future[B]]]) -> None:
    while not waiting.empty():
        try:
            waiting.get_nowait()
        except Empty:
            return

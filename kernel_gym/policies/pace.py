"""Requests side by side, and not more of them a minute than a server allows."""

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
    """Lets so many through a minute, evenly, from any thread.

    Args:
        per_minute: How many; None for no limit.
        clock: Seconds that only grow.
        sleep: Waits for seconds.
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
        """Returns when it is this caller's turn."""
        if not self._gap:
            return
        with self._lock:
            now = self._clock()
            turn = max(now, self._next)
            self._next = turn + self._gap
        if turn > now:
            self._sleep(turn - now)


def side_by_side(work: Callable[[A], B], items: Sequence[A], threads: int) -> list[B]:
    """Does work on every item, in threads that do not hold up an interrupted program.

    Args:
        work: What is done.
        items: On what.
        threads: Items at a time, at most.

    Returns:
        The results in the order of the items.

    Raises:
        Exception: What the work raised on the first item on which it did. Items that had not begun
            by then are left out.
    """
    waiting: SimpleQueue[tuple[A, Future[B]]] = SimpleQueue()
    futures: list[Future[B]] = [Future() for _ in items]
    for pair in zip(items, futures, strict=True):
        waiting.put(pair)
    for _ in range(min(threads, len(items))):
        threading.Thread(target=_work_off, args=(work, waiting), daemon=True).start()
    try:
        return [future.result() for future in futures]
    except BaseException:
        _drain(waiting)
        raise


def _work_off(work: Callable[[A], B], waiting: SimpleQueue[tuple[A, Future[B]]]) -> None:
    """Takes items until there are none."""
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

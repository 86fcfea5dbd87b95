"""Requests that wait until a submission changes its state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from kernel_gym.service.jobs import Job


class JobWaiters:
    """The waiters of one event loop.

    Args:
        stored: Returns a submission as it is stored now, by its id and its token.
    """

    def __init__(self, stored: Callable[[str, str], Job | None]) -> None:
        self._stored = stored
        self._futures: dict[str, set[asyncio.Future[None]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Belongs to the event loop that runs now."""
        self._loop = asyncio.get_running_loop()

    async def change(self, job: Job, seconds: float) -> bool:
        """Waits until a submission has another state than a job says; false if it has not."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._futures.setdefault(job.id, set())
        waiting.add(future)
        try:
            stored = self._stored(job.id, job.token)
            if stored is None or stored.state != job.state:
                return True
            with suppress(TimeoutError):
                await asyncio.wait_for(future, seconds)
                return True
            return False
        finally:
            waiting.discard(future)
            if not waiting:
                self._futures.pop(job.id, None)

    def changed(self, name: str) -> None:
        """Wakes those who wait for a submission, by its id. Any thread may call it."""
        if name in self._futures:
            self.soon(lambda: self._wake(name))

    def soon(self, work: Callable[[], object]) -> None:
        """Runs work in the event loop, if there is one. Any thread may call it."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed, nobody waits any more
                self._loop.call_soon_threadsafe(work)

    def wake_all(self) -> None:
        """Wakes all who wait."""
        for name in list(self._futures):
            self._wake(name)

    def _wake(self, name: str) -> None:
        for future in self._futures.get(name, ()):
            if not future.done():
                future.set_result(None)

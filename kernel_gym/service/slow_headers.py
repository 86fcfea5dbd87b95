"""Closes connections that do not send the header of a request in time."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_HEADER_SECONDS = 20.0
"""Seconds for the header of a request. Without a limit a client that sends half a header holds its
connection forever, and a few thousand of them hold the service."""


class TimedHeaders(H11Protocol):
    """uvicorn's protocol with a time limit for headers."""

    header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to wait for a header."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Waits on while the header is not complete."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the wait."""
        super().connection_lost(exc)
        self._stop()

    @property
    def _waits(self) -> bool:
        """Whether no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def _watch(self) -> None:
        if not self._waits:
            self._stop()
        elif self.header_timer is None:
            self.header_timer = self.loop.call_later(MAX_HEADER_SECONDS, self._too_slow)

    def _stop(self) -> None:
        if self.header_timer is not None:
            self.header_timer.cancel()
            self.header_timer = None

    def _too_slow(self) -> None:
        self.header_timer = None
        if self._waits:
            self.transport.close()

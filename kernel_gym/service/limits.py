"""Limits the size of a request's body before anything reads it."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class TooLarge(Exception):
    """A body is longer than it may be.

    Attributes:
        limit: Most bytes of it.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(f"the body is too long: at most {limit} bytes")
        self.limit = limit


class BodyLimit:
    """Middleware that answers 413 to a body that is too long, also to one without a length.

    Args:
        app: The application.
        limit: Most bytes of a body.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app, self._limit = app, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > self._limit:
            await self._refuse(send)
            return
        size, refused = 0, False

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._limit:
                raise TooLarge(self._limit)
            return message

        async def sent(message: Message) -> None:
            """Sends an answer. After a body that is too long it is 413, whatever the answer is."""
            nonlocal refused
            if size <= self._limit:
                await send(message)
            elif not refused:
                refused = True
                await self._refuse(send)

        await self._app(scope, counted, sent)

    async def _refuse(self, send: Send) -> None:
        body = f'{{"detail": "the body is too long: at most {self._limit} bytes"}}'.encode()
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": body})

"""Serves a desk on sockets in a workspace: one for `./check`, one for MCP clients.

A request is one line of JSON, the answer another. All limits are on this side: the length of a
request, the seconds to send it, and the connections at one time.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from kernel_gym.agents.desk import Answer, Desk
from kernel_gym.agents.workspace import MCP_SOCKET, SOCKET

MAX_REQUEST = 2 << 20
"""Longest request in bytes: the longest source, with each byte as an escape of JSON."""
RETRY_SECONDS = 0.2
"""Seconds after which a connection that could not be accepted is tried again."""
READ_SECONDS = 30.0
"""Seconds in which a request must have arrived."""
CONNECTIONS = 16
"""Most connections at one time. Others are closed at once."""
MCP_CONNECTIONS = 2
"""Most MCP clients of a workspace at one time: each has a process."""


class SocketServer:
    """Accepts connections on a socket in a folder, each in a thread.

    The folder may have any length: the socket is bound by the descriptor of its folder, since the
    name of a socket has at most 107 bytes.

    Args:
        folder: The workspace.
        name: The name of the socket in it.
        handle: Serves one connection; it is closed afterwards.
        connections: Most connections at one time.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        handle: Callable[[socket.socket], None],
        connections: int = CONNECTIONS,
    ) -> None:
        self._handle = handle
        self._room = threading.BoundedSemaphore(connections)
        self._open: set[socket.socket] = set()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=place)
            self._listener.bind(f"/proc/self/fd/{place}/{name}")
            os.chmod(name, 0o666, dir_fd=place)
        finally:
            os.close(place)
        self._listener.listen(CONNECTIONS)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._accept, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Accepts no more connections and closes those that are open."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def __enter__(self) -> Self:
        """Returns the server."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the server."""
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed, or the machine has no descriptor left for now
                if self._closed.wait(RETRY_SECONDS):
                    return
                continue
            if not self._room.acquire(blocking=False):
                connection.close()
                continue
            self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError):
                self._handle(connection)
        finally:
            self._open.discard(connection)
            connection.close()
            self._room.release()


def desk_server(folder: Path, desk: Desk) -> SocketServer:
    """Serves a desk for `./check` and `./profile`.

    Args:
        folder: The workspace.
        desk: The desk of its episode.
    """

    def handle(connection: socket.socket) -> None:
        connection.settimeout(READ_SECONDS)
        answer = answer_to(desk, _line(connection))
        connection.sendall(json.dumps(answer).encode() + b"\n")

    return SocketServer(folder, SOCKET, handle)


def answer_to(desk: Desk, line: bytes) -> Answer:
    """The answer of a desk to a request.

    Args:
        desk: The desk.
        line: Any bytes; a request is `{"do": "submit", "source": "..."}`.
    """
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        return {"error": "found no JSON, expected a request of one line"}
    if not isinstance(request, dict):
        request = {}
    do = request.get("do")
    if do == "submit":
        return desk.submit(request.get("source"))
    if do == "profile":
        return desk.profile(request.get("source"))
    if do == "wait":
        return desk.last()
    if do == "best":
        return desk.best()
    if do == "show":
        return desk.show()
    return {"error": "found another request, expected 'do': submit, profile, wait, best, show"}


def _line(connection: socket.socket) -> bytes:
    """Reads up to a line feed; a request that is too long is cut, so that it is no JSON."""
    data = bytearray()
    while b"\n" not in data and len(data) <= MAX_REQUEST:
        part = connection.recv(1 << 16)
        if not part:
            break
        data += part
    return bytes(data[: MAX_REQUEST + 1])


def mcp_server(folder: Path) -> SocketServer:
    """Serves MCP for clients in a workspace: each connection gets a server process.

    Args:
        folder: The workspace; its desk must be served.
    """
    command = [sys.executable, "-P", "-m", "kernel_gym", "mcp", "--workspace", str(folder)]

    def handle(connection: socket.socket) -> None:
        process = subprocess.Popen(
            command,
            stdin=connection.fileno(),
            stdout=connection.fileno(),
            stderr=subprocess.DEVNULL,
        )
        process.wait()

    return SocketServer(folder, MCP_SOCKET, handle, MCP_CONNECTIONS)

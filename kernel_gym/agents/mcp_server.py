"""The MCP server: five tools over a backend, and the guides of architectures as resources."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kernel_gym.agents.backends import ToolBackend
from kernel_gym.agents.desk import Answer
from kernel_gym.errors import InputError

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

Returned = TypeVar("Returned")

INSTRUCTIONS = (
    "Optimise GPU kernels. list_tasks and show_task give tasks, submit_kernel evaluates a source "
    "on a judge outside and returns feedback, profile_kernel returns its profile as data. "
    "Submissions are limited. The judge has workloads that you do not see."
)
_SKILL = Path(__file__).parent / "files" / "SKILL.md"


class PortInUse(InputError, OSError):
    """The port of the server cannot be used."""


def make_server(backend: ToolBackend) -> MCPServer:
    """The server of a backend, as an object of the official SDK.

    Args:
        backend: Where the tools send submissions.
    """
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        from mcp.server.fastmcp import FastMCP as MCPServer
    server = MCPServer("kernel-gym", instructions=INSTRUCTIONS)
    _add_tools(server, backend)
    _add_resources(server)
    return server


def listen(port: int) -> socket.socket:
    """Returns a socket that listens on a local port, or on a free one if it is 0.

    Raises:
        PortInUse: Another program has the port.
    """
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise PortInUse(f"--http {port}: {error.strerror}; name another port") from None
    return listener


def serve_http(server: MCPServer, listener: socket.socket) -> None:
    """Serves over streamable HTTP at the path `/mcp` until a signal."""
    import uvicorn

    config = uvicorn.Config(server.streamable_http_app(), log_level="info", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


def _add_tools(server: MCPServer, backend: ToolBackend) -> None:
    """Adds the tools. They run in threads, so that the server answers others meanwhile."""

    @server.tool()
    async def list_tasks() -> list[dict[str, str]]:
        """Lists the tasks: id, language and a summary of each."""
        return await _in_thread(backend.list_tasks)

    @server.tool()
    async def show_task(task: str) -> Answer:
        """Shows a task: what to compute, signature, start kernel, workloads, rules."""
        return await _in_thread(backend.show_task, task)

    @server.tool()
    async def submit_kernel(task: str, source: str) -> Answer:
        """Evaluates a complete source for a task and returns feedback, outcome and speedup."""
        return await _in_thread(backend.submit, task, source)

    @server.tool()
    async def profile_kernel(task: str, source: str) -> Answer:
        """Profiles a source: its bound, hottest lines, occupancy limiter, distance to roofline.

        It costs a submission, unless the source was submitted before.
        """
        return await _in_thread(backend.profile, task, source)

    @server.tool()
    async def best_so_far(task: str) -> Answer:
        """Returns the best right kernel so far with its speedup."""
        return await _in_thread(backend.best, task)


def _add_resources(server: MCPServer) -> None:
    from kernel_gym.tasks.guide import EMBEDDED, guide

    def add(arch: str, language: str) -> None:
        @server.resource(f"kernel-gym://guides/{arch}/{language}", name=f"{arch} {language}")
        def text() -> str:
            """Returns the guide to an architecture, for authors of kernels."""
            return guide(arch, language)

    for arch in ("gfx90a", "gfx942", "gfx950"):
        for language in ("triton", "hip", *EMBEDDED):
            add(arch, language)

    @server.resource("kernel-gym://skill", name="skill")
    def skill() -> str:
        """How to work with kernel-gym."""
        return _SKILL.read_text(encoding="utf-8")


async def _in_thread(function: Callable[..., Returned], *arguments: str) -> Returned:
    return await asyncio.to_thread(function, *arguments)

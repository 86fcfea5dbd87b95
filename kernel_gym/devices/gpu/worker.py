"""A worker process on a real GPU: forked ahead, with a GPU context once it is asked for one."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kernel_gym.devices.base import Failed, FailureKind, InfraError
from kernel_gym.devices.budget import HostBudget
from kernel_gym.devices.failures import describe_exit
from kernel_gym.devices.gpu.arena import Arena
from kernel_gym.protocol.request import Request, encode
from kernel_gym.protocol.worker import ArenaCopies
from kernel_gym.sandbox.channel import BLOCK_SPIN, ChannelClosed, ChannelError, ChannelTimeout
from kernel_gym.sandbox.confine import Limits
from kernel_gym.sandbox.spawn import Child, Family, Template, TemplateError

START_TIMEOUT = 60.0
WORKER_LIMITS = Limits(memory=64 << 30, open_files=1024)
"""The driver maps much memory that it never touches."""
OWN_LIMITS = replace(WORKER_LIMITS, cpu_seconds=1 << 30)
"""Of a worker that stays as long as its judge."""
FAMILY_MEMORY = 8 << 30
"""Bytes of the host that a candidate's worker and all that it starts may hold together: CUDA and
Triton take 2 GiB of it, memory of the arena 4 GiB more where it passes through the host."""


class Worker:
    """A worker process of no task yet.

    Args:
        template: what it is forked from.
        arena: memory that it shares with the judge.
        environment: variables of its own: by which it sees its GPU, and how it uses it.
        flush: bytes that it writes to make caches cold.
        devices: device files that it may open.
        cache: folder of compiled sources of ours; empty for a worker that runs others'.

    Raises:
        InfraError: it could not be forked.
    """

    def __init__(
        self,
        template: Template,
        arena: Arena,
        environment: Mapping[str, str],
        flush: int,
        devices: Sequence[str],
        cache: str,
    ) -> None:
        options: dict[str, Any] = {"handle": arena.handle.hex(), "size": arena.size, "flush": flush}
        options |= {"devices": list(devices), "trusted": bool(cache)}
        files = [arena.file] if arena.file is not None else []
        caches = {"TRITON_CACHE_DIR": f"{cache}/triton"} if cache else {}
        limits = OWN_LIMITS if cache else WORKER_LIMITS
        writable = [cache] if cache else []
        self.cache = cache
        self.ours = bool(cache)
        """Whether it runs no sources but our own."""
        self.family = None if cache else Family(secrets.token_hex(8), FAMILY_MEMORY)
        """With whom it shares a budget of host memory."""
        self.opened = False
        """Whether it has its GPU context and the arena."""
        self._confinement: dict[str, Any] | None = None
        try:
            self.child: Child = template.fork(
                "gpu",
                files,
                options,
                limits,
                dict(environment) | caches,
                bool(cache),
                writable,
                self.family,
            )
        except TemplateError as error:
            raise InfraError(f"a worker could not be started: {error}") from error

    def ready(self) -> dict[str, Any]:
        """Waits until it listens; says how the worker is confined.

        Raises:
            InfraError: it ended before.
        """
        if self._confinement is None:
            try:
                header = self.child.channel.recv(START_TIMEOUT).header
            except ChannelError as error:
                self.close()
                raise InfraError(f"a worker could not be started: {error}") from error
            self._confinement = header["confinement"]
        return self._confinement

    def close(self) -> None:
        """Ends it and everything it started."""
        with contextlib.suppress(TemplateError):
            self.child.close()


def ask(
    worker: Worker,
    request: Request,
    timeout: float,
    copies: ArenaCopies | None,
    budget: HostBudget | None,
) -> dict[str, Any] | Failed:
    """A worker's answer; a failure of the pipe, or of time, is the candidate's.

    Args:
        worker: the process.
        request: what it is asked for.
        timeout: seconds for it.
        copies: parts of the arena that pass through the host; None where memory is shared.
        budget: of the candidate's seconds; None for sources of ours.
    """
    if budget is not None:
        timeout = min(timeout, budget.wall)
    header, buffers = encode(request)
    if copies is not None:
        header |= copies.to_json()
    channel = worker.child.channel
    start = time.monotonic()
    try:
        answer = channel.request(header, *buffers, timeout=timeout, spin=BLOCK_SPIN).header
    except ChannelTimeout:
        text = f"{request.verb}: no answer within {timeout:.0f} s"
        return Failed(FailureKind.TIMEOUT, text)
    except ChannelClosed:
        return Failed(FailureKind.RUNTIME, describe_exit(worker.child))
    except ChannelError as error:
        return Failed(FailureKind.RUNTIME, f"the worker broke the protocol: {error}")
    if budget is not None and budget.draw_wall(time.monotonic() - start):
        return Failed(FailureKind.TIMEOUT, f"{request.verb}: {budget.overrun}")
    return answer

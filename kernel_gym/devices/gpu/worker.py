"""A worker process on a real GPU. It is forked ahead, and creates its GPU context on request."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from kernel_gym.devices.base import Failed, FailureKind, InfraError
from kernel_gym.devices.budget import HostBudget
from kernel_gym.devices.failures import describe_exit
from kernel_gym.devices.gpu.arena import GpuArena
from kernel_gym.devices.operators import Operators
from kernel_gym.protocol.request import Request, encode
from kernel_gym.protocol.worker import ArenaCopies
from kernel_gym.sandbox.channel import BLOCK_SPIN, ChannelClosed, ChannelError, ChannelTimeout
from kernel_gym.sandbox.confine import WorkerLimits
from kernel_gym.sandbox.spawn import Child, Family, Template, TemplateError, shared_template

START_TIMEOUT = 60.0
WORKER_LIMITS = WorkerLimits(memory=64 << 30, open_files=1024)
"""Limits of a candidate's worker. The driver maps much memory that it never touches."""
OWN_LIMITS = replace(WORKER_LIMITS, cpu_seconds=1 << 30)
"""Limits of a worker for trusted sources, which lives as long as its judge."""
PROCESSORS = 8
"""Processor seconds that a program on files of a suite may use, for each second of the wall."""
FAMILY_MEMORY = 8 << 30
"""Bytes of host memory that a candidate's worker and its children may hold together. CUDA and
Triton take 2 GiB. The arena takes 4 GiB more where it is copied through the host."""


class GpuWorkerProcess:
    """A worker process without a task yet.

    Args:
        template: The process that it is forked from.
        arena: The memory that it shares with the judge.
        environment: Environment variables that select its GPU and configure the driver.
        flush: Bytes that it writes to make caches cold.
        devices: Device files that it may open.
        cache: A folder for compiled trusted sources; empty for a worker that runs a candidate.
        operators: Which operators of PyTorch its source may run.
        permitted: Their names, where it may run some.

    Raises:
        InfraError: It could not be forked.
    """

    def __init__(
        self,
        template: Template,
        arena: GpuArena,
        environment: Mapping[str, str],
        flush: int,
        devices: Sequence[str],
        cache: str,
        operators: Operators = Operators.NONE,
        permitted: Set[str] = frozenset(),
    ) -> None:
        options: dict[str, Any] = {"handle": arena.handle.hex(), "size": arena.size, "flush": flush}
        options |= {"devices": list(devices), "trusted": bool(cache)}
        options |= {"operators": str(operators), "permitted": sorted(permitted)}
        files = [arena.file] if arena.file is not None else []
        caches = {"TRITON_CACHE_DIR": f"{cache}/triton"} if cache else {}
        limits = OWN_LIMITS if cache else WORKER_LIMITS
        writable = [cache] if cache else []
        self.cache = cache
        self.trusted = bool(cache)
        """Whether it runs trusted sources only."""
        self.family = None if cache else Family(secrets.token_hex(8), FAMILY_MEMORY)
        """The processes that share a limit of host memory with it."""
        self.opened = False
        """Whether it has created its GPU context and opened the arena."""
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
        """Waits until the worker listens. Returns the barriers around it.

        Raises:
            InfraError: The worker ended before.
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
        """Ends the worker and everything it started."""
        with contextlib.suppress(TemplateError):
            self.child.close()


def start_upstream(
    output: int,
    environment: Mapping[str, str],
    devices: Sequence[str],
    memory: int,
    seconds: float,
) -> Child:
    """Forks a process for a program on files of a suite. It is confined as a candidate's worker.

    Args:
        output: A descriptor that takes what it prints.
        environment: Environment variables that select its GPU and configure the driver.
        devices: Device files that it may open.
        memory: Bytes of the GPU that it may use.
        seconds: Seconds of the wall that it may take.

    Raises:
        InfraError: It could not be forked.
    """
    limits = replace(WORKER_LIMITS, cpu_seconds=int(seconds) * PROCESSORS)
    family = Family(secrets.token_hex(8), FAMILY_MEMORY)
    options = {"devices": list(devices), "memory": memory}
    try:
        return shared_template().fork(
            "upstream", [output], options, limits, dict(environment), family=family
        )
    except TemplateError as error:
        raise InfraError(f"a worker could not be started: {error}") from error


def ask(
    worker: GpuWorkerProcess,
    request: Request,
    timeout: float,
    copies: ArenaCopies | None,
    budget: HostBudget | None,
) -> dict[str, Any] | Failed:
    """Sends a message and returns the answer. A broken pipe or a timeout is a failure.

    Args:
        worker: The worker.
        request: The message.
        timeout: Seconds until the answer.
        copies: Parts of the arena that pass through the host; None if the memory is shared.
        budget: The candidate's remaining seconds; None for trusted sources.
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

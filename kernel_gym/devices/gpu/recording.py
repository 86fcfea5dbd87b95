"""The pipe to a recorder: a confined process without a device that makes plans of calls."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace

from kernel_gym.devices.answers import (
    parse_failure,
)
from kernel_gym.devices.base import Failed, FailureKind, InfraError
from kernel_gym.devices.budget import HostBudget
from kernel_gym.devices.cache import cache_folder
from kernel_gym.devices.compiling import CompilerNote
from kernel_gym.devices.failures import describe_exit
from kernel_gym.protocol.request import Request, encode
from kernel_gym.sandbox.channel import (
    ChannelClosed,
    ChannelError,
    ChannelMessage,
    ChannelTimeout,
)
from kernel_gym.sandbox.confine import WorkerLimits
from kernel_gym.sandbox.spawn import Child, Family, TemplateError, shared_template

START_SECONDS = 60.0
LOAD_SECONDS = 90.0
CALL_SECONDS = 45.0
"""Seconds to compile the kernels of one call, with all configurations of autotuned kernels."""
WORKER_LIMITS = WorkerLimits(memory=5 << 30, open_files=1024)
FAMILY_MEMORY = 6 << 30
"""Bytes of host memory that a recorder and its children may hold together."""


class GpuRecorder:
    """A recorder for one source.

    Args:
        options: What it needs to know of the GPU, see `kernel_gym.worker.recording.main`.
        trusted: Whether the source is the project's own: then it has a cache and no budget.

    Raises:
        InfraError: It could not be started.
    """

    def __init__(self, options: Mapping[str, object], trusted: bool) -> None:
        self.budget = None if trusted else HostBudget()
        """The candidate's remaining seconds."""
        self._dead: Failed | None = None
        self._note = CompilerNote()
        caches = [str(cache_folder("triton"))] if trusted else []
        self.family = None if trusted else Family(secrets.token_hex(8), FAMILY_MEMORY)
        """The processes that share its limit of memory."""
        limits = replace(WORKER_LIMITS, cpu_seconds=1 << 30) if trusted else WORKER_LIMITS
        variables = {"TRITON_CACHE_DIR": caches[0]} if trusted else {}
        try:
            self._child: Child = shared_template().fork(
                *(
                    "recorder",
                    [self._note.descriptor],
                    dict(options),
                    limits,
                    variables,
                    trusted,
                    caches,
                    self.family,
                ),
                buffers=2,
            )
        except TemplateError as error:
            raise InfraError(f"a recorder could not be started: {error}") from error
        self._confinement: dict[str, object] | None = None

    @property
    def confinement(self) -> dict[str, object]:
        """The barriers around the process.

        Raises:
            InfraError: It ended before it listened.
        """
        if self._confinement is None:
            try:
                self._confinement = self._child.channel.recv(START_SECONDS).header["confinement"]
            except ChannelError as error:
                self.close()
                raise InfraError(f"a recorder could not be started: {error}") from error
        return self._confinement

    def close(self) -> None:
        """Ends the process and everything that it started."""
        with contextlib.suppress(TemplateError):
            self._child.close()
        self._note.close()

    def exchange(self, request: Request, limit: float) -> ChannelMessage | Failed:
        """Sends a request and returns the answer, or the failure that it reports or shows."""
        self.confinement  # noqa: B018 - waits until the process listens
        if self._dead is not None:
            return self._dead
        seconds = limit if self.budget is None else min(limit, self.budget.wall)
        header, buffers = encode(request)
        start = time.monotonic()
        try:
            answer = self._child.channel.request(header, *buffers, timeout=seconds)
        except ChannelTimeout:
            text = f"{request.verb}: no answer within {seconds:.0f} s{self._note.reason()}"
            return self.fail(Failed(FailureKind.TIMEOUT, text))
        except ChannelClosed:
            return self.fail(Failed(FailureKind.RUNTIME, describe_exit(self._child)))
        except ChannelError as error:
            text = f"the worker broke the protocol: {error}"
            return self.fail(Failed(FailureKind.RUNTIME, text))
        if self.budget is not None and self.budget.draw_wall(time.monotonic() - start):
            text = f"{request.verb}: {self.budget.overrun}"
            return self.fail(Failed(FailureKind.TIMEOUT, text))
        return parse_failure(answer.header["error"]) if "error" in answer.header else answer

    def fail(self, failed: Failed) -> Failed:
        """Keeps and returns a failure after which the recorder cannot be used."""
        self._dead = failed
        return failed

"""The judge's side of a launcher: starts the process, sends plans, and reads values and times."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

from kernel_gym.launcher.shared_file import SharedFile
from kernel_gym.plans.types import LaunchPlan
from kernel_gym.plans.write import write_plan
from kernel_gym.protocol import launcher as messages
from kernel_gym.protocol.request import Request, encode
from kernel_gym.sandbox.channel import (
    BLOCK_SPIN,
    Channel,
    ChannelError,
    ChannelMessage,
    ChannelTimeout,
)

START_SECONDS = 60.0
CALL_SECONDS = 15.0
"""Seconds for one request. A kernel that hangs holds the GPU for this long."""


class LauncherLostError(Exception):
    """The launcher ended or did not answer. The next plan needs another one."""


class PlanFailedError(Exception):
    """A plan does not load, or a kernel of it faulted: the candidate's failure."""


class PlanTimeoutError(PlanFailedError):
    """A kernel did not end in time."""


class NoGraphError(PlanFailedError):
    """A reference cannot be captured as a graph."""


class LauncherProcess:
    """A launcher with one device.

    Args:
        vendor: `cuda` or `rocm`.
        shared: Memory for inputs and results. Several launchers may have the same.
        flush: Bytes that make the caches of the device cold.
        library: The file of the driver's library; by default the loader finds it.
        environment: Variables besides those of this process.
        pin: Whether the driver may pin the shared memory. The simulated HIP runtime would replace
            its pages.
        staging: The handle of memory of the judge on the device; empty for none.
    """

    def __init__(
        self,
        vendor: str,
        shared: SharedFile,
        flush: int,
        library: str | None = None,
        environment: Mapping[str, str] | None = None,
        pin: bool = True,
        staging: bytes = b"",
    ) -> None:
        ours, theirs = socket.socketpair()
        options = {"vendor": vendor, "library": library, "pipe": theirs.fileno(), "flush": flush}
        options |= {"file": shared.descriptor, "bytes": shared.size, "pin": pin}
        options["staging"] = staging.hex()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "kernel_gym.launcher.main", json.dumps(options)],
            env=os.environ | dict(environment or {}),
            pass_fds=[theirs.fileno(), shared.descriptor],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._channel = Channel(ours)
        self._started = False
        self.lost = False
        """Whether another launcher is needed."""

    def ready(self) -> None:
        """Waits until the launcher has its device.

        Raises:
            LauncherLostError: It does not start, or it opens no device.
        """
        if self._started:
            return
        try:
            started = self._channel.recv(START_SECONDS).header
        except ChannelError as error:
            started = {"error": f"it does not start: {error}"}
        self._started = True
        if "error" in started:
            self.close()
            raise LauncherLostError(started["error"])

    def load(self, number: int, plan: LaunchPlan) -> list[dict[str, object]]:
        """Loads a plan in place of the one with its number; returns facts about its kernels.

        Raises:
            PlanFailedError: It does not load.
        """
        header, codes, constants = write_plan(plan)
        return self._ask(messages.LoadPlan(number, header, codes, constants)).header["kernels"]

    def load_reference(self, number: int, source: str, entry: str, arguments: list[object]) -> None:
        """Loads trusted code for PyTorch in place of the plan with its number.

        Raises:
            PlanFailedError: PyTorch failed.
        """
        self._ask(messages.LoadReference(number, source, entry, arguments))

    def execute(
        self, number: int, inputs: int, results: Sequence[int], noop: bool = False
    ) -> int | None:
        """Executes a plan once, on poisoned memory.

        Args:
            number: The plan.
            inputs: The offset of all inputs in the shared file, one behind the other. Offsets
                behind the file are in the staging memory.
            results: The offset of each output, then of each input as the call has left it.
            noop: Leave out launches.

        Returns:
            The number of a buffer beside which a kernel has written.

        Raises:
            PlanFailedError: A kernel faulted, or it does not launch.
        """
        request = messages.ExecutePlan(number, inputs, list(results), noop)
        return self._ask(request).header["damaged"]

    def time(self, calls: Sequence[Sequence[int]], graph: bool) -> list[float]:
        """Returns the seconds of calls with cold caches, which run one after the other.

        Args:
            calls: For each call the number of its plan, the offset of its inputs, and the offset of
                each output if anybody wants them. Offsets of inputs behind the shared file are in
                the staging memory.
            graph: Whether the steps are captured as a graph and replayed.

        Raises:
            PlanFailedError: A kernel faulted, or it does not launch.
            NoGraphError: A reference cannot be captured.
        """
        request = messages.TimeCalls([list(call) for call in calls], graph)
        return self._ask(request).header["seconds"]

    def close(self) -> None:
        """Ends the process."""
        self._channel.close()
        self._process.kill()
        self._process.wait()

    def _ask(self, request: Request) -> ChannelMessage:
        self.ready()
        header, buffers = encode(request)
        if self.lost:
            raise LauncherLostError("the launcher has lost its device")
        try:
            self._channel.send(header, *buffers, timeout=CALL_SECONDS)
        except ChannelError as error:
            raise self._gone(error) from error
        answer = self._receive()
        if "error" in answer.header:
            self.lost = answer.header["lost"]
            kind = PlanFailedError if answer.header["captured"] else NoGraphError
            raise kind(answer.header["error"])
        return answer

    def _receive(self) -> ChannelMessage:
        try:
            return self._channel.recv(CALL_SECONDS, spin=BLOCK_SPIN)
        except ChannelTimeout as error:
            self.lost = True
            raise PlanTimeoutError(f"no answer within {CALL_SECONDS:.0f} s") from error
        except ChannelError as error:
            raise self._gone(error) from error

    def _gone(self, error: ChannelError) -> LauncherLostError:
        self.lost = True
        return LauncherLostError(f"the launcher is gone: {error}")

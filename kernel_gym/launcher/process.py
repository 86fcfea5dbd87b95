"""The judge's side of a launcher: starts the process, sends plans, and reads values and times."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping

from kernel_gym.plans.types import LaunchPlan
from kernel_gym.plans.write import write_plan
from kernel_gym.protocol import launcher as messages
from kernel_gym.protocol.request import Request, encode
from kernel_gym.sandbox.channel import Channel, ChannelError, ChannelMessage, ChannelTimeout

START_SECONDS = 60.0
CALL_SECONDS = 30.0


class LauncherLostError(Exception):
    """The launcher ended or did not answer. The next plan needs another one."""


class PlanFailedError(Exception):
    """A plan does not load, or a kernel of it faulted: the candidate's failure."""


class LauncherProcess:
    """A launcher with one device.

    Args:
        vendor: `cuda` or `rocm`.
        library: The file of the driver's library; by default the loader finds it.
        environment: Variables besides those of this process.

    Raises:
        LauncherLostError: It does not start, or it opens no device.
    """

    def __init__(
        self,
        vendor: str,
        library: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        ours, theirs = socket.socketpair()
        words = [str(theirs.fileno()), vendor, *([library] if library else [])]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "kernel_gym.launcher.main", *words],
            env=os.environ | dict(environment or {}),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._channel = Channel(ours, buffers=1)
        self.lost = False
        """Whether another launcher is needed."""
        try:
            started = self._channel.recv(START_SECONDS).header
        except ChannelError as error:
            started = {"error": f"it does not start: {error}"}
        if "error" in started:
            self.close()
            raise LauncherLostError(started["error"])

    def load(self, plan: LaunchPlan) -> None:
        """Loads a plan in place of the one before.

        Raises:
            PlanFailedError: It does not load.
        """
        header, codes, constants = write_plan(plan)
        self._ask(messages.LoadPlan(header, codes, constants))

    def execute(self, inputs: bytes) -> list[bytes]:
        """Executes the plan once, on poisoned memory and code that was loaded for it.

        Args:
            inputs: The bytes of all inputs, one behind the other.

        Returns:
            The bytes of each output, from the first to the last element, then of each input.

        Raises:
            PlanFailedError: A kernel faulted, or it does not launch.
        """
        answer = self._ask(messages.ExecutePlan(inputs))
        pieces, place = [], 0
        for size in answer.header["sizes"]:
            pieces.append(answer.buffers[0][place : place + size])
            place += size
        return pieces

    def time(self, inputs: bytes, calls: int, graph: bool) -> list[float]:
        """Returns the seconds of calls that run one after the other.

        Args:
            inputs: The bytes of all inputs.
            calls: How many.
            graph: Whether the steps are captured as a graph and replayed.

        Raises:
            PlanFailedError: A kernel faulted, or it does not launch.
        """
        return self._ask(messages.TimePlan(calls, graph, inputs)).header["seconds"]

    def close(self) -> None:
        """Ends the process."""
        self._channel.close()
        self._process.kill()
        self._process.wait()

    def _ask(self, request: Request) -> ChannelMessage:
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
            raise PlanFailedError(answer.header["error"])
        return answer

    def _receive(self) -> ChannelMessage:
        try:
            return self._channel.recv(CALL_SECONDS)
        except ChannelTimeout as error:
            self.lost = True
            raise PlanFailedError(f"no answer within {CALL_SECONDS:.0f} s") from error
        except ChannelError as error:
            raise self._gone(error) from error

    def _gone(self, error: ChannelError) -> LauncherLostError:
        self.lost = True
        return LauncherLostError(f"the launcher is gone: {error}")

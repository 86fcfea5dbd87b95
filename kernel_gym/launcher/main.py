"""The program of the launcher: `python -m kernel_gym.launcher.main FD VENDOR [LIBRARY]`.

FD is its end of the pipe. Its first message says whether the device was opened. A fault of a
candidate's kernel is an answer; the judge ends the process then, and starts another one.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from typing import Any

from kernel_gym.inert import inert_line
from kernel_gym.launcher.driver import DriverError, GpuDriver
from kernel_gym.launcher.execution import PlanExecution
from kernel_gym.launcher.pieces import TooManyPiecesError
from kernel_gym.launcher.vendors import VENDORS
from kernel_gym.plans.limits import MAX_STEPS
from kernel_gym.plans.parse import parse_plan
from kernel_gym.plans.reading import BadPlanError
from kernel_gym.protocol import launcher as messages
from kernel_gym.protocol.request import Answer, RequestDispatcher, encode_answer
from kernel_gym.sandbox.channel import Channel, ChannelClosed

MAX_CALLS = MAX_STEPS
"""Most calls that one request times."""


class PlanLauncher:
    """Answers the judge's requests, with one plan at a time.

    Args:
        driver: The device.
    """

    def __init__(self, driver: GpuDriver) -> None:
        self._driver = driver
        self._execution: PlanExecution | None = None
        self.results: list[bytes] = []
        """Bytes that follow the JSON of the answer."""

    def load(self, plan: dict[str, Any], codes: bytes, constants: bytes) -> Answer:
        """Loads a plan in place of the one before."""

        def work() -> Answer:
            self.close()
            parsed = parse_plan(plan, codes, constants)
            self._execution = PlanExecution(self._driver, parsed)
            return messages.PlanLoaded()

        return self._trying(work)

    def execute(self, inputs: bytes) -> Answer:
        """Executes the plan once."""

        def work() -> Answer:
            execution = self._loaded()
            execution.begin(inputs)
            execution.queue()
            self.results = [*execution.outputs(), *execution.inputs()]
            return messages.PlanExecuted([len(result) for result in self.results])

        return self._trying(work)

    def time(self, calls: int, graph: bool, inputs: bytes) -> Answer:
        """Executes the plan several times and returns the times."""

        def work() -> Answer:
            if not 0 < calls <= MAX_CALLS:
                raise BadPlanError(f"{calls} calls, expected 1 to {MAX_CALLS}")
            execution = self._loaded()
            execution.begin(inputs)
            return messages.PlanTimes(execution.time(calls, graph))

        return self._trying(work)

    def close(self) -> None:
        """Frees the plan."""
        if self._execution is not None:
            self._execution.close()
            self._execution = None

    def _loaded(self) -> PlanExecution:
        if self._execution is None:
            raise BadPlanError("no plan is loaded")
        return self._execution

    def _trying(self, work: Callable[[], Answer]) -> Answer:
        """Turns what is wrong with a plan into an answer."""
        try:
            return work()
        except (BadPlanError, TooManyPiecesError) as error:
            return messages.LaunchFailed(inert_line(str(error)), lost=False)
        except DriverError as error:
            return messages.LaunchFailed(inert_line(str(error)), lost=self._is_lost())

    def _is_lost(self) -> bool:
        """Whether a fault has ended the use of the device by this process."""
        try:
            self._driver.wait()
        except DriverError:
            return True
        return False


REQUESTS = RequestDispatcher(
    "launcher",
    {
        messages.LoadPlan: PlanLauncher.load,
        messages.ExecutePlan: PlanLauncher.execute,
        messages.TimePlan: PlanLauncher.time,
    },
)
"""The requests that the judge may send."""


def main(words: list[str]) -> None:
    """Serves the judge until its end of the pipe closes."""
    channel = Channel(socket.socket(fileno=int(words[0])), buffers=2)
    try:
        driver = GpuDriver(VENDORS[words[1]], *words[2:3])
    except DriverError as error:
        channel.send({"error": inert_line(str(error))})
        return
    launcher = PlanLauncher(driver)
    channel.send({})
    while True:
        try:
            message = channel.recv()
        except ChannelClosed:
            return
        launcher.results = []
        answer = encode_answer(REQUESTS.answer(launcher, message.header, message.buffers))
        channel.send(answer, b"".join(launcher.results))


if __name__ == "__main__":
    main(sys.argv[1:])

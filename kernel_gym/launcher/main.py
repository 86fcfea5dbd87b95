"""The program of the launcher: `python -m kernel_gym.launcher.main OPTIONS`.

OPTIONS are JSON: the vendor, descriptors of the pipe and of the shared file, its bytes, the bytes
that make caches cold, and the file of the driver's library. The first message says whether the
device was opened. A fault of a candidate's kernel is an answer; the judge ends the process then,
and starts another one.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from typing import Any

from kernel_gym.inert import inert_line
from kernel_gym.launcher.driver import DriverError, GpuDriver
from kernel_gym.launcher.execution import PlanExecution
from kernel_gym.launcher.pieces import TooManyPiecesError
from kernel_gym.launcher.reference import NotCapturedError, ReferenceExecution
from kernel_gym.launcher.shared_file import SharedFile
from kernel_gym.launcher.timing import CallPlaces, CallTimer
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
        shared: Memory of the host with inputs and results.
        flush: Bytes that make caches cold.
    """

    def __init__(self, driver: GpuDriver, shared: SharedFile, flush: int) -> None:
        self._driver, self._shared = driver, shared
        self._timer = CallTimer(driver, flush)
        self._execution: PlanExecution | ReferenceExecution | None = None

    def load(self, plan: dict[str, Any], codes: bytes, constants: bytes) -> Answer:
        """Loads a plan in place of the one before."""

        def work() -> Answer:
            self.close()
            parsed = parse_plan(plan, codes, constants)
            self._execution = PlanExecution(self._driver, parsed)
            return messages.PlanLoaded(self._execution.facts)

        return self._trying(work)

    def load_reference(self, source: str, entry: str, arguments: list[Any]) -> Answer:
        """Loads trusted code in place of the plan before."""

        def work() -> Answer:
            self.close()
            self._execution = ReferenceExecution(self._driver, source, entry, arguments)
            return messages.PlanLoaded([])

        return self._trying(work)

    def execute(self, inputs: int, results: list[int], noop: bool) -> Answer:
        """Executes the plan once."""

        def work() -> Answer:
            execution = self._loaded()
            execution.begin(self._place(inputs))
            execution.queue(noop)
            execution.queue_results([self._place(one) for one in results])
            return messages.PlanExecuted(execution.damaged())

        return self._trying(work)

    def time(self, calls: list[list[int]], graph: bool) -> Answer:
        """Executes the plan several times and returns the times."""

        def work() -> Answer:
            if not 0 < len(calls) <= MAX_CALLS:
                raise BadPlanError(f"{len(calls)} calls, expected 1 to {MAX_CALLS}")
            execution = self._loaded()
            execution.renew()
            places = [[self._place(one) for one in call] for call in calls]
            timed = [CallPlaces(first, tuple(results)) for first, *results in places]
            return messages.CallTimes(self._timer.seconds(execution, timed, graph))

        return self._trying(work)

    def close(self) -> None:
        """Frees the plan."""
        if self._execution is not None:
            self._driver.wait()
            self._execution.close()
            self._execution = None

    def _place(self, offset: int) -> int:
        return self._shared.place(offset, 0)

    def _loaded(self) -> PlanExecution | ReferenceExecution:
        if self._execution is None:
            raise BadPlanError("no plan is loaded")
        return self._execution

    def _trying(self, work: Callable[[], Answer]) -> Answer:
        """Turns what is wrong with a plan into an answer."""
        try:
            return work()
        except NotCapturedError as error:
            return messages.LaunchFailed(inert_line(str(error)), self._is_lost(), captured=False)
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
        messages.LoadReference: PlanLauncher.load_reference,
        messages.ExecutePlan: PlanLauncher.execute,
        messages.TimeCalls: PlanLauncher.time,
    },
)
"""The requests that the judge may send."""


def main(words: list[str]) -> None:
    """Serves the judge until its end of the pipe closes."""
    options = json.loads(words[0])
    channel = Channel(socket.socket(fileno=options["pipe"]), buffers=2)
    try:
        driver = GpuDriver(VENDORS[options["vendor"]], options["library"])
        shared = SharedFile(options["bytes"], options["file"])
        if options["pin"]:
            driver.pin(shared.address, shared.size)
        launcher = PlanLauncher(driver, shared, options["flush"])
    except DriverError as error:
        channel.send({"error": inert_line(str(error))})
        return
    channel.send({})
    while True:
        try:
            message = channel.recv()
        except ChannelClosed:
            return
        answer = encode_answer(REQUESTS.answer(launcher, message.header, message.buffers))
        try:
            channel.send(answer)
        except ChannelClosed:
            return


if __name__ == "__main__":
    main(sys.argv[1:])

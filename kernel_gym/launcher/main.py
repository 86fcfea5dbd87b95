"""The program of the launcher: `python -m kernel_gym.launcher.main OPTIONS`.

OPTIONS are JSON: the vendor, descriptors of the pipe and of the shared file, its bytes, the bytes
that make caches cold, the file of the driver's library, and the handle of the judge's memory on the
device. The first message says whether the
device was opened. A fault of a candidate's kernel is an answer; the judge ends the process then,
and starts another one.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from functools import partial

from kernel_gym.inert import inert_line
from kernel_gym.launcher.device_memory import DeviceMemory
from kernel_gym.launcher.driver import DriverError, GpuDriver
from kernel_gym.launcher.execution import PlanExecution
from kernel_gym.launcher.pieces import TooManyPiecesError
from kernel_gym.launcher.reference import NotCapturedError, ReferenceExecution
from kernel_gym.launcher.shared_file import SharedFile
from kernel_gym.launcher.timing import CallTimer, MemoryPlace
from kernel_gym.launcher.vendors import VENDORS
from kernel_gym.plans.parse import parse_plan
from kernel_gym.plans.reading import BadPlanError
from kernel_gym.plans.types import LaunchPlan
from kernel_gym.protocol import launcher as messages
from kernel_gym.protocol.request import Answer, RequestDispatcher, encode_answer
from kernel_gym.sandbox.channel import BLOCK_SPIN, Channel, ChannelClosed

Execution = PlanExecution | ReferenceExecution


class PlanLauncher:
    """Answers the judge's requests about the plans that it was given, by their numbers.

    Code and memory of one plan are on the device at a time.

    Args:
        driver: The device.
        shared: Memory of the host with inputs and results.
        flush: Bytes that make caches cold.
        staging: The address of the judge's memory on the device, which may have them too; 0 for
            none.
    """

    def __init__(self, driver: GpuDriver, shared: SharedFile, flush: int, staging: int = 0) -> None:
        self._driver, self._shared, self._staging = driver, shared, staging
        self._timer = CallTimer(driver, flush)
        self._memory = DeviceMemory(driver)
        self._makers: dict[int, Callable[[], Execution]] = {}
        self._number = -1
        self._execution: Execution | None = None

    def load(self, number: int, plan: dict[str, object], codes: bytes, constants: bytes) -> Answer:
        """Loads a plan in place of the one with its number."""

        def work() -> Answer:
            self.close()
            parsed = parse_plan(plan, codes, constants)
            return self._add(number, partial(self._plan_execution, parsed))

        return self._trying(work)

    def load_reference(
        self, number: int, source: str, entry: str, arguments: list[object]
    ) -> Answer:
        """Loads trusted code in place of the plan with its number."""

        def work() -> Answer:
            self.close()
            self._memory.free()
            make = partial(ReferenceExecution, self._driver, source, entry, arguments)
            return self._add(number, make)

        return self._trying(work)

    def execute(self, number: int, inputs: int, results: list[int], noop: bool) -> Answer:
        """Executes a plan once."""

        def work() -> Answer:
            execution, place = self._opened(number), self._place(inputs)
            execution.prepare(place, graph=False)
            execution.begin(place)
            execution.queue(noop)
            execution.queue_results([self._place(offset) for offset in results])
            return messages.PlanExecuted(execution.damaged())

        return self._trying(work)

    def time(self, calls: list[list[int]], graph: bool) -> Answer:
        """Executes plans one after the other and returns their times."""

        def work() -> Answer:
            return messages.CallTimes([self._timed(graph, *call) for call in calls])

        return self._trying(work)

    def close(self) -> None:
        """Takes the plan that is on the device from there."""
        if self._execution is not None:
            self._driver.wait()
            self._execution.close()
            self._execution = None

    def _timed(self, graph: bool, number: int, inputs: int, *results: int) -> float:
        """Times a call. A plan has other places of code and buffers each time."""
        if isinstance(self._execution, PlanExecution):
            self.close()
        execution, places = self._opened(number), [self._place(offset) for offset in results]
        return self._timer.seconds(execution, self._place(inputs), places, graph)

    def _add(self, number: int, make: Callable[[], Execution]) -> Answer:
        self._makers.pop(number, None)
        self._execution = make()
        self._makers[number], self._number = make, number
        return messages.PlanLoaded(self._execution.facts)

    def _plan_execution(self, plan: LaunchPlan) -> Execution:
        return PlanExecution(self._driver, plan, self._memory)

    def _opened(self, number: int) -> Execution:
        """Returns the plan with a number on the device, in place of another one."""
        if number not in self._makers:
            raise BadPlanError("no plan is loaded")
        if number != self._number:
            self.close()
        if self._execution is None:
            self._execution = self._makers[number]()
            self._number = number
        return self._execution

    def _place(self, offset: int) -> MemoryPlace:
        """Returns the place of an offset: the staging memory follows the shared file."""
        if self._staging and offset >= self._shared.size:
            return MemoryPlace(self._staging + offset - self._shared.size, on_device=True)
        return MemoryPlace(self._shared.place(offset, 0), on_device=False)

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
        handle = bytes.fromhex(options["staging"])
        staging = driver.open_shared(handle) if handle else 0
        launcher = PlanLauncher(driver, shared, options["flush"], staging)
    except DriverError as error:
        channel.send({"error": inert_line(str(error))})
        return
    channel.send({})
    while True:
        try:
            message = channel.recv(spin=BLOCK_SPIN)
        except ChannelClosed:
            return
        answer = encode_answer(REQUESTS.answer(launcher, message.header, message.buffers))
        try:
            channel.send(answer)
        except ChannelClosed:
            return


if __name__ == "__main__":
    main(sys.argv[1:])

"""Executes one plan on a driver: for values, or for times."""

from __future__ import annotations

from kernel_gym.launcher.driver import DriverError, GpuDriver
from kernel_gym.launcher.pieces import pieces
from kernel_gym.plans.addresses import put_references
from kernel_gym.plans.types import (
    BufferRole,
    BufferView,
    CopyStep,
    FillStep,
    LaunchPlan,
    LaunchStep,
    PlanStep,
    UploadStep,
)

POISON = b"\xff"
"""Every byte of scratch and outputs before a call: NaN in every float format."""
_WIDTHS = (1, 2, 4)
"""Bytes of the elements that a driver fills with."""


class PlanExecution:
    """A plan with its memory and code on a device.

    Args:
        driver: The device.
        plan: A plan that was parsed.

    Raises:
        DriverError: A code object does not load, a kernel is missing, or memory does not suffice.
    """

    def __init__(self, driver: GpuDriver, plan: LaunchPlan) -> None:
        self._driver, self._plan = driver, plan
        self._owned: list[int] = []
        self._modules: list[int] = []
        self._functions: list[int] = []
        self._shared: list[int] = []
        self._staged: dict[int, int] = {}
        for code in plan.codes:
            if code.form is not driver.vendor.form:
                raise DriverError(f"found {code.form}, expected {driver.vendor.form}")
        self._places = [
            0 if buffer.role is BufferRole.VARIABLE else self._allocate(buffer.size)
            for buffer in plan.buffers
        ]
        for number, step in enumerate(plan.steps):
            if (size := _staged_bytes(step)) is not None:
                self._staged[number] = self._allocate(size)

    def begin(self, inputs: bytes) -> None:
        """Begins a call: loads all code again, poisons memory and copies the inputs.

        Args:
            inputs: The bytes of all inputs, in the order of their numbers.

        Raises:
            DriverError: They do not have the sizes of the plan, or the driver refused a call.
        """
        self._load()
        place = 0
        for number in self._arguments(BufferRole.INPUT):
            size = self._plan.buffers[number].size
            self._driver.copy_in(self._places[number], inputs[place : place + size])
            place += size
        if place != len(inputs):
            raise DriverError(f"found {len(inputs)} bytes of inputs, expected {place}")
        self._poison()
        self._stage()
        self._driver.wait()

    def queue(self) -> None:
        """Queues all steps."""
        for number, step in enumerate(self._plan.steps):
            if isinstance(step, LaunchStep):
                self._launch(step)
            elif isinstance(step, FillStep):
                self._fill(number, step)
            elif isinstance(step, CopyStep):
                self._copy(step)
            else:
                target = self._places[step.buffer] + step.offset
                self._driver.copy(target, self._staged[number], len(step.data))

    def outputs(self) -> list[bytes]:
        """Waits and returns the bytes of each output, from its first to its last element."""
        return [
            self._driver.copy_out(self._places[view.buffer] + view.offset, view.extent)
            for view in self._plan.outputs
            if isinstance(view, BufferView)
        ]

    def inputs(self) -> list[bytes]:
        """Returns the bytes of each input, which kernels may have changed."""
        return [
            self._driver.copy_out(self._places[number], self._plan.buffers[number].size)
            for number in self._arguments(BufferRole.INPUT)
        ]

    def time(self, calls: int, graph: bool) -> list[float]:
        """Returns seconds of calls that run one after the other, each between two events.

        Args:
            calls: How many.
            graph: Whether the steps are captured once and replayed, which leaves out the time in
                which the host queues them.
        """
        captured = self._capture() if graph else None
        events = [(self._driver.create_event(), self._driver.create_event()) for _ in range(calls)]
        for start, stop in events:
            self._driver.record_event(start)
            if captured is None:
                self.queue()
            else:
                self._driver.launch_graph(captured)
            self._driver.record_event(stop)
        self._driver.wait()
        if captured is not None:
            self._driver.destroy_graph(captured)
        return [self._driver.elapsed(start, stop) for start, stop in events]

    def close(self) -> None:
        """Frees memory and code."""
        for address in self._owned:
            self._driver.free(address)
        for module in self._modules:
            self._driver.unload_module(module)
        self._owned, self._modules = [], []

    def _allocate(self, size: int) -> int:
        self._owned.append(self._driver.allocate(size))
        return self._owned[-1]

    def _load(self) -> None:
        """Loads the code again, so that its variables have their initial values."""
        for module in self._modules:
            self._driver.unload_module(module)
        self._modules, self._functions, self._shared = [], [], []
        for code in self._plan.codes:
            self._modules.append(self._driver.load_module(code.content))
        for kernel in self._plan.kernels:
            function = self._driver.find_function(self._modules[kernel.code], kernel.name)
            static = self._driver.static_shared(function)
            self._functions.append(function)
            self._shared.append(max(0, (kernel.shared or 0) - static))
        for number, buffer in enumerate(self._plan.buffers):
            if buffer.code is not None:
                module = self._modules[buffer.code]
                address, size = self._driver.find_variable(module, buffer.symbol)
                if size < buffer.size:
                    raise DriverError(f"variable {buffer.symbol} has {size} bytes")
                self._places[number] = address

    def _poison(self) -> None:
        for place, buffer in zip(self._places, self._plan.buffers, strict=True):
            if buffer.role in (BufferRole.SCRATCH, BufferRole.OUTPUT) and buffer.size:
                self._driver.fill(place, POISON, buffer.size)

    def _stage(self) -> None:
        """Copies constants, and patterns that no driver fills with, to memory of their own."""
        for number, place in self._staged.items():
            step = self._plan.steps[number]
            if isinstance(step, UploadStep):
                data = put_references(step.data, step.references, self._places.__getitem__)
                self._driver.copy_in(place, data)
            elif isinstance(step, FillStep):
                count = step.target.nbytes // len(step.pattern)
                self._driver.copy_in(place, step.pattern * count)

    def _launch(self, step: LaunchStep) -> None:
        shared = self._shared[step.kernel] + step.shared
        function = self._functions[step.kernel]
        if shared:
            self._driver.allow_shared(function, shared)
        arguments = [
            put_references(one.data, one.references, self._places.__getitem__)
            for one in step.arguments
        ]
        self._driver.launch(function, step.grid, step.block, shared, arguments)

    def _fill(self, number: int, step: FillStep) -> None:
        place, width = self._places[step.target.buffer], len(step.pattern)
        for size, offset in pieces(step.target):
            if number in self._staged:
                self._driver.copy(place + offset, self._staged[number], size)
            else:
                self._driver.fill(place + offset, step.pattern, size // width)

    def _copy(self, step: CopyStep) -> None:
        source, target = self._places[step.source.buffer], self._places[step.target.buffer]
        for size, of, to in pieces(step.source, step.target):
            self._driver.copy(target + to, source + of, size)

    def _capture(self) -> int:
        self._driver.begin_capture()
        self.queue()
        return self._driver.end_capture()

    def _arguments(self, role: BufferRole) -> list[int]:
        """Numbers of the buffers with a role, in the order of the arguments."""
        buffers = self._plan.buffers
        numbers = [number for number, buffer in enumerate(buffers) if buffer.role is role]
        return sorted(numbers, key=lambda number: buffers[number].number)


def _staged_bytes(step: PlanStep) -> int | None:
    """Bytes that a step needs on the device beside its buffers; None if it needs none."""
    if isinstance(step, UploadStep):
        return len(step.data)
    if isinstance(step, FillStep) and len(step.pattern) not in _WIDTHS:
        return step.target.nbytes
    return None

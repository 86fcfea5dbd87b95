"""Executes one plan on a driver: for values, or for times."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Sequence
from functools import lru_cache

from kernel_gym.launcher.device_memory import DeviceMemory
from kernel_gym.launcher.driver import DriverError, GpuDriver
from kernel_gym.launcher.layout import BufferLayout, draw_layout, room_for
from kernel_gym.launcher.pieces import pieces
from kernel_gym.launcher.timing import MemoryPlace
from kernel_gym.plans.addresses import put_references
from kernel_gym.plans.binary import features_of
from kernel_gym.plans.types import (
    BufferRole,
    BufferView,
    CopyStep,
    FillStep,
    LaunchPlan,
    LaunchStep,
    PlanCode,
    PlanStep,
    UploadStep,
)

POISON = b"\xff"
"""Every byte of memory before a call, besides inputs: NaN in every float format."""
_WIDTHS = (4, 2, 1)
"""Bytes of the elements that a driver fills with, the widest first."""
MAX_BALLAST = 3
"""Code is loaded up to so many times, so that it lies at another place in each turn."""
MAX_LOCAL_BYTES = 64 << 10
"""Most bytes that a thread may have beside its registers: the driver keeps them for all threads."""


class PlanExecution:
    """A plan with its memory and code on a device. It is the work of calls that are timed.

    Nothing that a call writes is there when the next one begins: all memory of the plan is
    poisoned, inputs and constants are copied to it again, and code with variables is loaded again.
    Each execution has its buffers and its code at other places, which are drawn.

    Args:
        driver: The device.
        plan: A plan that was parsed.
        memory: Where its buffers are placed.

    Raises:
        DriverError: A code object does not load, a kernel is missing, or memory does not suffice.
    """

    def __init__(self, driver: GpuDriver, plan: LaunchPlan, memory: DeviceMemory) -> None:
        self._driver, self._plan = driver, plan
        self._modules: list[int] = []
        self._functions: list[int] = []
        self._shared: list[int] = []
        for code in plan.codes:
            if code.form is not driver.vendor.form:
                raise DriverError(f"found {code.form}, expected {driver.vendor.form}")
        self._has_variables = any(map(_has_variables, plan.codes))
        self._staged = [n for n, step in enumerate(plan.steps) if _staged_bytes(step) is not None]
        sizes = [0 if b.role is BufferRole.VARIABLE else b.size for b in plan.buffers]
        self._sizes = sizes + [_staged_bytes(plan.steps[number]) or 0 for number in self._staged]
        self._memory = memory.take(room_for(self._sizes))
        self._graph = 0
        self._ran = False
        shuffle = random.SystemRandom()
        self._layout: BufferLayout = draw_layout(self._sizes, shuffle)
        self._places = [self._memory + offset for offset in self._layout.offsets]
        self._load(shuffle.randrange(MAX_BALLAST))
        self._constants = [*self._staged_constants()]

    @property
    def facts(self) -> list[dict[str, int | str]]:
        """Name, registers and local bytes of each kernel."""
        read = self._driver
        return [
            {
                "name": kernel.name,
                "registers": read.registers(function),
                "local": read.local_bytes(function),
                "shared": shared + read.static_shared(function),
            }
            for kernel, function, shared in zip(
                self._plan.kernels, self._functions, self._shared, strict=True
            )
        ]

    def prepare(self, inputs: MemoryPlace, graph: bool) -> None:
        """Loads code with variables again if it has run, and captures steps without a graph.

        Args:
            inputs: Not used: nothing of the plan runs.
            graph: Whether `start` queues a graph.
        """
        if self._has_variables and self._ran:
            self._driver.wait()
            self._destroy_graph()
            self._load()
            self._constants = [*self._staged_constants()]
        if graph and not self._graph:
            self._graph = self._captured()

    def begin(self, inputs: MemoryPlace) -> None:
        """Queues what makes a call independent of the one before: poison, inputs and constants.

        Args:
            inputs: Where all inputs are, one behind the other.
        """
        self._driver.fill(self._memory, POISON * 4, self._layout.size // 4)
        for number in self._arguments(BufferRole.INPUT):
            size = self._plan.buffers[number].size
            inputs = inputs.copied(self._driver, self._places[number], size)
        for place, data in self._constants:
            self._driver.queue_copy_in(place, ctypes.addressof(data), len(data))

    def queue(self, noop: bool = False) -> None:
        """Queues all steps, or all but the candidate's launches."""
        self._ran = True
        for number, step in enumerate(self._plan.steps):
            if isinstance(step, LaunchStep):
                if step.copies or not noop:
                    self._launch(step)
            elif isinstance(step, FillStep):
                self._fill(number, step)
            elif isinstance(step, CopyStep):
                self._copy(step)
            else:
                assert isinstance(step, UploadStep)  # others are refused before
                target = self._places[step.buffer] + step.offset
                self._driver.copy(target, self._staging(number), len(step.data))

    def queue_results(self, results: Sequence[MemoryPlace]) -> None:
        """Queues copies of what the call has left, as many as there are places.

        Args:
            results: A place for each output, from its first to its last element, then for each
                input.
        """
        buffers = self._plan.buffers
        views = [view for view in self._plan.outputs if isinstance(view, BufferView)]
        sources = [(self._places[view.buffer] + view.offset, view.extent) for view in views]
        inputs = self._arguments(BufferRole.INPUT)
        sources += [(self._places[number], buffers[number].size) for number in inputs]
        for place, (address, size) in zip(results, sources, strict=False):
            place.receive(self._driver, address, size)

    def damaged(self) -> int | None:
        """Returns the number of a buffer beside which a kernel has written; None if there is none.

        It waits for the queued work. Memory of constants counts as the last buffer.
        """
        for number, (offset, size) in enumerate(self._layout.guards):
            guard = self._driver.copy_out(self._memory + offset, size)
            if guard != POISON * size:
                return max(0, min(number - 1, len(self._plan.buffers) - 1))
        return None

    def start(self, graph: bool) -> None:
        """Queues the steps of a call, as the graph that was captured or one by one."""
        if graph:
            self._ran = True
            self._driver.launch_graph(self._graph)
        else:
            self.queue()

    def close(self) -> None:
        """Unloads the code. The memory stays for the next plan."""
        self._destroy_graph()
        for module in self._modules:
            self._driver.unload_module(module)
        self._modules = []

    def _captured(self) -> int:
        self._driver.begin_capture()
        try:
            self.queue()
        finally:
            graph = self._driver.end_capture()
        return graph

    def _destroy_graph(self) -> None:
        if self._graph:
            self._driver.destroy_graph(self._graph)
        self._graph = 0

    def _load(self, ballast: int = 0) -> None:
        """Loads the code again, so that its variables have their initial values.

        Args:
            ballast: How often it is loaded before, for another place in the device's memory: cold
                code takes up to 0.1 us more or less from there.
        """
        for module in self._modules:
            self._driver.unload_module(module)
        self._modules, self._functions, self._shared = [], [], []
        contents = [code.content for code in self._plan.codes]
        before = [
            self._driver.load_module(content) for _ in range(ballast) for content in contents[:1]
        ]
        self._modules = [self._driver.load_module(content) for content in contents]
        for module in before:
            self._driver.unload_module(module)
        for kernel in self._plan.kernels:
            function = self._driver.find_function(self._modules[kernel.code], kernel.name)
            static = self._driver.static_shared(function)
            self._functions.append(function)
            self._shared.append(max(0, (kernel.shared or 0) - static))
            if (local := self._driver.local_bytes(function)) > MAX_LOCAL_BYTES:
                raise DriverError(f"a thread of {kernel.name} has {local} bytes of local memory")
        for number, buffer in enumerate(self._plan.buffers):
            if buffer.code is not None:
                module = self._modules[buffer.code]
                address, size = self._driver.find_variable(module, buffer.symbol)
                if size < buffer.size:
                    raise DriverError(f"variable {buffer.symbol} has {size} bytes")
                self._places[number] = address

    def _staging(self, step: int) -> int:
        """Returns where the constant of a step is on the device before the step writes it."""
        return self._places[len(self._plan.buffers) + self._staged.index(step)]

    def _staged_constants(self) -> list[tuple[int, ctypes.Array]]:
        """Returns constants, and patterns that no driver fills with, and where they are staged."""
        constants = []
        for number in self._staged:
            step = self._plan.steps[number]
            if isinstance(step, UploadStep):
                data = put_references(step.data, step.references, self._places.__getitem__)
            else:
                assert isinstance(step, FillStep)
                data = step.pattern * (step.target.nbytes // len(step.pattern))
            constants.append((self._staging(number), (ctypes.c_char * len(data))()))
            ctypes.memmove(constants[-1][1], data, len(data))
        return constants

    def _launch(self, step: LaunchStep) -> None:
        shared = self._shared[step.kernel] + step.shared
        function = self._functions[step.kernel]
        if shared:
            self._driver.allow_shared(function, shared)
        arguments = [
            put_references(argument.data, argument.references, self._places.__getitem__)
            for argument in step.arguments
        ]
        self._driver.launch(function, step.grid, step.block, shared, arguments)

    def _fill(self, number: int, step: FillStep) -> None:
        place, pattern = self._places[step.target.buffer], _filled(step.pattern)
        for size, offset in pieces(step.target):
            if pattern is None:
                self._driver.copy(place + offset, self._staging(number), size)
            else:
                self._driver.fill(place + offset, pattern, size // len(pattern))

    def _copy(self, step: CopyStep) -> None:
        source, target = self._places[step.source.buffer], self._places[step.target.buffer]
        for size, of, to in pieces(step.source, step.target):
            self._driver.copy(target + to, source + of, size)

    def _arguments(self, role: BufferRole) -> list[int]:
        """Numbers of the buffers with a role, in the order of the arguments."""
        buffers = self._plan.buffers
        numbers = [number for number, buffer in enumerate(buffers) if buffer.role is role]
        return sorted(numbers, key=lambda number: buffers[number].number)


@lru_cache(maxsize=64)
def _has_variables(code: PlanCode) -> bool:
    return features_of(code).variables


def _filled(pattern: bytes) -> bytes | None:
    """Returns the part of a pattern that a driver repeats; None if there is no such part."""
    for width in _WIDTHS:
        if pattern == pattern[:width] * (len(pattern) // width):
            return pattern[:width]
    return None


def _staged_bytes(step: PlanStep) -> int | None:
    """Bytes that a step needs on the device beside its buffers; None if it needs none."""
    if isinstance(step, UploadStep):
        return len(step.data)
    if isinstance(step, FillStep) and _filled(step.pattern) is None:
        return step.target.nbytes
    return None

"""The launcher of the simulator: executes a launch plan in the process of the simulated GPU."""

from __future__ import annotations

import ctypes

import torch

from kernel_gym.devices.sim import transfers
from kernel_gym.devices.sim.labels import labelled, row_bytes
from kernel_gym.devices.sim.memory import DeviceMemoryError
from kernel_gym.devices.sim.operators import check_values, execute_operator
from kernel_gym.devices.sim.requests import RefusedError
from kernel_gym.devices.sim.simulated_gpu import SimulatedGpu
from kernel_gym.inert import inert_text
from kernel_gym.plans.addresses import put_references
from kernel_gym.plans.operators import operator_arguments, with_tensors
from kernel_gym.plans.parse import parse_plan
from kernel_gym.plans.reading import BadPlanError
from kernel_gym.plans.types import (
    BufferRole,
    BufferView,
    CodeForm,
    CopyStep,
    FillStep,
    LaunchPlan,
    LaunchStep,
    PlanBuffer,
    PlanStep,
    ReadStep,
    TorchOperatorStep,
    UploadStep,
)
from kernel_gym.protocol import device as messages
from kernel_gym.protocol.fields import ELEMENT_TYPES, TensorOnDevice
from kernel_gym.protocol.request import Answer, BadRequestError
from kernel_gym.sim.asm.errors import AsmError


def run_plan(
    gpu: SimulatedGpu,
    plan: dict[str, object],
    addresses: list[int],
    codes: bytes,
    constants: bytes,
) -> Answer:
    """Executes a plan within a call of the judge; whatever is wrong with it becomes an answer.

    Args:
        gpu: The device.
        plan: The JSON of the plan.
        addresses: Where the judge has allocated inputs and outputs.
        codes: The code objects of the plan.
        constants: The constants of the plan.
    """
    state = torch.get_rng_state() if gpu.tuning else None
    try:
        launcher = SimPlanLauncher(gpu, parse_plan(plan, codes, constants), addresses)
    except BadPlanError as error:
        return messages.RequestRefused(inert_text(str(error), 2000), type(error).__name__)
    try:
        return launcher.run()
    except (RefusedError, AsmError, DeviceMemoryError, BadRequestError, ValueError) as error:
        launcher.free()
        return messages.RequestRefused(inert_text(str(error), 2000), type(error).__name__)
    finally:
        if state is not None:  # operators of the call itself draw what they would have drawn
            torch.set_rng_state(state)


class SimPlanLauncher:
    """Executes one plan.

    Args:
        gpu: The device.
        plan: A plan that was parsed.
        arguments: Addresses of inputs and outputs, by number.
    """

    def __init__(self, gpu: SimulatedGpu, plan: LaunchPlan, arguments: list[int]) -> None:
        self._gpu, self._plan, self._arguments = gpu, plan, arguments
        self._places = [0] * len(plan.buffers)
        self._owned: set[int] = set()

    def run(self) -> Answer:
        """Executes all steps.

        Raises:
            RefusedError: The device does not make a step, or it ended with a fault.
            AsmError: Code cannot be decoded.
        """
        codes = [self._code(number) for number in range(len(self._plan.codes))]
        self._reset_variables(codes)
        kernels = [self._load(codes[k.code], k.name, k.shared) for k in self._plan.kernels]
        self._keep_variables(codes)
        seconds, form = [], None
        for number, step in enumerate(self._plan.steps):
            self._change_buffers(number, codes)
            before = self._gpu.seconds
            form = self._do(step, kernels)
            seconds.append(self._gpu.seconds - before)
        self._change_buffers(len(self._plan.steps), codes)
        return messages.PlanDone(self._places, sorted(self._owned), seconds, form)

    def free(self) -> None:
        """Frees what the plan has allocated."""
        for address in self._owned:
            self._gpu.free(address)

    def _code(self, number: int) -> bytes:
        code = self._plan.codes[number]
        if code.form is CodeForm.CUBIN:
            raise RefusedError("the code is for an NVIDIA GPU")
        return code.content

    def _load(self, code: bytes, name: str, shared: int | None) -> int:
        key = code, name, shared
        if key not in self._gpu.planned:
            self._gpu.load(name, shared, code)
            self._gpu.planned[key] = len(self._gpu.kernels) - 1
        return self._gpu.planned[key]

    def _reset_variables(self, codes: list[bytes]) -> None:
        """Gives the variables of all code their first values, as a module has them when loaded."""
        for code in codes:
            first = self._gpu.planned_data.get(code, b"")
            ctypes.memmove(self._gpu.engine.variables.region_of(code)[0], first, len(first))

    def _keep_variables(self, codes: list[bytes]) -> None:
        for code in codes:
            start, size = self._gpu.engine.variables.region_of(code)
            self._gpu.planned_data[code] = ctypes.string_at(start, size) if size else b""

    def _change_buffers(self, step: int, codes: list[bytes]) -> None:
        """Frees the buffers that end before a step, and makes those that begin before it."""
        for number, buffer in enumerate(self._plan.buffers):
            if buffer.begin == step:
                self._places[number] = self._place(number, buffer, codes)
        for number, buffer in enumerate(self._plan.buffers):
            if buffer.end == step:
                self._gpu.free(self._places[number])
                self._owned.discard(self._places[number])
                self._places[number] = 0

    def _place(self, number: int, buffer: PlanBuffer, codes: list[bytes]) -> int:
        if buffer.role is BufferRole.VARIABLE:
            assert buffer.code is not None
            place = self._gpu.engine.variable(codes[buffer.code], buffer.symbol)
            if place is None or place[1] < buffer.size:
                raise RefusedError(f"the code has no variable {buffer.symbol} of this size")
            return place[0]
        if buffer.role is not BufferRole.SCRATCH:
            return self._argument(buffer)
        answer = self._gpu.allocate_for_worker(buffer.size, self._label(number))
        if not isinstance(answer, messages.Allocated):
            raise DeviceMemoryError(str(vars(answer)["error"]))
        self._owned.add(answer.address)
        return answer.address

    def _label(self, number: int) -> str | None:
        """Names a buffer that holds an output; None for other scratch."""
        for name, view in zip(self._gpu.output_names, self._plan.outputs, strict=False):
            if isinstance(view, BufferView) and view.buffer == number:
                row = row_bytes(view.shape, view.strides, ELEMENT_TYPES[view.dtype].itemsize)
                return labelled("output", name, row)
        return None

    def _argument(self, buffer: PlanBuffer) -> int:
        if buffer.number >= len(self._arguments):
            raise RefusedError(f"the call has no tensor argument {buffer.number}")
        address = self._arguments[buffer.number]
        piece = self._gpu.arena.locate(address, buffer.size)
        if piece is None or (piece.start, piece.size) != (address, buffer.size):
            raise RefusedError(f"tensor argument {buffer.number} does not have {buffer.size} bytes")
        return address

    def _do(self, step: PlanStep, kernels: list[int]) -> object:
        """Executes a step. Returns the form of an operator's results that have no place."""
        if isinstance(step, LaunchStep):
            values = [put_references(a.data, a.references, self._address) for a in step.arguments]
            sizes = [len(value) for value in values]
            shape = step.grid, step.block, sizes, step.shared
            self._gpu.launch(kernels[step.kernel], *shape, b"".join(values))
        elif isinstance(step, FillStep):
            target = self._tensor(step.target)
            element = torch.frombuffer(bytearray(step.pattern), dtype=target.dtype)
            transfers.fill(self._gpu, target, element.item())
        elif isinstance(step, CopyStep):
            transfers.copy(self._gpu, self._tensor(step.source), self._tensor(step.target))
        elif isinstance(step, TorchOperatorStep):
            return self._operator(step)
        elif isinstance(step, ReadStep):
            check_values(self._gpu, self._tensor(step.source), step.data)
        else:
            self._upload(step)
        return None

    def _operator(self, step: TorchOperatorStep) -> object:
        args, kwargs = operator_arguments(step.arguments)

        def place(number: int) -> dict[str, object]:
            return self._tensor(step.tensors[number]).to_json()

        results = None if step.results is None else tuple(map(self._tensor, step.results))
        given = [with_tensors(value, place) for value in args]
        named = {key: with_tensors(value, place) for key, value in kwargs.items()}
        return execute_operator(self._gpu, step.name, step.overload, given, named, results)

    def _upload(self, step: UploadStep) -> None:
        data = put_references(step.data, step.references, self._address)
        transfers.upload(self._gpu, self._places[step.buffer] + step.offset, data)

    def _address(self, buffer: int) -> int:
        return self._places[buffer]

    def _tensor(self, view: BufferView) -> TensorOnDevice:
        address = self._places[view.buffer] + view.offset
        return TensorOnDevice(address, view.shape, view.strides, ELEMENT_TYPES[view.dtype])

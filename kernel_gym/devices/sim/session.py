"""The processes of a session on a simulated device, and the memory that the judge shares.

They are two: the untrusted recorder, and the simulated GPU, which the judge trusts. The judge
writes inputs and reads outputs through its own mapping of the GPU's memory. What they do in a call
is in `planned_session`.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from kernel_gym.devices.answers import (
    BadAnswerError,
    believed_outputs,
    parse_call,
    reading_an_answer,
    stated_outputs,
)
from kernel_gym.devices.base import (
    Audit,
    Call,
    DeviceLostError,
    Failed,
    FailureKind,
    InfraError,
    OutputTensor,
    SketchedCall,
    WorkloadTooLargeError,
)
from kernel_gym.devices.budget import GUARD_SECONDS, simulator_budget
from kernel_gym.devices.cache import cache_folder
from kernel_gym.devices.compiling import CompilerNote
from kernel_gym.devices.failures import describe_fault
from kernel_gym.devices.operators import operators_for, operators_of_candidate
from kernel_gym.devices.placement import in_place_inputs, sketched_outputs, storage_bytes
from kernel_gym.devices.plan_store import EvaluationPlans
from kernel_gym.devices.sim import memory as sim_memory
from kernel_gym.devices.sim.labels import tensor_label
from kernel_gym.devices.sim.outputs import read_outputs
from kernel_gym.devices.sim.read_facts import read_kernels
from kernel_gym.devices.sim.worker import SimWorkerHandle
from kernel_gym.protocol import device as device_messages
from kernel_gym.protocol.request import Request, decode_answer, encode
from kernel_gym.records import KernelFacts
from kernel_gym.sandbox.channel import ChannelError
from kernel_gym.sandbox.confine import WorkerLimits
from kernel_gym.sandbox.processor_times import processor_seconds
from kernel_gym.sandbox.spawn import (
    Child,
    Family,
    TemplateError,
    shared_template,
)
from kernel_gym.sim.timing.compared import ratio_factor, time_factor
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.task import Task

LOAD_SECONDS = 30.0
"""Host seconds of a load, see :class:`~kernel_gym.devices.meter.Meter`."""
CALL_SECONDS = 30.0
"""Host seconds of a call."""
MAX_LAUNCH_INSTRUCTIONS = 400_000_000
"""Wave instructions of a launch. They take 4 to 8 s of a processor. The largest launches of the
tasks have 4 million."""
DEVICE_SECONDS = 10.0
"""Host seconds until the simulated GPU answers the judge."""
LOST_SECONDS = 5.0
"""The same for a simulated GPU whose worker has ended or does not answer."""
MEMORY = 512 << 20
"""Live bytes of one simulated GPU. The small twins of workloads take 5 MB at most."""
WORKER_LIMITS = WorkerLimits(memory=5 << 28, home_size=256 << 20, processes=64, one_process=True)
"""Limits of a worker. Honest workers hold up to 0.3 GiB, most of it by Python itself."""
FAMILY_MEMORY = 3 << 29
"""Bytes of host memory for a candidate's worker, compiler and simulated GPU together."""


@dataclass(frozen=True)
class SimOptions:
    """How a session is opened.

    Args:
        threads: Host threads of the simulated GPU.
        trusted: Whether the source is the project's own.
        seed: Decides which workgroups are sampled and which launches are audited.
        arch: The architecture of the GPU.
        resident: Whether the worker stays: it has no budget of seconds.
        launch_instructions: Wave instructions until a launch is stopped; None for no limit.
        plans: Where the plans of calls are stored, or read from; None for neither.
    """

    threads: int = 1
    trusted: bool = False
    seed: int = 0
    arch: str = "gfx942"
    resident: bool = False
    launch_instructions: int | None = MAX_LAUNCH_INSTRUCTIONS
    plans: EvaluationPlans | None = None
    plain: bool = False
    """Whether Triton compiles without its optional passes."""


class SimSession(ABC):
    """One candidate in one worker, with its own simulated GPU.

    Args:
        task: What the source solves.
        options: How the session is opened.
    """

    timed = None
    _answer_buffers = 0
    """Raw buffers in an answer of the worker."""

    def __init__(self, task: Task, options: SimOptions) -> None:
        self._task, self._arch, self._options = task, options.arch, options
        kept = options.trusted or options.resident
        self._budget = None if kept else simulator_budget()
        self._family = None if options.trusted else Family(secrets.token_hex(8), FAMILY_MEMORY)
        self._in_place = in_place_inputs(task)
        self._waits_by_compiler = False
        self._samples: int | None = None
        self._note = CompilerNote()

    @cached_property
    def _device(self) -> Child:
        """The simulated GPU. It starts when there is work for it: many sources do not compile."""
        memory = sim_memory.create_file()
        self._memory = mmap.mmap(memory, sim_memory.ARENA_SIZE)
        with _starting(), contextlib.ExitStack() as failed:
            try:
                device = shared_template().fork(
                    "device", [memory], self._device_options(self._options), family=self._family
                )
            finally:
                os.close(memory)
            failed.callback(device.close)
            # Not an option of the fork: the template reads options, and the worker is a copy of it.
            header, _ = encode(device_messages.SeedSamples(self._options.seed))
            device.channel.request(header, timeout=GUARD_SECONDS)
            self._worker.device = device
            failed.pop_all()
        return device

    @cached_property
    def _child(self) -> Child:
        """The worker. It starts when it is asked first: a HIP source is compiled before."""
        trusted = self._options.trusted
        cache = [str(cache_folder("triton"))] if trusted else []
        environment = {"TRITON_CACHE_DIR": cache[0]} if trusted else {}
        role, descriptors, choices = self._worker_role()
        with _starting(), contextlib.ExitStack() as failed:
            child = shared_template().fork(
                role,
                descriptors,
                choices,
                WORKER_LIMITS,
                environment,
                trusted,
                cache,
                self._family,
                buffers=self._answer_buffers,
            )
            failed.callback(child.close)
            self._confinement = child.channel.recv(GUARD_SECONDS).header["confinement"]
            failed.pop_all()
        return child

    @cached_property
    def _worker(self) -> SimWorkerHandle:
        """The pipe to the worker."""
        return SimWorkerHandle(self._child, None, self._budget, self._note)

    @property
    def confinement(self) -> dict[str, object]:
        """The barriers around the worker, which are active and which are missing."""
        assert self._child
        return self._confinement

    def _device_options(self, options: SimOptions) -> dict[str, object]:
        kept = options.trusted or options.resident
        return {
            "threads": options.threads,
            "memory": MEMORY,
            # All memory and all variables: what a candidate allocates must not decide how the clock
            # finds its time.
            "kept_limit": 2 * MEMORY,
            "launch_instructions": options.launch_instructions,
            # A baseline's time must not depend on what was timed before.
            "same_samples": kept,
            "same_addresses": kept,
            "arch": options.arch,
            "describes": False,  # a judge reads the facts of a call
            "code_cache": str(cache_folder("code")),
            "operators": operators_for(self._task, options.resident),
            "permitted": sorted(operators_of_candidate(self._task)),
            "outputs": [output.name for output in self._task.problem.outputs],
            "margin": sim_memory.GUARD if self._task.problem.margin else 0,
        }

    @abstractmethod
    def _worker_role(self) -> tuple[str, list[int], dict[str, object]]:
        """Returns the role of the worker's process, its descriptors and its options."""

    def sample_from(self, seed: int) -> None:
        """See `kernel_gym.devices.base.Session.sample_from`."""
        self._samples = seed

    @abstractmethod
    def call(
        self,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        noop: bool = False,
        audit: Audit = Audit.OFF,
    ) -> Call | Failed:
        """Calls the candidate once on fresh device copies of the inputs."""

    @abstractmethod
    def load(self, source: str, language: str | None = None) -> Failed | None:
        """Builds and loads a source."""

    @abstractmethod
    def second_opinion(self) -> SimSession:
        """Opens a session with a compiler that leaves out optional passes."""

    @property
    def device_seconds(self) -> float:
        """Processor seconds of the simulated GPU so far."""
        return processor_seconds(self._device.pid) if "_device" in self.__dict__ else 0.0

    def compile(self, calls: Sequence[SketchedCall]) -> Failed | None:
        """Does nothing: compiling ahead would save no time here."""
        return None

    def facts(self) -> tuple[KernelFacts, ...]:
        """Returns what the compiler reported about the kernels of the last call."""
        if "_device" not in self.__dict__:
            return ()
        try:
            answer = self._ask_device(device_messages.ReadFacts())
            return read_kernels(decode_answer(device_messages.CompiledFacts, answer).kernels)
        except DeviceLostError:  # no verdict depends on the facts
            return ()

    def close(self) -> None:
        """Ends the worker and the simulated GPU."""
        with contextlib.suppress(TemplateError):
            for process in ("_child", "_device"):
                if process in self.__dict__:
                    self.__dict__[process].close()
        self._note.close()

    # -- the call, step by step ----------------------------------------------------------------

    def _place_inputs(self, inputs: Mapping[str, Value]) -> dict[str, int]:
        """Copies the tensors among the inputs to the device; returns where each storage begins."""
        buffers: dict[str, int] = {}
        for name, value in inputs.items():
            if isinstance(value, torch.Tensor):
                size = value.untyped_storage().nbytes()
                buffers[name] = self._allocate(size, tensor_label("input", name, value))
                self._view(buffers[name], size).copy_(storage_bytes(value))
        return buffers

    def _place_outputs(self, dims: Mapping[str, int]) -> list[int]:
        """Allocates the outputs that HIP launchers write to."""
        sketched = sketched_outputs(self._task.problem, dims).items()
        return [self._allocate(one.nbytes, tensor_label("output", n, one)) for n, one in sketched]

    def _collect(
        self,
        answer: dict[str, object] | Failed,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        buffers: dict[str, int],
        believed: bool = False,
    ) -> Call | Failed:
        record = self._end_call()
        if record.fault:
            return self._worker.fail(describe_fault(record.fault))
        if isinstance(answer, Failed):
            return answer
        inputs_at = {
            start: "" if name in self._in_place else name for name, start in buffers.items()
        }
        own = self._in_place & buffers.keys()  # an imported task has arguments of several calls
        first = {name: buffers[name] + _offset_bytes(inputs[name]) for name in own}
        try:
            with reading_an_answer():
                problem = self._task.problem
                stated = believed_outputs(answer) if believed else stated_outputs(problem, dims)
                described = parse_call(answer, stated).outputs
                read = functools.partial(
                    read_outputs, described, stated, inputs_at, self._locate, self._view, first
                )
                outputs = read()
                others: tuple[OutputTensor, ...] = ()
                if record.other_order:
                    self._ask_device(device_messages.SwapOrders())
                    others = read()
                    self._ask_device(device_messages.SwapOrders())
        except BadAnswerError as error:
            return self._worker.fail(Failed(FailureKind.RUNTIME, str(error)))
        made = record.compiler_fault
        return Call(
            outputs=outputs,
            seconds=record.seconds,
            launches=record.launches,
            modified_inputs=self._modified(inputs, buffers),
            retuned=record.tuned,
            kernels=read_kernels(record.kernels),
            launch_seconds=record.launch_seconds,
            time_factor=None if record.uncalibrated else time_factor(),
            ratio_factor=None if record.uncalibrated else ratio_factor(),
            uncalibrated=record.uncalibrated,
            codes=frozenset(record.codes),
            audited=frozenset(record.audited),
            operators=frozenset(record.operators),
            operator_seconds=record.operator_seconds,
            compiler_fault=describe_fault(made).message if made else "",
            other_outputs=others,
        )

    def _locate(self, address: int, size: int) -> int | None:
        """Returns the start of the live allocation that contains a whole range, or None."""
        answer = self._ask_device(device_messages.Locate(address, size))
        allocation = decode_answer(device_messages.LocatedAllocation, answer).allocation
        return None if allocation is None else allocation["start"]

    def _modified(self, inputs: Mapping[str, Value], buffers: dict[str, int]) -> tuple[str, ...]:
        changed = []
        for name, start in buffers.items():
            value = inputs[name]
            assert isinstance(value, torch.Tensor)
            shadow = storage_bytes(value)
            current = self._view(start, shadow.numel())
            if name not in self._in_place and not torch.equal(current, shadow):
                changed.append(name)
        return tuple(changed)

    # -- the two pipes -------------------------------------------------------------------------

    def _allocate(self, size: int, label: str) -> int:
        answer = self._ask_device(device_messages.AllocateForJudge(size, label))
        if "error" in answer:
            raise WorkloadTooLargeError(
                f"a workload does not fit the simulated device: {answer['error']}"
            )
        return decode_answer(device_messages.Allocated, answer).address

    def _view(self, address: int, size: int) -> torch.Tensor:
        """Returns bytes of the device's memory, uint8 [size]."""
        if not size:
            return torch.empty(0, dtype=torch.uint8)
        offset = address - sim_memory.ARENA_BASE
        return torch.frombuffer(self._memory, dtype=torch.uint8, count=size, offset=offset)

    def _end_call(self) -> device_messages.CallRecord:
        return decode_answer(
            device_messages.CallRecord, self._ask_device(device_messages.EndCall())
        )

    def _ask_device(self, request: Request) -> Mapping[str, object]:
        device = self._device
        limit = LOST_SECONDS if self._worker.dead else DEVICE_SECONDS
        meter = self._worker.meter(limit, short=True)
        try:
            header, _ = encode(request)
            return device.channel.request(header, timeout=meter.patience).header
        except ChannelError as error:
            raise DeviceLostError(f"the simulated device failed: {error}") from error
        finally:
            self._worker.charge(meter)


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """Has a process that could not be started be a failure of the machine."""
    try:
        yield
    except (TemplateError, ChannelError) as error:
        raise InfraError(f"a worker could not be started: {error}") from error


def _offset_bytes(value: Value) -> int:
    """Returns where the first element of a tensor lies in its storage, in bytes."""
    assert isinstance(value, torch.Tensor)
    return int(value.storage_offset()) * value.itemsize

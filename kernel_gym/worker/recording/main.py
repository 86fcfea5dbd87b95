"""The main loop of a recorder: loads one candidate and records its calls. It has no device.

Its answers are plans, which the judge parses and checks. It knows shapes and types of inputs. It
knows no values, but for those that the host code of an imported task reads.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch

from kernel_gym.devices.sim import memory as sim_memory
from kernel_gym.plans.types import BufferRole, BufferView, WrongOutput
from kernel_gym.plans.write import write_plan
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import RequestDispatcher
from kernel_gym.sandbox import confine, failures
from kernel_gym.sandbox.channel import Channel
from kernel_gym.sandbox.failures import BuildError
from kernel_gym.tasks.embedded import EXTRAS, extra_of
from kernel_gym.worker.hip.connection import Connection
from kernel_gym.worker.recording import alone, compiling, cubin, flydsl, hsaco, tilelang
from kernel_gym.worker.recording.extensions import InlineExtensions
from kernel_gym.worker.recording.operators import OperatorRecording
from kernel_gym.worker.recording.properties import host_properties
from kernel_gym.worker.recording.questions import JudgeQuestions
from kernel_gym.worker.recording.runtime import RecordingRuntime
from kernel_gym.worker.sim import compiled, cuda_facade, plain_compiler, triton_driver
from kernel_gym.worker.sim.torch_owner import ask, describe


def main(fds: list[int], options: dict[str, Any]) -> None:
    """Serves the judge.

    Args:
        fds: The pipe to the judge, a page for what is being compiled, and perhaps a file for
            compiled kernels.
        options: See `RecordingWorker`.
    """
    torch.set_num_threads(1)
    confine.forbid_inspection()
    judge = Channel(socket.socket(fileno=fds[0]), buffers=2)
    compiling.install(fds[1])
    session = RecordingWorker(judge, options, *fds[2:])
    judge.send({"confinement": options["confinement"]})
    while True:
        message = judge.recv()
        session.pieces = ()
        answer = session.answer(message.header, message.buffers)
        judge.send(answer, *session.pieces)


Candidate = Callable[..., object]


class RecordingWorker:
    """One candidate without a device.

    Args:
        judge: The pipe to the judge, for questions about plans.
        options: `arch`, the architecture that it compiles for; `memory`, bytes of the device;
            optionally `reported`, what a real GPU reports, and `operators`, whether operators of
            PyTorch become steps of plans.
        kernels: A file for compiled kernels.
    """

    def __init__(self, judge: Channel, options: dict[str, Any], kernels: int | None = None) -> None:
        reported = options.get("reported")
        gpu = None if reported is None else SimpleNamespace(**reported)
        properties = None if gpu is None else host_properties(gpu)
        questions = JudgeQuestions(judge)
        self.runtime = RecordingRuntime(options["arch"], options["memory"], questions, properties)
        sim_memory.reserve_range()
        ask(self.runtime, self.runtime.refuse)
        triton_driver.install(self.runtime)
        cuda_facade.install(self.runtime)
        if options.get("operators"):
            torch.autograd.set_multithreading_enabled(False)
            OperatorRecording(self.runtime).__enter__()
        if gpu is not None and gpu.hip is None:
            cubin.install(self.runtime, gpu)
        elif gpu is not None:
            hsaco.install()
        self._simulated, self._arch = gpu is None, options["arch"]
        self._for_amd = gpu is None or gpu.hip is not None
        self._judge = judge
        self._embedded: Connection | None = None
        """Connection that takes the HIP calls of FlyDSL or TileLang."""
        self._extensions = InlineExtensions(judge, self.runtime, self._code_of)
        self.pieces: tuple[bytes, ...] = ()
        """Code objects and constants, which follow the JSON of the answer."""
        self.candidate: Candidate | None = None
        self._last: Any = None
        self._kernels = None if kernels is None else compiled.install(kernels)

    def answer(self, header: dict[str, Any], buffers: Sequence[bytes]) -> dict[str, Any]:
        """Answers a request of the judge; a failure becomes `{"error": {...}}`."""
        try:
            return REQUESTS.answer(self, header, buffers)
        except BaseException as error:  # a candidate may raise anything, SystemExit included
            return {"error": failures.describe(error)}

    def load(
        self,
        language: str,
        entry: str,
        source: str,
        outputs: Sequence[int],
        plain: bool,
        assembler: bytes,
        library: bytes,
    ) -> dict[str, Any]:
        """Builds and loads the candidate."""
        if self._kernels is not None:
            self._kernels.read()
        if language == "hip":
            from kernel_gym.worker.hip import sim as hip

            code = self._code_of(assembler)
            self.candidate = hip.load(entry, outputs, code, library, self.runtime)
        elif language == "extension file":
            self.candidate = self._extensions.load_built(entry, assembler, library)
        else:
            from kernel_gym.worker import triton_module

            if plain:
                plain_compiler.install()
            if language in EXTRAS:
                alone.require(language)
            self._install_embedded(source)
            with self._extensions.loading(language):
                candidate = triton_module.load(source, entry)
            connection = self._extensions.connection or self._embedded
            self.candidate = candidate if connection is None else connection.watched(candidate)
        return {}

    def _install_embedded(self, source: str) -> None:
        """Makes FlyDSL or TileLang ready, if a source is in one of them."""
        package = extra_of(source)
        if not package or self._embedded is not None:
            return
        if not self._for_amd:
            text = f"candidates in {EXTRAS[package]} are for AMD's GPUs: use --device sim"
            raise BuildError(text)
        if package == "flydsl":
            self._embedded = flydsl.install(self.runtime, self._code_of)
        else:
            self._embedded = tilelang.install(self._judge, self.runtime, self._code_of)

    def _code_of(self, assembler: bytes) -> bytes:
        """Returns the code of a source in HIP as its device takes it."""
        return assembler if self._simulated else hsaco.linked(assembler, self._arch)

    def record(self, args: messages.ArenaArguments, outputs: list[int]) -> dict[str, Any]:
        """Calls the candidate once and returns its plan."""
        assert self.candidate is not None
        self._last = None  # frees what the last call has returned
        self.runtime.begin()
        values = [self._place(argument, at in outputs) for at, argument in enumerate(args)]
        result = self.candidate(*values)
        returned = result if isinstance(result, tuple | list) else (result,)
        self._last = returned
        self.runtime.free_released()
        plan = self.runtime.recorder.plan(tuple(map(self._output, returned)))
        header, *pieces = write_plan(plan)
        self.pieces = tuple(pieces)
        return {"plan": header, "refused": self.runtime.refused}

    def _place(self, arg: messages.Scalar | messages.ArenaTensor, is_output: bool) -> object:
        if isinstance(arg, messages.Scalar):
            return arg.value
        role = BufferRole.OUTPUT if is_output else BufferRole.INPUT
        address = self.runtime.recorder.argument(arg.size, role)
        self.runtime.adopt(address + arg.offset * arg.dtype.itemsize)
        return torch.empty_strided(arg.shape, arg.strides, dtype=arg.dtype, device="cuda")

    def _output(self, value: object) -> BufferView | WrongOutput:
        if type(value) is torch.Tensor and value.is_cuda:  # a subclass could answer with calls
            return self.runtime.recorder.view(describe(value))
        if isinstance(value, torch.Tensor):
            return WrongOutput(f"a {value.dtype} tensor on {value.device}")
        return WrongOutput(f"a {type(value).__name__}")


REQUESTS = RequestDispatcher(
    "recorder",
    {
        messages.LoadOnSimulator: RecordingWorker.load,
        messages.RecordCall: RecordingWorker.record,
    },
)
"""The requests to a recorder."""

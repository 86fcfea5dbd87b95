"""A simulated GPU in the same process, for trusted programs: there is no judge and no sandbox.

Host code may read device memory here. Candidates never run like this.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from typing import TYPE_CHECKING

import torch

from kernel_gym import triton_versions
from kernel_gym.devices.base import Audit
from kernel_gym.devices.sim import memory as sim_memory
from kernel_gym.devices.sim import server as sim_server
from kernel_gym.devices.sim import simulated_gpu
from kernel_gym.devices.sim.observer import Observer
from kernel_gym.devices.sim.requests import RefusedError
from kernel_gym.programs.operator_prices import OperatorPrices
from kernel_gym.protocol.device import Allocated
from kernel_gym.protocol.request import Request, encode, encode_answer
from kernel_gym.sandbox.channel import ChannelMessage
from kernel_gym.sim.asm.targets import MAX_CODE_BYTES
from kernel_gym.torch_device import library
from kernel_gym.worker.hip.connection import Connection
from kernel_gym.worker.sim.runtime import DeviceAnswer, DeviceError, SimRuntime

if TYPE_CHECKING:
    from kernel_gym.worker.hip.connection import Pointers, Words


class LocalRuntime(SimRuntime):
    """Requests that are answered in the same process."""

    def __init__(
        self,
        threads: int = 1,
        memory: int = 8 << 30,
        launch_limit: float = 60.0,
        arch: str = "gfx942",
        audit: bool = False,
        file: int | None = None,
        bounds: str = "fault",
        observer: Observer | None = None,
        launch_instructions: int | None = None,
    ) -> None:
        """Makes the device.

        Args:
            threads: Host threads for workgroups.
            memory: Limit of the live bytes of device memory.
            launch_limit: Host seconds until a launch is stopped.
            arch: The architecture to simulate.
            audit: Whether each launch is audited for races and missing waits. What is found does
                not stop it.
            file: Descriptor of the device's memory; by default it is made.
            bounds: `fault` or `warn`, see `kernel_gym.simulated_rocm.settings.SimSettings`.
            observer: Is called for each launch, fault and finding. Without one the device keeps
                its launches.
            launch_instructions: Wave instructions until a launch is stopped; None for no limit.

        Raises:
            OSError: The device's addresses are taken, such as by another one in this process.
        """
        super().__init__(arch)
        made = sim_memory.create_file() if file is None else file
        sim_memory.map_device(made)
        if file is None:
            os.close(made)
        options = {
            "threads": threads,
            "memory": memory,
            "launch_limit": launch_limit,
            "launch_instructions": launch_instructions,
            "arch": arch,
            "reuse_addresses": True,
            "code_limit": MAX_CODE_BYTES,  # libraries of a user hold kernels of many types
            "margin": sim_memory.GUARD if bounds == "warn" else 0,
            "go_on": audit,
        }
        self.gpu = simulated_gpu.SimulatedGpu(options, observer)
        self.gpu.print_to = _print
        self._audits = audit
        self.gpu.begin(noop=False, audit=Audit.ON if audit else Audit.OFF)

    def install(self) -> None:
        """Makes this the GPU of PyTorch and Triton in this process."""
        from kernel_gym.programs import cuda_calls
        from kernel_gym.simulated_rocm.late_extensions import install_when_imported
        from kernel_gym.worker.sim import torch_owner, triton_driver

        link, latency = sim_memory.HOST_LINK, sim_memory.HOST_COPY_LATENCY
        torch_owner.compute(self, OperatorPrices(self.gpu.spec), link, latency)
        triton_driver.install(self)
        if self._audits:
            triton_driver.distinguish_files()
        cuda_calls.install(self)
        install_when_imported()
        self._connection = self._connect_hip()
        # A thread of PyTorch that still holds tensors when the interpreter ends would abort it.
        torch.autograd.set_multithreading_enabled(False)
        for name, value in triton_versions.ENVIRONMENT.items():
            os.environ.setdefault(name, value)

    def _connect_hip(self) -> Connection | None:
        """Makes this the GPU of libraries that call HIP; None where its runtime is not built."""
        if importlib.util.find_spec("kernel_gym.simulated_rocm._hip_runtime") is None:
            return None
        return _TellingConnection(self, b"")

    @property
    def seconds(self) -> float:
        """Modelled seconds of all launches, operators and transfers."""
        return self.gpu.seconds + library.seconds()

    def begin_capture(self) -> None:
        """Records launches from now on, and refuses operators, which a replay would leave out."""
        super().begin_capture()
        library.refuse_to_compute(True)

    def end_capture(self) -> list[Request]:
        """Ends the recording and returns the launches, for `replay`."""
        library.refuse_to_compute(False)
        return super().end_capture()

    def clock(self) -> float:
        """Modelled seconds that the device has been busy."""
        return self.seconds

    def download(self, address: int, size: int) -> bytes:
        """Copies device bytes to the host and charges a transfer over the host link."""
        self.gpu.seconds += sim_memory.HOST_COPY_LATENCY + size / sim_memory.HOST_LINK
        return ctypes.string_at(address, size)

    def _allocate(self, size: int) -> int:
        answer = self.gpu.allocate_for_worker(size)
        if isinstance(answer, Allocated):
            return answer.address
        return self.checked(encode_answer(answer))["address"]

    def _free(self, address: int) -> None:
        try:
            self.gpu.free_for_worker(address)
        except RefusedError as error:
            raise DeviceError(str(error)) from None

    def _ask(self, request: Request) -> DeviceAnswer:
        __tracebackhide__ = True
        message = ChannelMessage(*encode(request))
        return self.checked(sim_server.answer_program(self.gpu, message))


class _TellingConnection(Connection):
    """A connection that says what failed. The program gets an error code, and may abort."""

    def _module(self, image: int | None, path: bytes | None) -> int:
        self.error = None
        number = super()._module(image, path)
        if not number:
            self._tell("a module cannot be loaded")
        return number

    def _launch(
        self, name: bytes, grid: Words, block: Words, args: Pointers, shared: int, packed: int
    ) -> int:
        failed_before = self.error is not None
        status = super()._launch(name, grid, block, args, shared, packed)
        if status and not failed_before:
            self._tell("a launch failed")
        return status

    def _tell(self, what: str) -> None:
        _print(f"kernel-gym: {what}: {self.error}\n".encode(), to_stderr=True)


def _print(text: bytes, to_stderr: bool) -> None:
    """Writes text of a kernel where C's `printf` would, behind what Python has printed before."""
    stream = sys.stderr if to_stderr else sys.stdout
    stream.flush()
    os.write(2 if to_stderr else 1, text)

"""The simulated GPU of one HIP program: memory, modules, launches and modelled time.

It does not load PyTorch, so that a small program starts in a fraction of a second.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TypedDict

from kernel_gym.devices.sim.memory import (
    ARENA_BASE,
    ARENA_SIZE,
    HOST_COPY_LATENCY,
    HOST_LINK,
    DeviceMemoryError,
    SimArena,
)
from kernel_gym.sandbox.failures import BuildError
from kernel_gym.sandbox.host_memory import available_bytes
from kernel_gym.sim import constants as hw
from kernel_gym.sim.asm.errors import AsmError, UnsupportedInstruction
from kernel_gym.sim.asm.targets import TARGETS
from kernel_gym.sim.engine.engine import Engine, Fault, Kernel, pack_kernarg
from kernel_gym.sim.engine.faults import AUDIT_KINDS
from kernel_gym.sim.engine.host_calls import BUFFER_BYTES, HostCalls
from kernel_gym.sim.timing.launch_profile import LaunchDescription
from kernel_gym.simulated_rocm.result_recorder import ResultRecorder
from kernel_gym.simulated_rocm.settings import SimSettings
from kernel_gym.worker.sim.code_objects import code_in

MAX_MEMORY_BYTES = 16 << 30
"""Upper bound on the device's memory in bytes, unless the settings say more."""
SHARE_OF_HOST = 0.5
"""Upper bound on the same, as a share of the host's available memory."""
MARGIN = 4096
"""Bytes around an allocation in which an access becomes a finding with `--bounds warn`."""
_HOST_COPY, _DEVICE_COPY = (1, 2), 3
_HOST_ADDRESS = "; that is memory of the host: use hipMalloc, hipHostMalloc or hipMallocManaged"


class LaunchRefusedError(Exception):
    """A launch that the device cannot make: with the number of the HIP error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class LaunchChecks(TypedDict, total=False):
    """Options of `Engine.launch` that settings decide."""

    audit: bool
    go_on: frozenset[str]
    margin: int


class ProgramGpu:
    """A simulated GPU, used by one program.

    Args:
        settings: What the environment says about the device.
        recorder: Gets the launches, faults and findings; None without results.

    Attributes:
        seconds: Modelled time of everything so far.
        printed: What the last launch printed: pieces with whether they go to the error output.
    """

    def __init__(self, settings: SimSettings, recorder: ResultRecorder | None) -> None:
        self.settings, self.recorder = settings, recorder
        self.seconds = 0.0
        self.printed: list[tuple[bool, bytes]] = []
        self.engine = Engine(threads=settings.threads or len(os.sched_getaffinity(0)))
        self.engine.set_memory(ARENA_BASE, ARENA_SIZE)
        self.engine.variables.place = self._place_variables
        self._target = TARGETS[settings.arch]
        self._bandwidth = hw.FIGURES[settings.arch].hbm_bytes_per_s * hw.HBM_EFFICIENCY
        self._arena = SimArena(settings.memory or default_memory())
        self._modules: list[bytes] = [b""]
        self._kernels: dict[str, Kernel] = {}
        self._own: set[int] = set()
        """Starts of the allocations that hold variables: the engine declares them itself."""
        self._changed = True
        self._host_calls: HostCalls | None = None

    @property
    def available(self) -> int:
        """Bytes of device memory that are free."""
        return self._arena.capacity - self._arena.live

    def allocate(self, size: int, visible: bool) -> int:
        """Allocates zeroed memory and returns its address.

        Raises:
            DeviceMemoryError: There is not enough.
        """
        self._changed = True
        kind = "host memory" if visible else "allocation"
        number = sum(1 for _ in self._arena) + 1
        return self._arena.allocate(size, f"{kind} {number}").start

    def free(self, address: int) -> bool:
        """Frees an allocation; returns False if there is none at this address."""
        self._changed = True
        return self._arena.free(address)

    def add_module(self, content: bytes) -> int:
        """Adds the code of a module and returns its number.

        Raises:
            BuildError: It is no code for this device, or it is damaged.
        """
        code = code_in(content, self.settings.arch)
        try:
            self.engine.kernel_names(code)
        except AsmError as error:
            raise BuildError(str(error)) from None
        self._modules.append(code)
        return len(self._modules) - 1

    def kernel(self, full_name: str) -> Kernel:
        """Finds a kernel by `module:name`.

        Raises:
            LaunchRefusedError: It is compiled for another device.
            AsmError: There is none of this name, or it cannot be decoded.
        """
        if full_name not in self._kernels:
            number, _, name = full_name.partition(":")
            self._prepare_host_calls()
            kernel = self.engine.load(self._modules[int(number)], name)
            if kernel.arch != self.settings.arch:
                text = f"{name} is compiled for {kernel.arch}, expected {self.settings.arch}"
                raise LaunchRefusedError(209, text)
            self._kernels[full_name] = kernel
        return self._kernels[full_name]

    def has_kernel(self, full_name: str) -> bool:
        """Whether a module has a kernel of this name."""
        number, _, name = full_name.partition(":")
        return name in self.engine.kernel_names(self._modules[int(number)])

    def variable(self, full_name: str) -> tuple[int, int] | None:
        """Address and bytes of a variable, by `module:name`; None if there is none."""
        number, _, name = full_name.partition(":")
        return self.engine.variable(self._modules[int(number)], name)

    def launch(
        self, full_name: str, grid: Sequence[int], block: Sequence[int], lds: int, segment: bytes
    ) -> Fault | None:
        """Runs a kernel; returns the fault that stopped it.

        Args:
            full_name: The kernel, as `module:name`.
            grid: Workgroups along x, y, z.
            block: Threads of a workgroup along x, y, z.
            lds: Bytes of dynamic LDS.
            segment: The explicit arguments, laid out as in the kernel's segment.

        Raises:
            LaunchRefusedError: The device cannot make such a launch.
        """
        kernel = self.kernel(full_name)
        self.printed = []
        self._check(kernel, grid, block, lds)
        if self._changed:
            pieces = [(a.start, a.size, a.label) for a in self._arena if a.start not in self._own]
            self.engine.set_allocations(pieces)
            self._changed = False
        explicit = [arg for arg in kernel.args if not arg.hidden]
        values = [segment[arg.offset : arg.offset + arg.size] for arg in explicit]
        buffer = self._host_calls.buffer if self._host_calls else 0
        packed = pack_kernarg(kernel, values, grid, block, lds, buffer)
        result = self.engine.launch(
            kernel,
            grid,
            block,
            packed,
            dynamic_lds=lds,
            time_limit_s=self.settings.launch_limit,
            **self._checks(),
        )
        self.seconds += result.seconds or 0.0
        for finding in getattr(result, "findings", ()):
            if self.recorder:
                self.recorder.finding(asdict(finding))
        if result.fault:
            return self._note_fault(result.fault)
        if self.recorder:
            described: LaunchDescription = {
                "name": kernel.name,
                "grid": list(grid),
                "block": list(block),
                "lds": kernel.lds_bytes + lds,
                "seconds": result.seconds,
                "profile": result.profile,
            }
            self.recorder.launch(described, self.seconds)
        return None

    def charge(self, size: int, kind: int) -> None:
        """Adds the modelled time of a copy of `size` bytes (kind as in hipMemcpyKind) or a fill."""
        if kind in _HOST_COPY:
            self.seconds += HOST_COPY_LATENCY + size / HOST_LINK
        else:
            moved = 2 * size if kind == _DEVICE_COPY else size
            self.seconds += hw.LAUNCH_S + moved / self._bandwidth

    def _checks(self) -> LaunchChecks:
        """Options of `Engine.launch` for checks that the settings ask for."""
        options: LaunchChecks = {}
        if self.settings.audit:
            options |= {"audit": True, "go_on": AUDIT_KINDS}
        if self.settings.bounds == "warn":
            options["margin"] = MARGIN
        return options

    def _check(self, kernel: Kernel, grid: Sequence[int], block: Sequence[int], lds: int) -> None:
        threads, most = block[0] * block[1] * block[2], min(1024, kernel.max_workgroup or 1024)
        if not 0 < threads <= most or 0 in grid:
            shape = f"grid {tuple(grid)}, block {tuple(block)}"
            expected = f"1 to {most} threads and at least one workgroup"
            raise LaunchRefusedError(9, f"{kernel.name}: found {shape}, expected {expected}")
        wanted, available = kernel.lds_bytes + lds, self._target.lds_bytes
        if wanted > available:
            text = f"{kernel.name}: found {wanted} bytes of LDS, expected at most {available}"
            raise LaunchRefusedError(701, text)

    def _note_fault(self, fault: Fault) -> Fault:
        outside = not ARENA_BASE <= fault.address < ARENA_BASE + ARENA_SIZE
        if fault.kind.startswith("out_of_bounds") and outside and fault.address >> 32 > 0x20000:
            fault = Fault(**{**asdict(fault), "message": fault.message + _HOST_ADDRESS})
        if self.recorder:
            self.recorder.fault(asdict(fault))
        return fault

    def _place_variables(self, size: int) -> int:
        start = self._arena.allocate(size, "variables of a module").start
        self._own.add(start)
        return start

    def _prepare_host_calls(self) -> None:
        if self._host_calls is None:
            memory = self._arena.allocate(BUFFER_BYTES, "the buffer for calls of the host").start
            self._host_calls = HostCalls(memory, self._write)
            self.engine.serve_host_calls(self._host_calls)
            self._changed = True

    def _write(self, text: bytes, to_stderr: bool) -> None:
        self.printed.append((to_stderr, text))


def default_memory() -> int:
    """Bytes of device memory that this host can back."""
    available = available_bytes()
    return (
        MAX_MEMORY_BYTES
        if available is None
        else min(MAX_MEMORY_BYTES, int(available * SHARE_OF_HOST))
    )


def why_missing(error: AsmError, kernel: str) -> tuple[str, str, str, str]:
    """Returns the missing feature of an undecodable kernel, for `ResultRecorder.missing`."""
    what = "instruction" if isinstance(error, UnsupportedInstruction) else "library"
    name = getattr(error, "text", "").partition(" ")[0] or kernel
    advice = "the simulator lacks it: report it with the kernel, or compile without it"
    return what, name, f"kernel {kernel}", f"{error}; {advice}"


__all__ = ["DeviceMemoryError", "LaunchRefusedError", "ProgramGpu", "why_missing"]

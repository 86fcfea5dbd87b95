"""The entry to the simulator: load code, launch kernels, read faults and times.

    engine = Engine()
    kernel = engine.load(code)
    engine.set_allocations([(address, size, "x")])
    result = engine.launch(kernel, (grid, 1, 1), (256, 1, 1), kernarg)

Device addresses are addresses in this process. A kernel may only touch what
:meth:`Engine.set_allocations` names; anything else is a :class:`Fault` in the result.
"""

from __future__ import annotations

import ctypes as ct
import os
from collections import OrderedDict
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from kernel_gym.sim import layouts, native
from kernel_gym.sim.asm.assembler import Assembler
from kernel_gym.sim.asm.data import Storage
from kernel_gym.sim.asm.errors import AsmError, UnsupportedInstruction
from kernel_gym.sim.asm.metadata import KernelArg, KernelMetadata
from kernel_gym.sim.asm.module import read_module
from kernel_gym.sim.asm.text import Module
from kernel_gym.sim.compiler.decode import decode_kernel
from kernel_gym.sim.engine import suspects
from kernel_gym.sim.engine.faults import Fault
from kernel_gym.sim.engine.host_calls import HOST_CALL_ARGUMENT, HostCalls
from kernel_gym.sim.engine.kernarg import Dim3, dim3, pack_kernarg
from kernel_gym.sim.engine.kernel import Kernel, LoadedProgram
from kernel_gym.sim.engine.launch_request import launch_request
from kernel_gym.sim.engine.launch_result import (
    MAX_KEPT_BYTES,
    LaunchResult,
    record_unlike,
    unlike_workgroups,
)
from kernel_gym.sim.engine.variables import DeviceVariables
from kernel_gym.sim.timing.conflicts import worst_of_lines
from kernel_gym.sim.timing.model import LaunchModel, Modelled, Trace
from kernel_gym.sim.timing.occupancy import Occupancy
from kernel_gym.sim.timing.profile import hot_lines

__all__ = [
    "AsmError",
    "Engine",
    "Fault",
    "Kernel",
    "KernelArg",
    "LaunchResult",
    "UnsupportedInstruction",
    "pack_kernarg",
]

_CACHED_KERNELS, _CACHED_MODULES = 256, 16


class Engine:
    """A simulated GPU that executes kernels on the host's processor."""

    def __init__(
        self,
        threads: int | None = None,
        isa: str | None = None,
        exact_matrix: bool = False,
        code_cache: Path | None = None,
    ) -> None:
        """Create an engine.

        Args:
            threads: Host threads for workgroups; default: all processors.
            isa: ``avx512``, ``avx2`` or ``portable``; default: the environment variable
                ``KERNEL_GYM_SIM_ISA`` or the best one.
            exact_matrix: Whether matrix instructions sum in the order and with the rounding that
                is published for the hardware (slower); default: in order, rounding each term.
            code_cache: A folder with texts that were assembled; default: none.
        """
        self.threads = threads or os.cpu_count() or 1
        self.exact_matrix = exact_matrix
        self.library = native.load_library(native.choose_isa(isa))
        self._api = self.library.api
        self._handle = self._api.sim_engine_new()
        self._given: list[tuple[int, int, str]] = []
        self._allocations: list[tuple[int, int, str]] = []
        self.variables = DeviceVariables()
        self.kept_limit = MAX_KEPT_BYTES
        """Maximum bytes of memory that are copied before a launch so that it can run again."""
        self._assembler = Assembler(code_cache)
        self._modules: OrderedDict[bytes, Module] = OrderedDict()
        self._kernels: OrderedDict[tuple[bytes, str | None, int | None], Kernel] = OrderedDict()
        self._host_calls: HostCalls | None = None
        self._host_callback: object = None  # the library keeps only its address

    def __del__(self) -> None:
        """Free the engine's memory."""
        if hasattr(self, "_handle"):
            self._api.sim_engine_delete(self._handle)

    # ---- memory
    def set_memory(self, base: int, size: int) -> None:
        """Declare the arena that holds all device memory.

        Args:
            base: Its address in this process, which is also the device address.
            size: Bytes.

        Raises:
            MemoryError: If there is no memory for the map of touched lines.
        """
        if not self._api.sim_set_memory(self._handle, base, size):
            raise MemoryError(f"no memory for the account of an arena of {size} bytes")

    def set_allocations(self, allocations: Iterable[tuple[int, int, str]]) -> None:
        """Declare what kernels may touch: live ``(start, size, label)`` allocations."""
        self._given = [item for item in allocations if item[1] > 0]
        self._declare()

    def _declare(self) -> None:
        own = [(*region, "a device variable") for region in self.variables.regions()]
        self._allocations = sorted(self._given + own)
        bounds = [bound for start, size, _ in self._allocations for bound in (start, start + size)]
        array = (ct.c_uint64 * max(1, len(bounds)))(*bounds)
        self._api.sim_set_allocations(self._handle, array, len(self._allocations))

    def serve_host_calls(self, host_calls: HostCalls) -> None:
        """Serve kernels that call the host from now on. Without this they are refused."""
        self._host_calls = host_calls
        self._host_callback = ct.CFUNCTYPE(None)(host_calls.serve)
        address = ct.cast(self._host_callback, ct.c_void_p)
        self._api.sim_set_host_call(self._handle, address)

    # ---- kernels
    def kernel_names(self, code: bytes | str) -> list[str]:
        """Names of the kernels in an assembler text or a code object.

        Raises:
            AsmError: If the code cannot be read.
        """
        return self._module(_as_bytes(code)).kernel_names

    def _module(self, code: bytes) -> Module:
        if code not in self._modules:
            self._modules[code] = read_module(code, self._assembler)
            if len(self._modules) > _CACHED_MODULES:
                self._modules.popitem(last=False)
        self._modules.move_to_end(code)
        return self._modules[code]

    def load(self, code: bytes | str, name: str | None = None, shared: int | None = None) -> Kernel:
        """Decode a kernel. The same code is decoded only once.

        Args:
            code: An assembler text or a linked code object for gfx90a, gfx942 or gfx950.
            name: Kernel to take; default: the only one, or the first.
            shared: LDS of a workgroup in bytes, if the compiler reports it beside the code (as
                Triton does); default: what the code says.

        Raises:
            AsmError: If the code cannot be read, does not assemble or has no such kernel.
            UnsupportedInstruction: If an instruction is not implemented.
        """
        code = _as_bytes(code)
        key = (code, name, shared)
        if key not in self._kernels:
            self._kernels[key] = self._load(code, name, shared)
            if len(self._kernels) > _CACHED_KERNELS:
                self._kernels.popitem(last=False)
        self._kernels.move_to_end(key)
        return self._kernels[key]

    def _load(self, code: bytes, name: str | None, shared: int | None) -> Kernel:
        module = self._module(code)
        name = name or module.kernel_names[0]
        if name not in module.descriptors:
            names = ", ".join(module.kernel_names)
            raise AsmError(f"no kernel named {name}, found: {names}")
        storage = self._storage(code)
        served = (HOST_CALL_ARGUMENT,) if self._host_calls else ()
        decoded = decode_kernel(
            module, name, self.library.handlers, storage, self.exact_matrix, served
        )
        descriptor = module.descriptors[name]
        metadata = module.metadata.get(name, KernelMetadata((), {}))
        values = metadata.values
        return Kernel(
            name=name,
            arch=module.target,
            args=metadata.args,
            kernarg_size=descriptor["kernarg_size"],
            vgprs=values.get("vgpr_count", decoded.builder.vector_registers),
            agprs=values.get("agpr_count", decoded.builder.accumulators),
            sgprs=values.get("sgpr_count", 0),
            vgpr_spills=values.get("vgpr_spill_count", 0),
            sgpr_spills=values.get("sgpr_spill_count", 0),
            lds_bytes=max(descriptor["group_segment_fixed_size"], shared or 0),
            scratch_bytes=descriptor["private_segment_fixed_size"],
            max_workgroup=values.get("max_flat_workgroup_size", 1024),
            instructions=len(decoded.instructions),
            decoded=decoded,
            program=LoadedProgram(self.library, decoded, module.target),
            descriptor=descriptor,
            files=module.files,
        )

    def _storage(self, code: bytes) -> Storage:
        if code not in self.variables:
            self.variables.add(code, self._module(code).data)
            self._declare()
        return self.variables[code]

    def variable(self, code: bytes | str, name: str) -> tuple[int, int] | None:
        """Address and bytes of a device variable of a module; None if it has none of that name."""
        storage = self._storage(_as_bytes(code))
        if name not in storage.addresses:
            return None
        return storage.addresses[name], storage.sizes[name]

    # ---- launches
    def launch(
        self,
        kernel: Kernel,
        grid: Dim3,
        block: Dim3,
        kernarg: bytes,
        dynamic_lds: int = 0,
        time_limit_s: float = 10.0,
        instruction_limit: int | None = None,
        model_time: bool = True,
        audit: bool = False,
        reverse_waves: bool = False,
        reverse_workgroups: bool = False,
        sample_seed: int = 0,
        full_trace: bool = False,
        margin: int = 0,
        go_on: Collection[str] = (),
    ) -> LaunchResult:
        """Run a kernel to its end or first fault.

        Args:
            kernel: From :meth:`load` of this engine.
            grid: Workgroups along x, y, z (missing ones are 1).
            block: Threads of a workgroup along x, y, z.
            kernarg: The argument segment, see :func:`pack_kernarg`.
            dynamic_lds: Bytes of LDS on top of the kernel's own.
            time_limit_s: Host seconds until the launch is stopped.
            instruction_limit: Wave instructions until the launch is stopped.
            model_time: Whether to model the time on the GPU.
            audit: Whether to check for faults that values do not show, such as races. Slower.
            reverse_waves: Run a workgroup's waves in reverse order, which shows missing barriers.
            reverse_workgroups: Begin the workgroups that are in flight together in reverse order,
                which shows that they rely on each other. It takes one thread.
            sample_seed: Selects the workgroups that the model records. Secret from the candidate.
            full_trace: Whether the model records every workgroup. Slow; for checks of the sampling.
            margin: Bytes around an allocation where an access is made. The first such access of
                the launch becomes a finding. If it is not 0, reads outside LDS give zero and
                writes there are dropped, as on a GPU, and they are findings too.
            go_on: Kinds of faults of an audit that become findings. Then the launch runs again from
                its start without an audit.

        Returns:
            The outcome. A faulty kernel is a value here, not an exception.

        Raises:
            ValueError: If the shapes are not possible for this kernel.
        """
        grid3, block3 = dim3(grid, "grid"), dim3(block, "block")
        lds = kernel.lds_bytes + dynamic_lds
        residency = kernel.residency(block3[0] * block3[1] * block3[2], lds)
        workgroups = grid3[0] * grid3[1] * grid3[2]
        if workgroups == 0:
            return LaunchResult(None, 0.0 if model_time else None, {}, 0)
        request, keep = launch_request(kernel, grid3, block3, kernarg, lds, residency, self.threads)
        request.time_limit_s = time_limit_s
        request.instruction_limit = instruction_limit or 0
        request.reverse_waves = reverse_waves
        request.reverse_workgroups = reverse_workgroups
        request.threads = 1 if reverse_workgroups else request.threads
        request.margin = margin
        trace = Trace.NONE if not model_time else Trace.FULL if full_trace else Trace.SAMPLED
        trace.ask(request, workgroups, sample_seed)
        untouched = layouts.LaunchRequest.from_buffer_copy(request)
        in_part = trace is Trace.SAMPLED and request.sample_count < workgroups
        repeatable = in_part and sum(size for _, size, _ in self._allocations) <= self.kept_limit
        if repeatable and not audit:
            self._api.sim_keep(self._handle, suspects.BEFORE)
        result = self._run(kernel, request, residency, trace, audit)
        if audit and result.fault and result.fault.kind in go_on:
            self._api.sim_restore(self._handle, suspects.BEFORE)
            again = self._run(kernel, untouched, residency, trace, audit=False)
            result = replace(again, findings=(result.fault, *again.findings))
        if repeatable:
            run = partial(self._run_further, kernel, residency)
            result = record_unlike(result, untouched, run)
        self._api.sim_forget(self._handle)
        del keep
        return result

    def _run(
        self,
        kernel: Kernel,
        request: layouts.LaunchRequest,
        residency: Occupancy,
        trace: Trace,
        audit: bool,
    ) -> LaunchResult:
        """Execute a request once. After an audit, memory before the launch is still kept."""
        if audit:
            kernel.program.prepare_audit()
            request.audit, request.threads = 1, 1
            self._api.sim_keep(self._handle, suspects.BEFORE)
        if trace is not Trace.NONE and kernel.program.timing.watched:
            request.sharing, request.threads = 1, 1
        self._api.sim_launch(self._handle, kernel.program.handle, ct.byref(request))
        wanted = trace is not Trace.NONE and not request.fault_kind
        full = trace is Trace.FULL
        modelled = self._model(kernel, request, residency, full) if wanted else None
        unlike: tuple[int, ...] = ()
        if modelled and not full:
            program, seed = kernel.program.handle, request.sample_seed
            unlike = unlike_workgroups(self._api, self._handle, program, modelled, seed)
        if audit:
            self._try_suspects(kernel, request)
        fault, noted = None, []
        if request.fault_kind:
            fault, modelled = suspects.fault_of(kernel, request, self._allocations), None
        elif request.outside_kind:
            request.fault_kind = request.outside_kind
            noted.append(suspects.fault_of(kernel, request, self._allocations))
        seconds, profile = (modelled.seconds, modelled.profile) if modelled else (None, {})
        return LaunchResult(fault, seconds, profile, request.instructions, tuple(noted), unlike)

    def _run_further(
        self, kernel: Kernel, residency: Occupancy, request: layouts.LaunchRequest
    ) -> LaunchResult:
        """Execute a request on the memory before its last launch."""
        self._api.sim_restore(self._handle, suspects.BEFORE)
        with self._muted():
            return self._run(kernel, request, residency, Trace.SAMPLED, audit=False)

    def _muted(self) -> AbstractContextManager[None]:
        """Let kernels print nothing: the launch has run before."""
        return self._host_calls.mute() if self._host_calls else nullcontext()

    def _try_suspects(self, kernel: Kernel, request: layouts.LaunchRequest) -> None:
        """Turn a suspicious read that matters into the fault of the launch."""
        if not request.suspects or request.fault_kind:
            return
        program = kernel.program.handle
        with self._muted():
            suspect = suspects.read_that_matters(self.library, self._handle, program, request)
        if suspect is not None:
            suspects.accuse(request, suspect)

    def _model(
        self,
        kernel: Kernel,
        request: layouts.LaunchRequest,
        residency: Occupancy,
        full_trace: bool,
    ) -> Modelled:
        program = kernel.program
        modelled = LaunchModel(
            self.library, self._handle, program.handle, program.timing, request, residency
        ).run(full_trace)
        for entry in (*modelled.profile["hot"], *modelled.profile["bank_conflicts"]):
            number = entry.pop("instruction")
            entry["text"] = kernel.decoded.instructions[number].text
            entry["source"] = kernel.source_of(number)
        modelled.profile["bank_conflicts"] = worst_of_lines(modelled.profile["bank_conflicts"])
        instructions = kernel.decoded.instructions
        modelled.profile["lines"] = hot_lines(
            (kernel.source_of(number), instructions[number].text, share)
            for number, share in modelled.profile["lines"]
        )
        return modelled


def _as_bytes(code: bytes | str) -> bytes:
    return code.encode(errors="replace") if isinstance(code, str) else code

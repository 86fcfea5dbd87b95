"""A loaded kernel: its properties, its program in the engine library, its initial registers."""

from __future__ import annotations

import ctypes as ct
import hashlib
from dataclasses import dataclass, field
from functools import cached_property

from kernel_gym.sim import constants as hw
from kernel_gym.sim import layouts, native
from kernel_gym.sim.asm.metadata import KernelArg
from kernel_gym.sim.asm.source_lines import Location
from kernel_gym.sim.compiler.audit_tables import audit_table
from kernel_gym.sim.compiler.decode import DecodedKernel
from kernel_gym.sim.compiler.fusion import fused_program
from kernel_gym.sim.compiler.wait_proof import waits_everywhere
from kernel_gym.sim.engine.host_calls import HOST_CALL_ARGUMENT
from kernel_gym.sim.timing.model import KernelTiming
from kernel_gym.sim.timing.occupancy import Occupancy, occupancy


class LoadedProgram:
    """A program in the engine library, freed with this object.

    Attributes:
        is_fused: Whether launches without an audit run fused operations.
    """

    def __init__(self, library: native.Library, decoded: DecodedKernel, arch: str) -> None:
        builder = decoded.builder
        rows = (ct.c_uint32 * max(1, len(builder.constant_rows)))(*builder.constant_rows)
        scalars = builder.scalar_constants
        scalar_array = (ct.c_uint32 * max(1, len(scalars)))(*scalars)
        self._library = library
        self._decoded = decoded
        self._figures = hw.FIGURES[arch]
        self._timing: KernelTiming | None = None
        self._audited = False
        fused = fused_program(builder, decoded.instructions)
        self.is_fused = fused is not None
        self.handle = library.api.sim_program_new(
            builder.code(),
            fused,
            len(builder.records),
            rows,
            len(builder.constant_rows),
            scalar_array,
            len(scalars),
            builder.rows,
            len(builder.blocks),
            len(decoded.instructions),
        )

    @property
    def timing(self) -> KernelTiming:
        """The tables of the timing model, made at their first use."""
        if self._timing is None:
            self._timing = KernelTiming(self._library, self.handle, self._decoded, self._figures)
        return self._timing

    @cached_property
    def waits_everywhere(self) -> bool:
        """Whether it is proven that every path waits for its loads."""
        return waits_everywhere(self._decoded)

    def prepare_audit(self) -> None:
        """Hand the table of audits to the engine, once."""
        if not self._audited:
            self._library.api.sim_program_set_audit(self.handle, audit_table(self._decoded))
            self._audited = True

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self._library.api.sim_program_delete(self.handle)


@dataclass(frozen=True, eq=False)
class Kernel:
    """A loaded kernel.

    Attributes:
        name: Its symbol.
        arch: Target, such as ``gfx942``.
        args: Arguments, hidden ones included.
        kernarg_size: Bytes of the argument segment.
        vgprs: Vector registers a lane.
        agprs: Accumulation registers a lane.
        sgprs: Scalar registers a wave.
        vgpr_spills: Vector registers that the compiler spilled to scratch.
        sgpr_spills: Scalar registers that the compiler spilled.
        lds_bytes: LDS of a workgroup without the dynamic part.
        scratch_bytes: Scratch of a lane.
        max_workgroup: Threads that a workgroup may have.
        instructions: Static instruction count.
        decoded: Its instructions and program text.
        program: Its program in the engine library.
        descriptor: The ``.amdhsa_*`` values.
        files: Source file names by number.
    """

    name: str
    arch: str
    args: tuple[KernelArg, ...]
    kernarg_size: int
    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    lds_bytes: int
    scratch_bytes: int
    max_workgroup: int
    instructions: int
    decoded: DecodedKernel = field(repr=False)
    program: LoadedProgram = field(repr=False)
    descriptor: dict[str, int] = field(repr=False)
    files: dict[int, str] = field(repr=False)

    @property
    def calls_host(self) -> bool:
        """Whether it may call the host, for example to print."""
        return any(arg.value_kind == HOST_CALL_ARGUMENT for arg in self.args)

    @cached_property
    def binary(self) -> str:
        """A hash of the code, independent of its build folder. It identifies a compiled kernel."""
        texts = (instruction.text for instruction in self.decoded.instructions)
        code = "\n".join((self.name, self.arch, str(self.lds_bytes), *texts))
        return hashlib.sha256(code.encode(errors="replace")).hexdigest()[:12]

    @property
    def total_registers(self) -> int:
        """Vector and accumulation registers allocated to a lane."""
        return self.descriptor.get("next_free_vgpr", self.vgprs + self.agprs)

    def occupancy(self, block_threads: int, lds: int | None = None) -> Occupancy:
        """Residency on a compute unit.

        Args:
            block_threads: Threads in a workgroup.
            lds: LDS of a workgroup in bytes; default: the static amount.
        """
        lds_bytes = self.lds_bytes if lds is None else lds
        available = hw.FIGURES[self.arch].lds_bytes
        return occupancy(block_threads, lds_bytes, self.total_registers, available)

    def residency(self, threads: int, lds: int) -> Occupancy:
        """Returns the residency of a workgroup on a compute unit.

        Args:
            threads: Threads of the workgroup.
            lds: Bytes of its LDS.

        Raises:
            ValueError: It does not fit a compute unit.
        """
        if not 0 < threads <= max(1024, self.max_workgroup):
            raise ValueError(f"a workgroup has {threads} threads, expected 1 to 1024")
        available = hw.FIGURES[self.arch].lds_bytes
        if lds > available:
            raise ValueError(f"LDS of {lds} bytes is wanted, found {available}")
        residency = self.occupancy(threads, lds)
        if not residency.workgroups_per_cu:
            raise ValueError(f"a workgroup of {threads} threads does not fit a compute unit")
        return residency

    def source_of(self, instruction: int) -> str:
        """``file:line`` of an instruction, or empty if unknown."""
        return self._sources[instruction]

    @cached_property
    def _sources(self) -> list[str]:
        """The source of each instruction: each launch asks for those that take its time."""
        return [self._described(one.location) for one in self.decoded.instructions]

    def _described(self, location: Location | None) -> str:
        if location is None or not location[1]:
            return ""
        return f"{self.files.get(location[0], '?')}:{location[1]}"


def assign_registers(request: layouts.LaunchRequest, descriptor: dict[str, int]) -> None:
    """Writes the initial scalar registers of a wave into a request, by the kernel descriptor."""
    request.kernarg_register = request.packet_register = layouts.NOT_WANTED
    register = 4 if descriptor.get("user_sgpr_private_segment_buffer") else 0
    if descriptor.get("user_sgpr_dispatch_ptr"):
        request.packet_register = register
        register += 2
    if descriptor.get("user_sgpr_queue_ptr"):
        register += 2
    if descriptor.get("user_sgpr_kernarg_segment_ptr"):
        request.kernarg_register = register
        register += 2
    if descriptor.get("user_sgpr_dispatch_id"):
        register += 2
    if descriptor.get("user_sgpr_flat_scratch_init"):
        register += 2
    if descriptor.get("user_sgpr_private_segment_size"):
        register += 1
    request.preload_register = register
    request.preload_count = descriptor.get("user_sgpr_kernarg_preload_length", 0)
    request.preload_offset = descriptor.get("user_sgpr_kernarg_preload_offset", 0)
    register = descriptor.get("user_sgpr_count", register + request.preload_count)
    for i, axis in enumerate("xyz"):
        wanted = descriptor.get(f"system_sgpr_workgroup_id_{axis}", int(axis == "x"))
        request.workgroup_register[i] = register if wanted else layouts.NOT_WANTED
        register += 1 if wanted else 0

"""The GPUs that can be simulated, with their differences in the instruction set."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gym.sim.asm.errors import AsmError


@dataclass(frozen=True)
class Target:
    """A compilation target.

    Attributes:
        arch: Its name, such as ``gfx942``.
        lds_bytes: LDS of a compute unit. One workgroup may have all of it.
        compute_units: Compute units of a device.
        small_floats: Its 8-bit floats: ``fnuz``, ``ocp`` or None.
        matrix_rule: The published rule by which its matrix instructions accumulate
            (csrc/ops/mfma_exact.cpp), or None if none is published.
        machine: Its number in the flags of a code object (EF_AMDGPU_MACH).
        disassembler: The first version of LLVM that disassembles it.
    """

    arch: str
    lds_bytes: int
    compute_units: int
    small_floats: str | None
    matrix_rule: str | None
    machine: int
    disassembler: int


TARGETS = {
    target.arch: target
    for target in (
        Target("gfx90a", 64 << 10, 110, None, "cdna2", 0x3F, 17),
        Target("gfx942", 64 << 10, 304, "fnuz", "cdna3", 0x4C, 17),
        Target("gfx950", 160 << 10, 256, "ocp", None, 0x4F, 20),
    )
}
"""MI250X (one die), MI300X and MI355X; sizes from AMD's data sheets."""
DEFAULT = TARGETS["gfx942"]
BY_MACHINE = {target.machine: target for target in TARGETS.values()}
MAX_CODE_BYTES = 64 << 20
"""Limit of an assembler text or a code object."""


def target_of(name: str) -> Target:
    """The target in an ``.amdgcn_target`` line; MI300X if the text names none.

    Raises:
        AsmError: If it is not one that can be simulated.
    """
    arch = name.rpartition("-")[2].partition(":")[0]
    if not arch:
        return DEFAULT
    if arch not in TARGETS:
        raise AsmError(f"the text is for {arch}, expected one of {', '.join(TARGETS)}")
    return TARGETS[arch]

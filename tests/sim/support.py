"""Helpers of the simulator's tests: memory, launches, and one-instruction kernels."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from kernel_gym.sim.asm.assembler import Assembler
from kernel_gym.sim.asm.module import read_module
from kernel_gym.sim.asm.text import Module
from kernel_gym.sim.engine.engine import Engine, Kernel, LaunchResult, pack_kernarg

LANES = 64
ASSEMBLER = Assembler()


def parse(text: str | bytes) -> Module:
    """Assembles and decodes a text, or decodes a code object."""
    content = text.encode() if isinstance(text, str) else text
    return read_module(content, ASSEMBLER)


def argument_bytes(value: Any, size: int) -> bytes:
    """The bytes of a float or integer argument."""
    if isinstance(value, float):
        return struct.pack("<f" if size == 4 else "<d", value)
    return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")


class Arena:
    """Device memory: arguments are copied in before a launch and back out after it."""

    PAGE = 4096

    def __init__(self, size: int = 1 << 28) -> None:
        self.buffer = mmap.mmap(-1, size)
        self.words = np.frombuffer(self.buffer, np.uint8)
        self.base, self.size, self.used = self.words.ctypes.data, size, 0
        self.copies: list[tuple[np.ndarray, int]] = []
        self.spans: list[tuple[int, int, str]] = []

    def place(self, value: Any, position: int) -> Any:
        """The address of a tensor or array in the arena; other values as they are."""
        if not isinstance(value, torch.Tensor | np.ndarray):
            return value
        source = value.contiguous().view(torch.uint8).numpy() if torch.is_tensor(value) else value
        source = source.reshape(-1).view(np.uint8)
        start = self.used
        self.words[start : start + source.size] = source
        self.copies.append((source, start))
        self.spans.append((self.base + start, source.size, f"argument {position}"))
        self.used += -(-source.size // self.PAGE) * self.PAGE + self.PAGE
        return self.base + start

    def take_back(self) -> None:
        """Copy everything back and forget it."""
        for source, start in self.copies:
            source[:] = self.words[start : start + source.size]
        self.used, self.copies, self.spans = 0, [], []


ARENA = Arena()


def launch(
    engine: Engine,
    kernel: Kernel,
    grid: Sequence[int],
    block: Sequence[int],
    values: Sequence[Any],
    **options: Any,
) -> LaunchResult:
    """Launch with the arguments' memory as the only allocations."""
    options.setdefault("model_time", False)
    if options["model_time"]:
        engine.set_memory(ARENA.base, ARENA.size)
    placed = [ARENA.place(value, i) for i, value in enumerate(values)]
    engine.set_allocations(ARENA.spans)
    explicit = [arg for arg in kernel.args if not arg.hidden]
    packed = [argument_bytes(v, a.size) for v, a in zip(placed, explicit, strict=False)]
    kernarg = pack_kernarg(kernel, packed, grid, block, options.get("dynamic_lds", 0))
    try:
        return engine.launch(kernel, grid, block, kernarg, **options)
    finally:
        ARENA.take_back()


def run(engine: Engine, text: str, grid: Sequence[int], values: Sequence[Any], **options: Any):
    """Load the first kernel of a text, launch it with 64 threads a workgroup, expect no fault."""
    kernel = engine.load(text, shared=options.pop("shared", None))
    result = launch(engine, kernel, grid, options.pop("block", (64,)), values, **options)
    assert result.fault is None, result.fault.message
    return result


def kernel_text(
    body: str, arguments: int = 1, lds: int = 0, scratch: int = 0, arch: str = "gfx942"
) -> str:
    """A kernel whose pointer arguments are at s[0:1] (kernarg), and v0 the lane.

    Args:
        body: Instructions, one a line, without s_endpgm.
        arguments: 8-byte pointer arguments.
        lds: LDS bytes.
        scratch: Scratch bytes a lane.
        arch: The target.
    """
    args = "".join(
        f"      - .address_space:  global\n        .name: a{i}\n        .offset: {8 * i}\n"
        f"        .size: 8\n        .value_kind: global_buffer\n"
        for i in range(arguments)
    )
    return f"""
	.amdgcn_target "amdgcn-amd-amdhsa--{arch}"
	.text
	.globl	k
	.type	k,@function
k:
{body}
	s_endpgm
.Lfunc_end0:
	.section	.rodata,"a",@progbits
	.amdhsa_kernel k
		.amdhsa_group_segment_fixed_size {lds}
		.amdhsa_private_segment_fixed_size {scratch}
		.amdhsa_kernarg_size {8 * arguments}
		.amdhsa_user_sgpr_count 2
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_next_free_vgpr 64
		.amdhsa_next_free_sgpr 96
		.amdhsa_accum_offset 64
		.amdhsa_float_denorm_mode_32 3
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .args:{"" if arguments else " []"}
{args}    .group_segment_fixed_size: {lds}
    .kernarg_segment_align: 8
    .kernarg_segment_size: {8 * arguments}
    .max_flat_workgroup_size: 1024
    .name:           k
    .private_segment_fixed_size: {scratch}
    .sgpr_count:     96
    .symbol:         k.kd
    .vgpr_count:     64
    .wavefront_size: 64
...
	.end_amdgpu_metadata
"""


def instruction_text(
    instruction: str, inputs: int, outputs: int = 1, setup: str = "", after: str = ""
) -> str:
    """A one-wave kernel around an instruction.

    Words of input ``i`` arrive in ``v[10 + i]``; output ``j`` leaves from ``v[20 + j]``. Memory:
    argument 0 has ``inputs`` rows of 64 words, argument 1 ``outputs`` rows. Outputs start as
    0xdeadbeef-like ``v[20 + j] = 0x7fc0dead``.
    """
    lines = ["s_load_dwordx4 s[4:7], s[0:1], 0x0", "v_lshlrev_b32_e32 v1, 2, v0"]
    lines += [f"global_load_dword v{10 + i}, v1, s[4:5] offset:{256 * i}" for i in range(inputs)]
    lines += [f"v_mov_b32_e32 v{20 + j}, 0x7fc0dead" for j in range(outputs)]
    lines += [setup, instruction, after]
    lines += ["s_mov_b64 exec, -1"]
    lines += [f"global_store_dword v1, v{20 + j}, s[6:7] offset:{256 * j}" for j in range(outputs)]
    return kernel_text("\n".join(f"\t{line}" for line in lines if line), arguments=2)


def execute(
    engine: Engine,
    instruction: str,
    inputs: Sequence[np.ndarray],
    outputs: int = 1,
    setup: str = "",
    after: str = "",
    arch: str = "gfx942",
) -> np.ndarray:
    """Run one instruction on rows of 64 words; returns (outputs, 64) words."""
    rows = np.zeros((max(1, len(inputs)), LANES), np.uint32)
    for i, row in enumerate(inputs):
        row = np.asarray(row)
        rows[i] = row.view(np.uint32) if row.itemsize == 4 else row
    result = np.zeros((outputs, LANES), np.uint32)
    text = instruction_text(instruction, len(inputs), outputs, setup, after)
    text = text.replace("gfx942", arch)
    run(engine, text, (1,), [rows, result])
    return result

"""A second compiler for wrong kernels: Triton's own, without the passes that only make code faster.

Triton 3.7 and 3.8 fold comparisons behind bounded loops to a constant (triton-lang/triton#11312). A
kernel whose values are wrong is compiled again without such passes. The front end is the same, and
so is LLVM.
"""

from __future__ import annotations

import triton
from triton._C.libtriton import amd

OPTIONAL_PASSES = (
    "add_block_pingpong",
    "add_canonicalize_pointers",
    "add_convert_to_buffer_ops",
    "add_fold_true_cmpi",
    "add_hoist_layout_conversions",
    "add_move_up_prologue_loads",
    "add_optimize_buffer_op_ptr",
    "add_optimize_epilogue",
    "add_prepare_if_combining",
    "add_schedule_loops",
    "add_sink_layout_conversions",
)
"""Passes for AMD GPUs that rewrite what has a meaning without them, of all versions 3.5 to 3.9."""


def install() -> None:
    """Leaves the optional passes out of all compilations of this process from now on."""
    triton.knobs.amd.use_buffer_ops = False
    triton.knobs.amd.use_in_thread_transpose = False
    for name in OPTIONAL_PASSES:
        if hasattr(amd.passes.ttgpuir, name):
            setattr(amd.passes.ttgpuir, name, _leave_out)


def _leave_out(*_: object) -> None:
    """Adds no pass to a pipeline."""

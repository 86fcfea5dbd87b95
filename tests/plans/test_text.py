"""The readable form of plans, their hash, and differences between two recordings."""

from __future__ import annotations

import struct
from dataclasses import replace

from kernel_gym.plans.identity import difference, plan_hash
from kernel_gym.plans.text import argument_text, plan_lines
from kernel_gym.plans.types import (
    BufferReference,
    CodeForm,
    LaunchStep,
    PlanArgument,
    PlanCode,
    PlanKernel,
    UploadStep,
    WrongOutput,
)
from tests.plans.plans import PLAN


def launched(**changes):
    steps = [replace(s, **changes) if isinstance(s, LaunchStep) else s for s in PLAN.steps]
    return replace(PLAN, steps=tuple(steps))


def test_a_plan_is_readable():
    view = "float32 [2, 4] by [4, 1] at buffer 1 + 16"
    zeros = "374708fff771"
    assert list(plan_lines(PLAN)) == [
        "plan for gfx942",
        "code 0: assembler, 8 bytes, sha256 41a1f654dc79",
        "kernel 0: add of code 0, 512 bytes of shared memory",
        "buffer 0: input 0, 64 bytes",
        "buffer 1: scratch from step 0 to the end, 64 bytes",
        "buffer 2: scratch from step 1 to step 3, 32 bytes",
        "buffer 3: variable table of code 0, 8 bytes",
        f"step 0: fill {view} with 00000000",
        f"step 1: write 16 bytes, sha256 {zeros}, at 8 buffer 0 + 64, to buffer 2 + 8",
        "step 2: launch kernel 0 (add), grid 4x1x1, block 64x2x1, 128 bytes of dynamic shared "
        "memory: buffer 0 + 4, 5:4",
        f"step 3: copy float32 [2, 4] by [0, 1] at buffer 0 + 0 to {view}",
        f"output 0: {view}",
        "output 1: a list",
    ]


def test_text_of_a_plan_is_inert():
    hostile = replace(
        PLAN,
        arch="\x1b[2J",
        kernels=(PlanKernel(0, "a\nb"),),
        outputs=(WrongOutput("\u202e"),),
    )
    assert all(line.isprintable() for line in plan_lines(hostile))


def test_structs_are_shown_with_their_addresses():
    struct = PlanArgument(bytes(16), (BufferReference(8, 1, 4),))
    text = list(plan_lines(launched(arguments=(struct, PlanArgument(b"\xff" * 4)))))
    assert any("16 bytes 000" in line and "at 8 buffer 1 + 4, -1:4" in line for line in text)


def test_numbers_that_are_floats_are_shown_as_floats():
    assert argument_text(PlanArgument(struct.pack("<f", 0.5))) == "1056964608:4 (float 0.5)"
    assert argument_text(PlanArgument(struct.pack("<i", 4096))) == "4096:4"
    assert argument_text(PlanArgument(struct.pack("<q", 1 << 40))) == f"{1 << 40}:8"


CHANGED = [
    launched(shared=0),
    launched(grid=(4, 2, 1)),
    launched(arguments=(PlanArgument(bytes(24)),)),
    launched(arguments=(PlanArgument(bytes(23) + b"x"),)),
    replace(PLAN, codes=(PlanCode(CodeForm.ASSEMBLER, b"the test"),)),
    replace(PLAN, outputs=PLAN.outputs[:1]),
    replace(PLAN, steps=(UploadStep(1, 0, b"y"), *PLAN.steps[1:])),
    replace(PLAN, steps=(UploadStep(1, 0, b"z"), *PLAN.steps[1:])),
]


def test_equal_plans_have_one_hash_and_others_have_others():
    assert plan_hash(PLAN) == plan_hash(replace(PLAN))
    assert len({plan_hash(plan) for plan in (PLAN, *CHANGED)}) == 1 + len(CHANGED)


def test_the_first_difference_is_named():
    assert difference(PLAN, replace(PLAN)) is None
    for changed in CHANGED:
        text = difference(PLAN, changed)
        assert text is not None
        assert text.startswith("found '")
    assert "expected 'output 1: a list'" in (difference(PLAN, CHANGED[5]) or "")

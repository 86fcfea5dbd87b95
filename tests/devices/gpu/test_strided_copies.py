"""Copies and fills in many pieces are launches, and do what the copies and fills do."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from kernel_gym.devices.gpu import strided_copies
from kernel_gym.devices.gpu.strided_copies import MAX_AXES, StridedCopies
from kernel_gym.plans.types import (
    BufferRole,
    BufferView,
    CodeForm,
    CopyStep,
    FillStep,
    LaunchPlan,
    LaunchStep,
    PlanBuffer,
)
from tests.launcher.support import launcher, needs_toolchain

SIZE = 1 << 14
BUFFERS = (PlanBuffer(BufferRole.SCRATCH, SIZE), PlanBuffer(BufferRole.SCRATCH, SIZE))
BYTES = BufferView(0, 0, (SIZE,), (1,), "uint8")
ALL = replace(BYTES, buffer=1)
AMD = StridedCopies(("hip", "gfx942", 64))
FORMS = {
    "transposed": ((40, 7), (1, 40), (7, 1), "int16"),
    "every other": ((3, 5, 6), (90, 12, 2), (30, 6, 1), "int32"),
    "repeated": ((9, 4), (0, 1), (4, 1), "int8"),
    "wide": ((6, 5), (1, 6), (5, 1), "complex128"),
    "five axes": ((2, 3, 2, 3, 2), (144, 2, 72, 12, 6), (36, 12, 6, 2, 1), "float64"),
}


def plan_of(*steps):
    return LaunchPlan("gfx942", (), (), BUFFERS, steps, (ALL,))


def copy_of(form):
    shape, strides, target, dtype = FORMS[form]
    width = {"int8": 1, "int16": 2, "int32": 4, "float64": 8, "complex128": 16}[dtype]
    source = BufferView(0, 3 * width, shape, strides, dtype)
    return CopyStep(source, BufferView(1, 5 * width, shape, target, dtype))


@pytest.fixture(scope="module")
def opened():
    with launcher() as process:
        yield process


@needs_toolchain
@pytest.mark.parametrize("form", FORMS)
def test_a_launch_copies_what_a_copy_does(form, opened, monkeypatch):
    fill = [FillStep(replace(BYTES, offset=n, shape=(1,)), bytes([n % 251])) for n in range(2048)]
    plan = plan_of(*fill, copy_of(form))
    opened.load(plan)
    expected = opened.execute(b"")[0]
    monkeypatch.setattr(strided_copies, "MAX_PIECES", 1)
    launched = AMD.launched(plan)
    assert isinstance(launched.steps[-1], LaunchStep)
    opened.load(launched)
    assert opened.execute(b"")[0] == expected != b"\xff" * SIZE


@needs_toolchain
def test_a_transposed_fill_leaves_the_other_elements(opened):
    view = BufferView(1, 4, (1, 8000), (9000, 2), "int8")
    with pytest.raises(Exception, match="8000 pieces"):
        opened.load(plan_of(FillStep(view, b"\x07"))) or opened.execute(b"")
    opened.load(AMD.launched(plan_of(FillStep(view, b"\x07"))))
    wanted = torch.full((SIZE,), 255, dtype=torch.uint8)
    wanted[4 : 4 + 16000 : 2] = 7
    assert opened.execute(b"")[0] == wanted.numpy().tobytes()


def test_equal_widths_share_a_kernel_and_few_pieces_stay_a_copy(monkeypatch):
    monkeypatch.setattr(strided_copies, "MAX_PIECES", 4)
    short = CopyStep(replace(BYTES, shape=(9,)), replace(ALL, shape=(9,)))
    plan = AMD.launched(plan_of(copy_of("transposed"), short, copy_of("transposed")))
    assert [type(step) for step in plan.steps] == [LaunchStep, CopyStep, LaunchStep]
    assert len(plan.kernels) == len(plan.codes) == 1


def test_more_axes_than_the_kernel_has_stay_a_copy(monkeypatch):
    monkeypatch.setattr(strided_copies, "MAX_PIECES", 1)
    shape = (2,) * (MAX_AXES + 1)
    source = BufferView(0, 0, shape, (64, 1, 2, 4, 8, 16), "int8")
    step = CopyStep(source, BufferView(1, 0, shape, (32, 16, 8, 4, 2, 1), "int8"))
    assert AMD.launched(plan_of(step)).steps == (step,)


def test_the_kernel_is_compiled_for_the_vendor_of_the_gpu(monkeypatch):
    monkeypatch.setattr(strided_copies, "MAX_PIECES", 1)
    plan = StridedCopies(("cuda", 90, 32)).launched(plan_of(copy_of("transposed")))
    assert [code.form for code in plan.codes] == [CodeForm.CUBIN]
    assert plan.steps[0].block == (128, 1, 1)

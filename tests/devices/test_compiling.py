"""A time-out names the kernel that Triton was compiling."""

import os
from contextlib import closing
from types import SimpleNamespace

import pytest

from kernel_gym.advice import advice
from kernel_gym.devices.base import Failed, FailureKind
from kernel_gym.devices.compiling import CompilerNote
from kernel_gym.devices.sim import planned_session
from kernel_gym.devices.sim.planned_session import PlannedSession
from kernel_gym.devices.sim.session import SimOptions
from kernel_gym.feedback import feedback
from kernel_gym.hidden import without_hidden
from kernel_gym.protocol.compiling import SIZE
from kernel_gym.records import Outcome, Stage
from kernel_gym.tasks import get_task, make_inputs
from kernel_gym.tasks.workload import Kind, Split, Workload
from kernel_gym.worker.recording.compiling import described, write
from tests.records import evaluation, workload

TASK = get_task("triton2triton/softmax")
ONE_BLOCK = """
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64)
    x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


def softmax(x):
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(cols)
    softmax_kernel[(rows,)](x, out, x.stride(0), cols, BLOCK=block, num_warps=4)
    return out
"""


def test_a_block_that_the_compiler_does_not_finish_is_named(monkeypatch):
    monkeypatch.setattr(planned_session, "CALL_SECONDS", 3.0)
    dims = {"rows": 1, "cols": 1 << 17}
    inputs = make_inputs(TASK.problem, Workload(dims, Split.TRAIN, Kind.TRAIN), 0)
    with closing(PlannedSession(TASK, SimOptions(seed=3))) as session:
        assert session.load(ONE_BLOCK) is None
        failed = session.call(inputs, dims)
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.TIMEOUT
    assert failed.message == (
        "record: no answer within 3 s of host time; Triton was still compiling softmax_kernel "
        "(BLOCK=131072, num_warps=4)"
    )


def test_a_finished_compilation_is_not_blamed():
    dims = {"rows": 2, "cols": 64}
    inputs = make_inputs(TASK.problem, Workload(dims, Split.TRAIN, Kind.TRAIN), 0)
    with closing(PlannedSession(TASK, SimOptions(seed=3))) as session:
        assert session.load(ONE_BLOCK) is None
        assert not isinstance(session.call(inputs, dims), Failed)
        assert session._note.reason() == ""


def test_whatever_a_worker_writes_is_one_short_inert_line():
    note = CompilerNote()
    assert note.reason() == ""
    write(note.descriptor, "\x1b[2Jx\n\udc80".encode(errors="replace").decode() + "y" * 999)
    os.pwrite(note.descriptor, b"\xff", SIZE - 1)
    assert note.reason().isprintable()
    assert len(note.reason()) < SIZE + 40
    write(note.descriptor, "")
    assert note.reason() == ""
    note.close()
    assert note.reason() == ""


def test_a_worker_cannot_change_the_length_of_the_page():
    with closing(CompilerNote()) as note:
        for change in (
            lambda: os.pwrite(note.descriptor, b"x", SIZE),
            lambda: os.ftruncate(note.descriptor, 1 << 30),
            lambda: os.ftruncate(note.descriptor, 0),
        ):
            with pytest.raises(PermissionError):
                change()


def test_constants_that_are_no_numbers_are_left_out():
    kernel = SimpleNamespace(__name__="f", arg_names=["x", "BLOCK", "UP", "pair"])
    constants = {(1,): 64, (2,): True, (3, 0): 7}
    options = SimpleNamespace(num_warps=8)
    assert described(kernel, "", {}, 0, constants, options) == "f (BLOCK=64, num_warps=8)"


def test_feedback_names_the_compiler_and_no_hidden_size():
    message = (
        "record: no answer within 30 s of host time; Triton was still compiling f (BLOCK=7777)"
    )
    hidden = workload(Split.ADVERSARIAL, passed=False, message=message)
    failed = evaluation(
        Outcome.TIMEOUT, Stage.ADVERSARIAL, [workload(), hidden], message="fails: no answer in time"
    )
    text = feedback(TASK, failed)
    assert "Triton was still compiling a kernel for it when the time ended." in text
    assert "7777" not in text
    assert "more warps" in " ".join(advice(TASK, failed))
    assert feedback(TASK, without_hidden(failed)) == text


def test_feedback_on_a_shown_size_names_the_kernel():
    message = (
        "record: no answer within 30 s of host time; Triton was still compiling f (BLOCK=7777)"
    )
    shown = workload(passed=False, message=message)
    failed = evaluation(Outcome.TIMEOUT, Stage.TRAIN, [shown], message=message)
    text = feedback(TASK, failed)
    assert "Triton was still compiling f (BLOCK=7777)" in text
    assert "more warps" in text

"""Gluon in Triton tasks: its start kernels are right, and prompts show them with a guide."""

from __future__ import annotations

import pytest

from kernel_gym.executors import make_executor
from kernel_gym.judge.screen import screen
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_problem, get_task, problem_names, prompt
from kernel_gym.tasks.guide import guide

WITH_GLUON = [name for name in problem_names() if get_problem(name).gluon_kernel]
PLAYED = ("add", "layer_norm", "softmax")
"""Problems whose start kernel in Gluon each run plays."""


@pytest.fixture(scope="module")
def executor():
    with make_executor("inline", device="sim:gfx942", seed=0) as executor:
        yield executor


def test_there_are_start_kernels_in_gluon():
    assert len(WITH_GLUON) >= 15


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [n if n in PLAYED else pytest.param(n, marks=pytest.mark.sweep) for n in WITH_GLUON],
)
def test_start_kernels_in_gluon_pass(name, executor):
    source = get_problem(name).gluon_kernel
    assert "@gluon.jit" in source
    assert "@triton.jit" not in source
    evaluation = executor.evaluate(f"triton2triton/{name}", source)
    assert evaluation.outcome is Outcome.PASSED, evaluation


@pytest.mark.slow
def test_a_wrong_kernel_in_gluon_fails(executor):
    source = get_problem("softmax").gluon_kernel
    wrong = source.replace("row_max = gl.max(top, axis=0)", "row_max = 0.0")
    assert wrong != source
    evaluation = executor.evaluate("triton2triton/softmax", wrong)
    assert evaluation.outcome is not Outcome.PASSED


def test_prompts_show_the_kernel_and_the_guide_where_both_exist():
    text = prompt(get_task("triton2triton/softmax"), "a device", arch="gfx942")
    assert get_problem("softmax").gluon_kernel.rstrip() in text
    assert guide("gfx942", "gluon") in text
    for other in ("torch2triton/softmax", "hip2hip/softmax", "triton2triton/matmul"):
        assert "BlockedLayout" not in prompt(get_task(other), "a device", arch="gfx942")


def test_rules_of_triton_tasks_accept_gluon():
    assert "`@gluon.jit`" in prompt(get_task("triton2triton/matmul"), "a device")
    assert "`@gluon.jit`" not in prompt(get_task("hip2hip/softmax"), "a device")


def test_assignments_into_gluon_are_refused():
    assert "assignment into gl.load" in screen("gl.load = print", "triton").rejection
    assert not screen(get_problem("softmax").gluon_kernel, "triton").rejection

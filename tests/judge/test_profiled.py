"""Facts of kernels belong to one binary on one workload, and causes of wrong values are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_gym.devices.sim.device import SimDevice
from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.evaluator import Evaluator
from kernel_gym.feedback import feedback
from kernel_gym.formatting import profiled_workload
from kernel_gym.judge.attempt import Attempt
from kernel_gym.judge.expected import ExpectedCache
from kernel_gym.judge.profiled import profiled_kernels
from kernel_gym.judge.timing.baselines import BaselineRunner, BaselineTimes
from kernel_gym.records import Evaluation, KernelFacts, Outcome, Stage
from kernel_gym.storage.secret import PUBLIC
from kernel_gym.tasks import Split, get_task, train_workloads
from kernel_gym.tasks.problem import Scale

TASK = get_task("triton2triton/softmax")
SOURCE = """
import torch, triton, triton.language as tl

@triton.jit
def whole_row(x_ptr, out_ptr, stride, cols, COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, COLS)
    x = tl.load(x_ptr + row * stride + at, mask=at < cols, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * cols + at, e / tl.sum(e, axis=0), mask=at < cols)

@triton.jit
def long_row(x_ptr, out_ptr, stride, cols, COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.full([COLS], float("-inf"), tl.float32)
    total = tl.zeros([COLS], tl.float32)
    for start in range(0, cols, COLS):
        at = start + tl.arange(0, COLS)
        x = tl.load(x_ptr + row * stride + at, mask=at < cols, other=float("-inf"))
        top = tl.maximum(top, x.to(tl.float32))
    highest = tl.max(top, axis=0)
    for start in range(0, cols, COLS):
        at = start + tl.arange(0, COLS)
        x = tl.load(x_ptr + row * stride + at, mask=at < cols, other=float("-inf"))
        total += tl.exp(x.to(tl.float32) - highest)
    whole = tl.sum(total, axis=0)
    for start in range(0, cols, COLS):
        at = start + tl.arange(0, COLS)
        x = tl.load(x_ptr + row * stride + at, mask=at < cols, other=float("-inf"))
        e = tl.exp(x.to(tl.float32) - highest)
        tl.store(out_ptr + row * cols + at, e / whole, mask=at < cols)

def softmax(x):
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    if cols > 8192:
        long_row[(rows,)](x, out, x.stride(0), cols, COLS=64, num_warps=1)
    else:
        block = max(64, triton.next_power_of_2(cols))
        whole_row[(rows,)](x, out, x.stride(0), cols, COLS=block, num_warps=1)
    return out
"""
BEYOND_ONE_COLUMN = SOURCE.replace(
    "axis=0), mask=at < cols", "axis=0), mask=at < tl.maximum(cols, 2)"
)
REGISTERS, GRANULE, MAX_WAVES_PER_SIMD = 512, 8, 8


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator(device="sim:gfx942", seed=0) as opened:
        yield opened


@pytest.fixture(scope="module")
def right(evaluator):
    return evaluator.evaluate(TASK, SOURCE)


def waves_that_fit(kernel: KernelFacts) -> int:
    granules = -(-max(1, kernel.vgprs) // GRANULE)  # AGPRs are among them
    return min(MAX_WAVES_PER_SIMD, REGISTERS // (granules * GRANULE))


def test_facts_are_of_the_workload_with_most_left_to_earn(right):
    assert right.outcome is Outcome.PASSED, right.message
    result = profiled_workload(right)
    assert result.dims == {"rows": 8, "cols": 32000}
    (kernel,) = right.kernels
    assert kernel.profile["us"] == pytest.approx(result.candidate_seconds * 1e6)
    assert kernel.seconds == pytest.approx(result.candidate_seconds)
    assert kernel.launches == result.launches == 1
    text = feedback(TASK, right)
    assert "Kernels as compiled for rows=8 cols=32000 structured" in text


def test_registers_and_waves_are_of_one_binary(right):
    (kernel,) = right.kernels
    assert kernel.name == "long_row"
    assert kernel.vgprs < 64  # whole_row has 64 values a lane where a row has 4096
    assert kernel.waves_per_simd == waves_that_fit(kernel) == MAX_WAVES_PER_SIMD
    assert len(kernel.binary) == 12


def test_equal_evaluations_have_equal_records(evaluator, right):
    assert evaluator.evaluate(TASK, SOURCE).canonical() == right.canonical()


def test_a_failure_on_a_hidden_workload_shows_the_kernel_of_a_train_workload(evaluator, right):
    wrong = evaluator.evaluate(TASK, BEYOND_ONE_COLUMN)
    assert (wrong.outcome, wrong.stage) == (Outcome.RUNTIME_ERROR, Stage.ADVERSARIAL)
    (kernel,) = wrong.kernels
    assert wrong.workloads[kernel.workload].split is Split.TRAIN
    assert kernel.name == "long_row"
    assert kernel.instructions == right.kernels[0].instructions


def test_a_fault_in_the_first_launch_shows_the_kernel_that_made_it(evaluator):
    source = SOURCE.replace("stride + at, mask", "(stride + 1) + at, mask")
    wrong = evaluator.evaluate(TASK, source)
    assert wrong.outcome is Outcome.RUNTIME_ERROR
    (kernel,) = wrong.kernels
    assert (kernel.name, kernel.workload) == ("whole_row", None)
    assert kernel.vgprs > 64
    assert kernel.waves_per_simd <= waves_that_fit(kernel)


def attempt_with(*results: dict[str, float]) -> Attempt:
    device = SimDevice()
    baseline = BaselineRunner(device, BaselineTimes())
    attempt = Attempt(TASK, "", device, 0, PUBLIC, baseline, ExpectedCache())
    workloads = train_workloads(TASK.problem, Scale.SIM)
    for i, fields in enumerate(results):
        attempt.note(workloads[i], True, **fields)
        attempt.launched[i] = (KernelFacts(name=f"k{i}", vgprs=1, sgprs=1),)
    return attempt


def timed(candidate: float, baseline: float) -> dict[str, float]:
    return {
        "candidate_seconds": candidate,
        "baseline_seconds": baseline,
        "speedup": baseline / candidate,
    }


@pytest.mark.parametrize(
    ("results", "place"),
    [
        ((timed(4e-6, 5e-6), timed(40e-6, 50e-6)), 1),
        ((timed(4e-6, 8e-6), timed(40e-6, 500e-6)), 0),  # the second is paid the most already
        ((timed(30e-6, 0.5e-6), timed(20e-6, 40e-6)), 1),  # the first would stay below what is paid
        (({"candidate_seconds": 9e-6}, {"candidate_seconds": 8e-6}), 0),  # nothing to compare with
    ],
)
def test_what_is_left_to_earn_goes_by_pay(results, place):
    (kernel,) = profiled_kernels(attempt_with(*results))
    assert (kernel.name, kernel.workload) == (f"k{place}", place)


def test_facts_of_the_session_stand_in_where_nothing_ran():
    attempt = attempt_with()
    attempt.facts = (KernelFacts(name="k", vgprs=1, sgprs=1),)
    assert profiled_kernels(attempt) == attempt.facts


def test_records_of_before_are_read():
    old = {"name": "k", "vgprs": 8, "sgprs": 8, "bound_by": "launch", "waves_per_simd": 8.0}
    assert KernelFacts.model_validate(old).workload is None
    workload = {
        "dims": {"rows": 1}, "split": "train", "kind": "train", "distribution": "normal",
        "passed": True, "candidate_seconds": 2e-6, "launches": 1,
    }  # fmt: skip
    record = {
        "protocol_version": "1", "task": TASK.id, "device": "sim:gfx942", "clock": "modelled",
        "source_sha256": "0", "outcome": "passed", "stage": "done", "kernels": [old],
        "workloads": [workload], "speedup": 1.0, "speedup_low": 1.0,
    }  # fmt: skip
    evaluation = Evaluation.model_validate(record)
    assert profiled_workload(evaluation) is None
    assert "Kernels as compiled:" in feedback(TASK, evaluation)


def test_a_missing_barrier_is_named_as_a_race_with_its_line(evaluator):
    if not isinstance(hip_toolchain("gfx942"), HipToolchain):
        pytest.skip("no toolchain for HIP")
    source = Path(__file__).with_name("missing_barrier.hip").read_text()
    task = get_task("hip2hip/softmax")
    wrong = evaluator.evaluate(task, source)
    assert wrong.outcome is Outcome.RUNTIME_ERROR  # by the second order of waves, before values
    assert "race: byte" in wrong.message
    lines = [i for i, line in enumerate(source.splitlines(), 1) if "scratch[lane" in line]
    assert any(f"candidate.hip:{line}" in wrong.message for line in lines)
    text = feedback(task, wrong)
    assert "barrier between them" in text
    assert "_Z14" not in text


def test_wrong_values_without_a_race_keep_their_message(evaluator):
    wrong = evaluator.evaluate(TASK, SOURCE.replace("e / tl.sum", "2 * e / tl.sum"))
    assert wrong.outcome is Outcome.WRONG_VALUES
    assert "cause" not in wrong.message

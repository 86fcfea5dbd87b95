"""The launcher of GPUs on the simulated HIP runtime: values, times, faults, bad plans."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest
import torch

from kernel_gym.devices.sim.planned_session import PlannedSession
from kernel_gym.devices.sim.session import SimOptions
from kernel_gym.launcher.process import LauncherLostError, LauncherProcess, PlanFailedError
from kernel_gym.launcher.shared_file import SharedFile
from kernel_gym.plans.types import (
    BufferReference,
    BufferRole,
    BufferView,
    CodeForm,
    CopyStep,
    FillStep,
    LaunchPlan,
    LaunchStep,
    PlanBuffer,
    PlanCode,
    PlanKernel,
    UploadStep,
)
from kernel_gym.tasks import get_task
from tests.launcher.support import (
    assembled,
    bytes_of,
    launcher,
    needs_toolchain,
    recorded,
    workload_of,
)
from tests.plans.test_code import file_of

pytestmark = needs_toolchain
TASKS = [
    "triton2triton/softmax",
    "triton2triton/matmul",
    "triton2triton/causal_attention",
    "triton2triton/grad_norm_clip",
    "hip2hip/transpose",
    "hip2hip/row_argmax",
]


@pytest.fixture(scope="module")
def opened():
    with launcher() as process:
        yield process


@pytest.mark.parametrize("name", TASKS)
def test_values_are_those_of_the_simulator(name, opened, tmp_path):
    plan, inputs, call = recorded(name)
    opened.load(assembled(plan, tmp_path))
    for _ in range(2):
        results = opened.execute(bytes_of(inputs))
        for output, result in zip(call.outputs, results, strict=False):
            assert output.tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes() == result
        assert b"".join(results[len(call.outputs) :]) == bytes_of(inputs)


def test_times_are_the_modelled_ones(opened, tmp_path):
    plan, inputs, call = recorded("triton2triton/softmax")
    opened.load(assembled(plan, tmp_path))
    for graph in (False, True):
        times = opened.time(bytes_of(inputs), 3, graph=graph)
        assert times == [pytest.approx(call.seconds, rel=0.02)] * 3


VIEW = BufferView(0, 0, (64,), (1,), "int32")
EMPTY = LaunchPlan("gfx942", (), (), (PlanBuffer(BufferRole.SCRATCH, 256),), (), (VIEW,))


def executed_at_once(process, plan, inputs):
    process.load(plan)
    return process.execute(inputs)


def executed(process, *steps, buffers=EMPTY.buffers, outputs=EMPTY.outputs):
    process.load(replace(EMPTY, buffers=buffers, steps=steps, outputs=outputs))
    return process.execute(b"")[0]


def test_memory_is_poisoned_before_each_call(opened):
    assert executed(opened) == b"\xff" * 256
    half = replace(VIEW, shape=(32,))
    assert executed(opened, FillStep(half, bytes(4))) == bytes(128) + b"\xff" * 128
    assert executed(opened) == b"\xff" * 256


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "complex128"])
def test_fills_have_elements_of_any_width(dtype, opened):
    width = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "complex128": 16}[dtype]
    pattern = bytes(range(1, width + 1))
    view = BufferView(0, 0, (256 // width,), (1,), dtype)
    assert executed(opened, FillStep(view, pattern)) == pattern * (256 // width)


def test_fills_and_copies_have_strides(opened):
    rows = BufferView(0, 4, (4, 2), (16, 1), "int32")
    columns = BufferView(0, 16, (4, 2), (16, 8), "int32")
    steps = (FillStep(VIEW, bytes(4)), FillStep(rows, b"\1\0\0\0"), CopyStep(rows, columns))
    result = executed(opened, *steps)
    wanted = torch.zeros(64, dtype=torch.int32)
    wanted.as_strided((4, 2), (16, 1), 1).fill_(1)
    wanted.as_strided((4, 2), (16, 8), 4).fill_(1)
    assert result == wanted.numpy().tobytes()


def test_constants_hold_addresses_of_buffers(opened):
    buffers = (*EMPTY.buffers, PlanBuffer(BufferRole.SCRATCH, 64))
    table = (BufferReference(0, 1, 0), BufferReference(16, 1, 24))
    result = executed(opened, UploadStep(0, 8, bytes(24), table), buffers=buffers)
    first, _, second = (int.from_bytes(result[at : at + 8], "little") for at in (8, 16, 24))
    assert first % 256 == 0
    assert second == first + 24


def test_a_copy_in_too_many_pieces_is_refused(opened):
    buffers = (PlanBuffer(BufferRole.SCRATCH, 1 << 20),)
    view = BufferView(0, 0, (1 << 16,), (2,), "int32")
    with pytest.raises(PlanFailedError, match="a tensor in 65536 pieces"):
        executed(opened, FillStep(view, bytes(4)), buffers=buffers)
    assert executed(opened) == b"\xff" * 256


def broken_plans(plan):
    text = replace(plan, codes=(PlanCode(CodeForm.ASSEMBLER, b"text"),) * len(plan.codes))
    yield text, "found assembler, expected hsaco"
    junk = replace(plan, codes=(PlanCode(CodeForm.HSACO, b"\x7fELF junk"),) * len(plan.codes))
    yield junk, "code 0 ends within a table"
    empty = replace(plan, codes=(PlanCode(CodeForm.HSACO, file_of()),) * len(plan.codes))
    yield empty, "hipModule"
    unnamed = (PlanKernel(0, "none"),) * len(plan.kernels)
    yield replace(plan, kernels=unnamed), "hipModuleGetFunction"
    huge = tuple(
        replace(step, shared=1 << 20) if isinstance(step, LaunchStep) else step
        for step in plan.steps
    )
    yield replace(plan, steps=huge), "hipModuleLaunchKernel"


def test_a_plan_that_does_not_load_or_launch_is_the_failure_of_the_candidate(opened, tmp_path):
    plan, inputs, _ = recorded("triton2triton/softmax")
    plan = assembled(plan, tmp_path)
    for broken, message in broken_plans(plan):
        with pytest.raises(PlanFailedError, match=message):
            executed_at_once(opened, broken, bytes_of(inputs))


WILD = """
#include <hip/hip_runtime.h>
__global__ void wild(float* y) { y[1 << 28] = 1; }
extern "C" int transpose(const float* x, float* y, int64_t rows, int64_t cols, hipStream_t stream) {
  wild<<<1, 64, 0, stream>>>(y);
  return hipGetLastError();
}
"""


def test_a_fault_ends_the_launcher_and_the_next_one_works(tmp_path):
    task = get_task("hip2hip/transpose")
    inputs, dims = workload_of(task)
    with closing(PlannedSession(task, SimOptions())) as session:
        assert session.load(WILD) is None
        plan = assembled(session.record(inputs, dims), tmp_path)
    with launcher() as process:
        process.load(plan)
        with pytest.raises(PlanFailedError, match="error 719"):
            process.execute(bytes_of(inputs))
        assert process.lost
        with pytest.raises(LauncherLostError):
            process.load(plan)
    with launcher() as process:
        assert executed(process) == b"\xff" * 256


def test_a_driver_that_is_not_there_is_no_fault_of_a_candidate():
    with closing(SharedFile(4096)) as shared:
        with pytest.raises(LauncherLostError, match="the driver does not load"):
            LauncherProcess("cuda", shared, 4096, "/nowhere/libcuda.so.1").ready()
        with pytest.raises(LauncherLostError, match="has no function"):
            LauncherProcess("cuda", shared, 4096, "libc.so.6").ready()


def test_a_launcher_that_dies_is_no_fault_of_a_candidate():
    with launcher() as process:
        process.process.ready()
        process.process._process.kill()
        with pytest.raises(LauncherLostError, match="is gone"):
            process.load(EMPTY)
        assert process.lost

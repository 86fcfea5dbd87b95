"""Calls that are recorded and then executed: what has a plan, and what is refused."""

from __future__ import annotations

import re
from contextlib import closing

import pytest
import torch

from kernel_gym.devices import plan_recordings
from kernel_gym.devices.base import Audit, Call, Failed, FailureKind
from kernel_gym.devices.sim import planned_session
from kernel_gym.devices.sim.planned_session import PlannedSession
from kernel_gym.devices.sim.session import SimOptions
from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.plans.identity import plan_hash
from kernel_gym.plans.types import BufferRole, FillStep, LaunchStep
from kernel_gym.tasks import Scale, get_task, make_inputs, train_workloads

SOFTMAX = get_task("triton2triton/softmax")


def opened(task, trusted=True):
    return closing(PlannedSession(task, SimOptions(trusted=trusted, seed=3)))


def workload_of(task):
    workload = train_workloads(task.problem, Scale.SIM)[0]
    return make_inputs(task.problem, workload, seed=1), workload.dims


HEAD = """
import torch, triton
import triton.language as tl
@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n, other=0.0) * 2, mask=at < n)
def work(x, y):
    n = x.numel()
    double[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
"""
KEPT = (
    HEAD
    + """
kept = {}
def softmax(x):
    if x.shape not in kept:
        kept[x.shape] = torch.empty_like(x)
        work(x, kept[x.shape])
    return kept[x.shape]
"""
)
AT_IMPORT = (
    HEAD
    + """
ready = torch.zeros(1024, device="cuda")
def softmax(x):
    work(ready, x)
    return torch.empty_like(x)
"""
)
COUNTS = (
    HEAD
    + """
calls = [0]
def softmax(x):
    calls[0] += 1
    y = torch.empty_like(x)
    for _ in range(calls[0]):
        work(x, y)
    return y
"""
)
READS = (
    HEAD
    + """
def softmax(x):
    y = torch.empty_like(x)
    work(x, y)
    if y[0, 0].item() > 0:
        work(y, y)
    return y
"""
)
FREED = (
    HEAD
    + """
def softmax(x):
    y = torch.empty_like(x)
    address = y.data_ptr()
    del y
    torch.empty(1, device="cuda")
    class Pointer:
        dtype = torch.float32
        def data_ptr(self):
            return address
    work(x, Pointer())
    return torch.empty_like(x)
"""
)
UNEVEN = """
import torch, triton
import triton.language as tl
@triton.jit
def uneven(x, y, unused):
    pid = tl.program_id(0)
    at = pid % 64 + tl.arange(0, 64)
    total = tl.load(x + at)
    for _ in range(tl.where(pid % 509 == 77, 3000, 1)):
        total = total * 0.5 + tl.load(x + at, volatile=True)
    tl.store(y + at, total)
def softmax(x):
    y = torch.empty_like(x)
    unused = torch.empty(SIZE, dtype=torch.int8, device="cuda")
    uneven[(4096,)](x, y, unused, num_warps=1)
    return y
"""
ENDLESS = """
import torch, triton
import triton.language as tl
@triton.jit
def endless(x, n):
    total = tl.load(x)
    for _ in range(n):
        total = total * 0.5 + tl.load(x, volatile=True)
    tl.store(x, total)
def softmax(x):
    y = torch.empty_like(x)
    endless[(64,)](y, 1 << 30)
    return y
"""
COMPUTES = "def softmax(x):\n    return x.exp()\n"
MANY = HEAD + "def softmax(x):\n    for _ in range(5000): work(x, x)\n    return x\n"
TABLE = (
    HEAD
    + """
def softmax(x):
    table = torch.arange(1 << 19, dtype=torch.int32).cuda()
    return torch.empty_like(x)
"""
)
BROKEN = "def softmax(x):\n    return triton\n"
REFUSED = {
    "earlier": (KEPT, "allocated before it"),
    "import": (AT_IMPORT, "allocated before it"),
    "counts": (COUNTS, "two recordings of one call differ"),
    "reads": (READS, "reading device memory|recorded without data"),
    "freed": (FREED, "is in no allocation"),
    "computes": (COMPUTES, "is refused on device tensors"),
    "many": (MANY, "expected a list of at most 4096"),
    "table": (TABLE, "bytes of constants"),
    "broken": (BROKEN, "NameError"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_plan_is_the_failure_of_the_candidate(name):
    source, message = REFUSED[name]
    inputs, dims = workload_of(SOFTMAX)
    with opened(SOFTMAX, trusted=False) as session:
        assert session.load(source) is None
        failed = session.call(inputs, dims)
    assert isinstance(failed, Failed), failed
    assert failed.kind is FailureKind.RUNTIME
    assert re.search(message, failed.message), failed


def test_memory_that_a_candidate_allocates_does_not_change_how_a_launch_is_timed():
    inputs, dims = workload_of(SOFTMAX)
    calls = []
    for size in (1, 100 << 20):
        with opened(SOFTMAX, trusted=False) as session:
            assert session.load(UNEVEN.replace("SIZE", str(size))) is None
            calls.append(session.call(inputs, dims))
    little, much = calls
    assert isinstance(little, Call), little
    assert isinstance(much, Call), much
    assert "run again" in little.uncalibrated
    assert (much.seconds, much.uncalibrated) == (little.seconds, little.uncalibrated)


def test_a_plan_that_is_not_done_in_time_is_the_failure_of_the_candidate(monkeypatch):
    monkeypatch.setattr(planned_session, "CALL_SECONDS", 0.5)
    inputs, dims = workload_of(SOFTMAX)
    with opened(SOFTMAX, trusted=False) as session:
        assert session.load(ENDLESS) is None
        failed = session.call(inputs, dims)
    assert isinstance(failed, Failed), failed
    assert failed.kind is FailureKind.TIMEOUT


def test_a_plan_that_is_recorded_again_later_must_be_the_same(monkeypatch):
    monkeypatch.setattr(plan_recordings, "MAX_KEPT_PLANS", 0)
    inputs, dims = workload_of(SOFTMAX)
    changes = COUNTS.replace("range(calls[0])", "range(1 + calls[0] // 3)")
    with opened(SOFTMAX, trusted=False) as session:
        assert session.load(changes) is None
        first, later = (session.call(inputs, dims) for _ in range(2))
    assert isinstance(first, Call), first
    assert isinstance(later, Failed)
    assert "two recordings of one call differ" in later.message


def test_a_shape_is_recorded_once_and_has_one_plan():
    inputs, dims = workload_of(SOFTMAX)
    once = COUNTS.replace("range(calls[0])", "range(1 + calls[0] // 3)")
    with opened(SOFTMAX, trusted=False) as session:
        assert session.load(once) is None
        calls = [session.call(inputs, dims) for _ in range(3)]
    assert all(isinstance(call, Call) for call in calls), calls
    assert len({call.plan for call in calls}) == 1
    assert [call.launches for call in calls] == [1, 1, 1]


def later(number):
    """Returns a source that launches one kernel more from a call of each shape on."""
    counts = COUNTS.replace("calls = [0]", "calls = {}")
    counts = counts.replace("calls[0] += 1", "n = calls[x.shape] = calls.get(x.shape, 0) + 1")
    return counts.replace("range(calls[0])", f"range(1 + n // {number})")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (later(1 << 20), None),
        (later(3), "two recordings of one call differ"),
        (later(plan_recordings.MIN_REPEATS + 2), "two recordings of one call differ"),
        (
            HEAD + "KEPT = []\ndef softmax(x):\n    if len(KEPT) < 9:\n"
            "        KEPT.append(torch.empty_like(x))\n        work(x, KEPT[-1])\n"
            "    return KEPT[-1]\n",
            "allocated before it|in no buffer|in no allocation",
        ),
    ],
)
def test_a_call_that_is_repeated_is_recorded_many_times(source, message):
    inputs, dims = workload_of(SOFTMAX)
    with opened(SOFTMAX, trusted=False) as session:
        assert session.load(source) is None
        session.sample_from(5)
        assert isinstance(session.call(inputs, dims), Call)
        again = session.call(inputs, dims, audit=Audit.AGAIN)
    if message is None:
        assert isinstance(again, Call), again
    else:
        assert isinstance(again, Failed)
        assert re.search(message, again.message), again


def test_the_seed_decides_how_often_a_call_is_recorded():
    source = later(40)
    inputs, dims = workload_of(SOFTMAX)
    outcomes = set()
    with opened(SOFTMAX, trusted=False) as session:
        for seed in range(6):
            assert session.load(source) is None
            session.sample_from(seed)
            assert isinstance(session.call(inputs, dims), Call)
            outcomes.add(type(session.call(inputs, dims, audit=Audit.AGAIN)))
    assert outcomes == {Call, Failed}


@pytest.mark.parametrize("trusted", [False, True])
def test_equal_kernels_have_equal_plans_in_all_processes(trusted):
    inputs, dims = workload_of(SOFTMAX)
    plans = []
    for _ in range(2):
        with opened(SOFTMAX, trusted) as session:
            assert session.load(SOFTMAX.start_source) is None
            plans.append(session.record(inputs, dims))
    assert plan_hash(plans[0]) == plan_hash(plans[1])


def test_refused_operators_are_reported_with_the_call():
    source = "def softmax(x):\n    try:\n        x.exp()\n    finally:\n        return x.clone()\n"
    inputs, dims = workload_of(SOFTMAX)
    with opened(SOFTMAX, trusted=False) as session:
        assert session.load(source) is None
        call = session.call(inputs, dims)
    assert isinstance(call, Call), call
    assert [name for name in call.refused if "exp" in name]
    assert torch.equal(call.outputs[0].tensor, inputs["x"])


def test_a_fault_in_a_kernel_of_a_plan_is_described():
    source = HEAD + "def softmax(x):\n    work(x, torch.empty(8, device='cuda'))\n    return x\n"
    inputs, dims = workload_of(SOFTMAX)
    with opened(SOFTMAX, trusted=False) as session:
        assert session.load(source) is None
        failed = session.call(inputs, dims)
    assert isinstance(failed, Failed)
    assert "tensor allocated" in failed.message


def test_the_plan_of_a_shape_holds_no_values():
    inputs, dims = workload_of(SOFTMAX)
    others = {name: torch.zeros_like(value) for name, value in inputs.items()}
    with opened(SOFTMAX) as session:
        assert session.load(SOFTMAX.start_source) is None
        plan, same = session.record(inputs, dims), session.record(others, dims)
    assert plan_hash(plan) == plan_hash(same)
    assert [buffer.role for buffer in plan.buffers] == [BufferRole.INPUT, BufferRole.SCRATCH]
    assert plan.launches == 1
    (step,) = plan.steps
    assert isinstance(step, LaunchStep)
    pointers = [one for argument in step.arguments for one in argument.references]
    assert sorted(one.buffer for one in pointers) == [0, 1]


TUNED = """
import torch, triton
import triton.language as tl
@triton.autotune([triton.Config({"BLOCK": b}) for b in (16, 1024)], key=["n"], reset_to_zero=["y"])
@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n, other=0.0) * 2, mask=at < n)
def softmax(x):
    y = torch.empty_like(x)
    n = x.numel()
    double[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
    return y
"""


def test_host_code_that_tunes_itself_is_told_times_and_leaves_no_trace():
    inputs, dims = workload_of(SOFTMAX)
    with opened(SOFTMAX) as session:
        assert session.load(TUNED) is None
        plan = session.record(inputs, dims)
        call = session.call(inputs, dims)
    assert plan.launches == 1
    assert not any(isinstance(step, FillStep) for step in plan.steps)
    assert (len(plan.codes), len(plan.kernels), len(plan.buffers)) == (1, 1, 2)
    assert call.launches == 1
    assert torch.equal(call.outputs[0].tensor, 2 * inputs["x"])


TIMED_BY_EVENTS = (
    HEAD
    + """
chosen = {}
def timed(x, y, repeat):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeat):
        work(x, y)
    end.record()
    end.synchronize()
    return start.elapsed_time(end)
def softmax(x):
    y = torch.empty_like(x)
    if x.shape not in chosen:
        chosen[x.shape] = min((3, 1, 2), key=lambda repeat: timed(x, y, repeat))
    for _ in range(chosen[x.shape]):
        work(x, y)
    return y
"""
)


def test_host_code_that_tunes_itself_by_events_is_recorded_with_its_choice():
    inputs, dims = workload_of(SOFTMAX)
    with opened(SOFTMAX, trusted=False) as session:
        assert session.load(TIMED_BY_EVENTS) is None
        call = session.call(inputs, dims)
    assert isinstance(call, Call), call
    assert call.launches == 1
    assert torch.equal(call.outputs[0].tensor, 2 * inputs["x"])


def test_tuning_changes_no_draw_of_a_call():
    large = {"x": torch.ones(64, 1 << 14, dtype=SOFTMAX.problem.outputs[0].dtype)}
    seconds = []
    for source in (TUNED, TUNED.replace("(16, 1024)", "(1024,)")):
        with opened(SOFTMAX, trusted=False) as session:
            assert session.load(source) is None
            calls = [session.call(large, {"rows": 64, "cols": 1 << 14}) for _ in range(2)]
        assert all(isinstance(call, Call) for call in calls), calls
        seconds.append([call.seconds for call in calls])
    assert seconds[0] == pytest.approx(seconds[1], rel=1e-12)


KEEPS = """
#include <hip/hip_runtime.h>
__device__ int calls = 5;
__device__ int* place = &calls;
__global__ void count(float* y) { y[threadIdx.x] = calls; if (!threadIdx.x) *place += 1; }
extern "C" int transpose(const float* x, float* y, int64_t rows, int64_t cols, hipStream_t stream) {
  count<<<1, 64, 0, stream>>>(y);
  count<<<1, 64, 0, stream>>>(y + 64);
  int* found;
  if (hipGetSymbolAddress((void**)&found, HIP_SYMBOL(calls))) return 1;
  hipMemsetAsync(found, 0, 4, stream);
  count<<<1, 64, 0, stream>>>(y + 128);
  return hipGetLastError();
}
"""


@pytest.mark.skipif(not isinstance(hip_toolchain("gfx942"), HipToolchain), reason="no toolchain")
def test_device_variables_have_their_first_values_in_each_call():
    task = get_task("hip2hip/transpose")
    inputs, dims = workload_of(task)
    with opened(task, trusted=False) as session:
        assert session.load(KEEPS) is None
        calls = [session.call(inputs, dims) for _ in range(3)]
    for call in calls:
        assert isinstance(call, Call), call
        values = call.outputs[0].tensor.view(-1)[:192:64]
        assert values.tolist() == [5.0, 6.0, 0.0]

"""The GPU device end to end: honest kernels, a kernel against itself, and what must not spread."""

import pytest
import torch

from kernel_gym.evaluator import Evaluator
from kernel_gym.records import Clock, Outcome
from kernel_gym.tasks import get_task, load_suite
from kernel_gym.tasks.task import kernel_path

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
    pytest.mark.timeout(600),
]
SOFTMAX = get_task("triton2triton/softmax")
ILLEGAL = """
import torch
import triton
import triton.language as tl

@triton.jit
def wild(out, far):
    tl.store(out + far, 1.0)

def softmax(x):
    out = torch.empty_like(x)
    wild[(1,)](out, 1 << 40)
    return out
"""


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator("auto") as result:
        yield result


def _kernel(task):
    return kernel_path(task.problem, task.language).read_text()


@pytest.mark.parametrize("task", load_suite("quickstart").tasks, ids=str)
def test_kernels_of_the_quickstart_pass(evaluator, task):
    if task.language not in evaluator.device.description.languages:
        pytest.skip(f"no compiler for {task.language}")
    result = evaluator.evaluate(task, _kernel(task))
    assert result.outcome is Outcome.PASSED, result.message
    assert result.clock is Clock.MEASURED
    assert all(w.speedup_low <= w.speedup <= w.speedup_high for w in result.workloads if w.speedup)


def test_a_kernel_against_itself_gains_nothing(evaluator):
    lows = [evaluator.evaluate(SOFTMAX, _kernel(SOFTMAX)).speedup_low for _ in range(5)]
    assert all(0.95 <= low <= 1.0 for low in lows), lows


def test_an_illegal_access_costs_its_own_evaluation_only(evaluator):
    assert evaluator.evaluate(SOFTMAX, ILLEGAL).outcome is Outcome.RUNTIME_ERROR
    assert evaluator.device.usable(SOFTMAX)
    assert evaluator.evaluate(SOFTMAX, _kernel(SOFTMAX)).outcome is Outcome.PASSED


def test_memory_passes_through_the_host_where_handles_do_not_work(evaluator):
    from kernel_gym.devices.gpu.device import GpuDevice
    from kernel_gym.tasks import make_inputs, train_workloads

    device = GpuDevice(evaluator.device.description.name, by_handle=False)
    session = device.open(SOFTMAX)
    assert session.load(_kernel(SOFTMAX)) is None
    workload = train_workloads(SOFTMAX.problem, device.description.scale)[0]
    inputs = make_inputs(SOFTMAX.problem, workload, 0, device.description.torch_device)
    call = session.call(inputs, workload.dims)
    session.close()
    device.close()
    torch.testing.assert_close(call.outputs[0].tensor, SOFTMAX.problem.reference(**inputs)[0])

"""Start kernels at sizes at which they were wrong."""

import pytest

from kernel_gym.devices import open_device
from kernel_gym.judge.correctness import compare_close
from kernel_gym.tasks import get_problem, get_task, make_inputs, problem_names
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.task import Task, modes_of
from kernel_gym.tasks.workload import Kind, Split, Workload


def _hip_kernels():
    for problem in map(get_problem, problem_names()):
        source = (
            Task(problem, Mode.HIP2HIP).start_source if Mode.HIP2HIP in modes_of(problem) else None
        )
        if source is not None:
            yield pytest.param(source, id=problem.name)


@pytest.mark.parametrize("source", [*_hip_kernels()])
def test_exchanges_within_a_wave_hold_for_32_and_64_lanes(source):
    """A sum that takes waves of 64 lanes for granted is wrong on GPUs with 32."""
    assert "__shfl" not in source or "warpSize" in source


@pytest.mark.parametrize("length", [1, 2])
def test_penalties_of_outputs_of_few_tokens(length):
    task = get_task("triton2triton/logit_penalties")
    dims = {"rows": 4, "vocab": 600, "prompt_length": 3, "output_length": length}
    workload = Workload(dims, Split.UNSEEN, Kind.EDGE, distribution="normal")
    device = open_device("sim:gfx942")
    session = device.open(task)
    assert session.load(task.kernel_source) is None
    for seed in range(3):
        inputs = make_inputs(task.problem, workload, seed)
        assert (inputs["output"] >= 0).any()
        (oracle,) = task.problem.oracle(**inputs)
        (yardstick,) = task.problem.yardstick(**inputs)
        call = session.call(inputs, workload.dims)
        assert compare_close("out", call.outputs[0].tensor, oracle, yardstick).passed
    session.close()
    device.close()

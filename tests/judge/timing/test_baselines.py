"""Times of baselines, and their cache: bounded, and the least used time goes first."""

from types import SimpleNamespace

import pytest
import torch

from kernel_gym.devices import open_device
from kernel_gym.devices.base import Failed, FailureKind, InfraError
from kernel_gym.imports.traced.problem import TracedProblem
from kernel_gym.judge.timing.baselines import BaselineRunner, BaselineTimes
from kernel_gym.tasks import Scale, get_problem, get_task, train_workloads
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Kind, Split, Workload


def key(number):
    return ("sim:gfx942", "triton2triton/softmax", f"rows={number}")


def test_the_cache_of_times_is_bounded():
    times = BaselineTimes(capacity=2)
    times.put(key(0), 0.5)
    times.put(key(1), 1.5)
    assert times.get(key(0)) == 0.5
    times.put(key(2), 2.5)
    assert [times.get(key(number)) for number in range(3)] == [0.5, None, 2.5]


def test_the_time_of_a_baseline_does_not_depend_on_what_was_timed_before():
    def seconds(rows, cols):
        dims = {"rows": rows, "cols": cols}
        workload = Workload(dims, Split.UNSEEN, Kind.PRODUCTION, distribution="normal", name="x")
        return baseline.seconds(get_task("triton2triton/softmax"), workload)

    device, times = open_device("sim:gfx942"), []
    for before in ((), ((64, 4909), (385, 385))):
        baseline = BaselineRunner(device, BaselineTimes())
        for dims in before:
            seconds(*dims)
        times.append(seconds(4, 50257))
        baseline.close()
    assert times[0] == times[1]


class TwiceRead(type(get_problem("row_sum"))):
    """A problem with the name of another one, whose reference reads its input twice."""

    def reference(self, x):
        return ((x * 1.0).sum(-1, dtype=torch.float32),)


class OtherKernel(type(get_problem("row_sum"))):
    """A problem with the name of another one, and another baseline kernel."""

    def kernel(self, language):
        return get_problem("row_sum").kernel(language) + "\n# another text\n"


@pytest.mark.parametrize(
    ("other", "mode"),
    [(TwiceRead(), Mode.TORCH2TRITON), (OtherKernel(), Mode.TRITON2TRITON)],
    ids=["reference", "kernel"],
)
def test_tasks_with_equal_names_have_baselines_of_their_own(other, mode):
    first, second = Task(get_problem("row_sum"), mode), Task(other, mode)
    assert first.id == second.id
    workload = train_workloads(first.problem, Scale.SIM)[0]
    runner, sessions = BaselineRunner(open_device("sim:gfx942"), BaselineTimes()), []
    for task in (first, second, first):
        seconds = runner.seconds(task, workload)
        if mode is Mode.TORCH2TRITON:
            sessions.append(seconds)
        else:
            sessions.append(runner.session(task))
    runner.close()
    assert sessions[0] != sessions[1]


class Traced(TracedProblem):
    """A traced problem of a suite: the list of operators was written by us."""

    name = suite = entry = "traced"
    text = "def reference(\n    self,\n    x,\n):\n    return (x,)\n"

    def inputs(self, workload, generator):
        raise NotImplementedError

    def reference(self, x):
        return (x,)


@pytest.mark.parametrize(
    ("problem", "ours"),
    [
        (Traced(), True),
        (
            SimpleNamespace(
                **{"suite": "other", "name": "other", "content": lambda: iter(["text"])},
                **{"claimed": False, "rewritten": False, "recorded": False},
            ),
            False,
        ),
    ],
    ids=["traced", "upstream"],
)
def test_the_reference_of_a_traced_problem_runs_as_our_own_code(problem, ours):
    opened = []

    class Session:
        def load(self, source, language):
            return Failed(FailureKind.RUNTIME, "stop here")

        def close(self):
            pass

    def open_(task, trusted, resident):
        opened.append(trusted)
        return Session()

    runner = BaselineRunner(SimpleNamespace(open=open_), BaselineTimes())
    task = Task(problem, Mode.TORCH2TRITON)
    if not ours:
        task = SimpleNamespace(
            problem=problem, id="other", baseline_source=None, reference_source=""
        )
    with pytest.raises(InfraError, match="stop here"):
        runner.session(task)
    assert opened == [ours]

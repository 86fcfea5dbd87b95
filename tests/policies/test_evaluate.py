"""Evaluating a policy from Python: what is played, kept and returned."""

from concurrent.futures import Future

import pytest

from kernel_gym.executors import Executor, UnknownExecutor
from kernel_gym.policies import PolicyError, Scripted, evaluate_policy
from kernel_gym.policies.evaluate import runnable
from kernel_gym.storage.run_store import RunStore
from kernel_gym.storage.secret import RunSecret
from kernel_gym.tasks import get_task, load_suite
from tests.records import passing

TASK, DEVICE = "triton2triton/softmax", "sim:gfx942"


class Twice(Executor):
    """An open executor that finds every submission correct and twice as fast."""

    def __init__(self):
        super().__init__(DEVICE, seed=5, secret=RunSecret.fresh())
        self.closed = False

    def _start(self, request):
        future = Future()
        future.set_result(passing(2.0, 2.0, task=request.task))
        return future

    def close(self):
        self.closed = True


class Begun(Scripted):
    """Submits its number of submissions so far; keeps the runs that it began."""

    def __init__(self):
        self.runs = []

    def begin(self, run):
        self.runs.append((run.folder, run.device, run.arch))

    def submit(self, episode):
        return str(len(episode.turns))


def test_a_policy_object_plays_through_an_open_executor(tmp_path):
    policy, executor = Begun(), Twice()
    out = tmp_path / "run"
    results = evaluate_policy(policy, TASK, executor=executor, turns=2, samples=2, out=out)
    assert policy.runs == [(out, DEVICE, "gfx942")]
    assert not executor.closed
    assert results.folder == out
    assert (results.summary.solved, results.summary.speedup) == (1, 2.0)
    assert results.sections["attempts"] == 2
    store = RunStore(out)
    assert [store.source(record) for record in store.records()] == ["0", "1"] * 2
    assert (store.config.policy, store.config.seed) == ("Begun", 5)
    assert store.secret.sha256 == executor.secret.sha256
    assert (out / "metrics.json").exists()
    resumed = evaluate_policy(
        policy, TASK, executor=executor, turns=2, samples=2, out=out, resume=True
    )
    assert resumed.sections == results.sections


def test_without_a_folder_nothing_is_kept():
    policy = Begun()
    results = evaluate_policy(policy, TASK, executor=Twice(), turns=1)
    ((folder, _, _),) = policy.runs
    assert results.folder is None
    assert not folder.exists()
    assert results.summary.submissions == 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"policy": "basline"}, PolicyError),
        ({"policy": "baseline", "executor": "remote"}, UnknownExecutor),
        ({"policy": "baseline", "reward": "kernel-op"}, ValueError),
    ],
)
def test_an_unknown_name_is_refused_before_the_folder_is_made(tmp_path, arguments, error):
    with pytest.raises(error, match="unknown"):
        evaluate_policy(suite=TASK, device=DEVICE, out=tmp_path / "run", **arguments)
    assert not (tmp_path / "run").exists()


def test_tasks_that_hardly_a_kernel_can_win_are_named():
    tasks = tuple(map(get_task, ("torch2triton/gelu", "torch2triton/swiglu")))
    notes: list[str] = []
    assert runnable(tasks, "sim:gfx942", notes.append) == [*tasks]
    (note,) = notes
    assert note.startswith("1 of 2 tasks have a head-room of 1.25 or less on sim:gfx942")
    assert note.endswith(": torch2triton/gelu")
    notes.clear()
    runnable(load_suite("quickstart").tasks, "sim:gfx942", notes.append)
    assert notes == []

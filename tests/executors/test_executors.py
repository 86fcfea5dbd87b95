"""Executors with real evaluations. Most submissions fail early, to save time."""

import os
import signal
import threading
from pathlib import Path

import pytest

from kernel_gym.executors import EvaluationCache, EvaluationRequest, UnknownExecutor, make_executor
from kernel_gym.executors.local import LocalExecutor
from kernel_gym.records import Outcome
from kernel_gym.sandbox import spawn
from kernel_gym.tasks import UnknownName, get_task

TASK = "triton2triton/softmax"
SOURCES = [f"broken {i}(" for i in range(6)]
SLEEPS = "import time\ntime.sleep(1000)\n"
SIM = {"device": "sim:gfx942"}


def test_every_executor_gives_the_same_records():
    sources = ["x(", "import ctypes", "def softmax(x): return x", get_task(TASK).start_source]
    with make_executor("inline", seed=3, **SIM) as inline:
        expected = [inline.evaluate(TASK, source).canonical() for source in sources]
    with make_executor("local", workers=2, seed=3, **SIM) as local:
        futures = [local.submit(TASK, source) for source in sources]
        assert [future.result().canonical() for future in futures] == expected


@pytest.mark.parametrize("name", ["inline", "local"])
def test_results_come_as_they_finish_and_are_drawn_as_needed(name):
    drawn = []

    def requests():
        for source in SOURCES:
            drawn.append(source)
            yield EvaluationRequest(TASK, source, 0)

    with make_executor(name, **SIM) as executor:
        results = {}
        for position, evaluation in executor.results(requests()):
            results[position] = evaluation
            assert len(drawn) <= len(results) + 2 * executor.workers
    assert sorted(results) == list(range(len(SOURCES)))
    assert len({evaluation.source_sha256 for evaluation in results.values()}) == len(SOURCES)


def test_equal_submissions_are_evaluated_once():
    cache = EvaluationCache()
    with make_executor("local", workers=2, seed=0, cache=cache, **SIM) as executor:
        futures = [executor.submit(TASK, "same(") for _ in range(5)]
        first = futures[0].result()
        assert all(future.result() is first for future in futures)
        assert executor.evaluate(TASK, "same(") is first
        assert executor.evaluate(TASK, "same(", seed=1) is not first
        assert len(cache) == 2
    with make_executor("inline", seed=0, cache=cache, **SIM) as other:
        assert other.evaluate(TASK, "same(") is first


def test_a_problem_with_other_texts_is_evaluated_again(monkeypatch):
    with make_executor("inline", seed=0, **SIM) as executor:
        before = executor.evaluate(TASK, "x(")
        monkeypatch.setitem(vars(get_task(TASK).problem), "_digest_of_content", "0" * 64)
        after = executor.evaluate(TASK, "x(")
    assert after is not before
    assert before.problem_sha256 != after.problem_sha256 == "0" * 64


def test_without_a_seed_nothing_is_cached():
    with make_executor("inline", **SIM) as executor:
        one, other = executor.evaluate(TASK, "x("), executor.evaluate(TASK, "x(")
        assert one.seed != other.seed
        assert len(executor.cache) == 0


def test_the_cache_keeps_the_most_recent():
    with make_executor("inline", seed=0, cache=EvaluationCache(capacity=2), **SIM) as executor:
        first = executor.evaluate(TASK, "1(")
        executor.evaluate(TASK, "2(")
        assert executor.evaluate(TASK, "1(") is first
        executor.evaluate(TASK, "3(")
        assert executor.evaluate(TASK, "1(") is first
        assert len(executor.cache) == 2


def test_a_worker_that_overruns_is_replaced_and_its_evaluation_masked(recording):
    with recording(LocalExecutor)(workers=1, deadline=2.0, seed=0, **SIM) as executor:
        late = executor.submit(TASK, SLEEPS)
        after = executor.submit(TASK, "x(")
        assert late.result().outcome is Outcome.INFRA
        assert "no result within 2 s" in late.result().message
        assert after.result().outcome is Outcome.COMPILE_ERROR
        assert executor.replaced == 1
        assert executor.made.qsize() == 2
        assert len(executor.cache) == 1


def test_a_worker_that_cannot_be_made_is_tried_again(recording):
    with recording(LocalExecutor)(workers=1, failures=2, **SIM) as executor:
        assert executor.evaluate(TASK, "x(").outcome is Outcome.COMPILE_ERROR
    with recording(LocalExecutor)(workers=1, failures=99, **SIM) as executor:
        evaluation = executor.evaluate(TASK, "x(")
        assert evaluation.outcome is Outcome.INFRA
        assert "no room for a worker" in evaluation.message
        assert executor.failures == 99 - 3


def test_a_dead_template_costs_nothing():
    """Template and device processes can be killed without an effect on the evaluation."""
    wrong = "def softmax(x): return x\n"
    with make_executor("local", workers=2, seed=0, **SIM) as executor:
        expected = executor.evaluate(TASK, wrong).outcome
        spawn.shared_template()._process.kill()
        again = [executor.submit(TASK, f"{wrong}# {i}") for i in range(2)]
        assert [future.result().outcome for future in again] == [expected] * 2
        assert expected is not Outcome.INFRA


@pytest.mark.slow
@pytest.mark.parametrize(
    "with_template",
    [pytest.param(False, marks=pytest.mark.sweep), True],
    ids=["children", "template too"],
)
def test_all_workers_killed_at_once_change_no_record(monkeypatch, with_template):
    """The kernel of Linux may do so when the machine is out of memory."""
    gelu = "torch2triton/gelu"
    submissions = [(TASK, "def softmax(x): return x\n"), (TASK, get_task(TASK).start_source)]
    submissions += [(gelu, get_task(gelu).kernel_source), (gelu, "def gelu(x): return x\n")]
    with make_executor("inline", seed=3, **SIM) as inline:
        expected = [inline.evaluate(*submission).canonical() for submission in submissions]

    forks, fork = [], spawn.Template.fork

    def fork_and_kill(template, role, *args, **kwargs):
        child = fork(template, role, *args, **kwargs)
        forks.append(role)
        if role == "recorder" and forks.count("recorder") == 3:
            killed.append(kill(descendants(template._process.pid)))
            if with_template:
                template._process.kill()
        return child

    killed = []
    monkeypatch.setattr(spawn.Template, "fork", fork_and_kill)
    with make_executor("local", workers=2, seed=3, **SIM) as local:
        futures = [local.submit(*submission) for submission in submissions]
        assert [future.result().canonical() for future in futures] == expected
    assert len(killed) == 1
    assert killed[0] >= 4  # two workers and two simulated GPUs


def descendants(pid):
    """The processes that a process has started, and theirs."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for file in files for child in file.read_text().split()]
    return [one for child in children for one in (child, *descendants(child))]


def kill(pids):
    """Kills processes and returns how many."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return len(pids)


def test_a_full_executor_makes_the_caller_wait_and_closing_frees_it():
    executor = LocalExecutor(workers=1, deadline=2.0, **SIM)
    taken = [executor.submit(TASK, SLEEPS) for _ in range(5)]
    refused = []

    def submit():
        try:
            refused.append(executor.submit(TASK, "x("))
        except RuntimeError as error:
            refused.append(error)

    waiting = threading.Thread(target=submit)
    waiting.start()
    assert not refused
    executor.close()
    waiting.join()
    assert "closed" in str(refused[0])
    assert all(future.done() for future in taken)
    assert sum(future.cancelled() for future in taken) >= 3


def test_bad_arguments_are_refused():
    with pytest.raises(UnknownExecutor, match="did you mean local"):
        make_executor("locla")
    with pytest.raises(ValueError, match="workers must be at least 1"):
        make_executor("local", workers=0)
    with make_executor("inline", **SIM) as executor, pytest.raises(UnknownName, match="softmax"):
        executor.submit("triton2triton/softmx", "x(")

"""Hostile among honest submissions: no evaluation is lost, and the honest ones pass."""

from benchmarks.hostile import SHARE, _series
from kernel_gym.commands.exploits import SUITE
from kernel_gym.executors import EvaluationRequest, make_executor
from kernel_gym.exploits.loader import load_exploits
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task

TASK = "triton2triton/softmax"
HOSTILE = ("e06_signal_everybody.py", "e10_crash.py", "e07_daemon.py")


def test_the_two_series_of_the_bench_are_alike_but_for_the_hostile_ones():
    honest, mixed = _series(SUITE, "sim:gfx942", 40)
    assert [r.task for r in honest] == [r.task for r in mixed]
    differ = [a.source != b.source for a, b in zip(honest, mixed, strict=True)]
    assert sum(differ) == round(SHARE * 40)
    assert len({r.source for r in mixed if r.source}) == 40
    assert not {(r.task, r.seed) for r in honest} & {(r.task, r.seed) for r in mixed}


def test_a_third_of_the_hostile_ones_wait_for_a_time_limit():
    hanging = {e.source for e in load_exploits(SUITE) if Outcome.TIMEOUT in e.expected}
    _, mixed = _series(SUITE, "sim:gfx942", 100)
    assert len({r.source for r in mixed if r.source in hanging}) == round(SHARE * 100) // 3


def test_a_mix_loses_no_episode():
    exploits = {e.name: e for e in load_exploits(SUITE) if e.name in HOSTILE}
    requests = []
    for number, name in enumerate(HOSTILE):
        exploit = exploits[name]
        requests.append(EvaluationRequest(exploit.task.id, exploit.source, number))
        requests.append(
            EvaluationRequest(TASK, f"{get_task(TASK).kernel_source}\n# {number}\n", number)
        )
    with make_executor("local", device="sim:gfx942", workers=2) as executor:
        evaluations = dict(executor.results(requests))
    assert sorted(evaluations) == list(range(len(requests)))
    assert all(evaluations[i].outcome is Outcome.PASSED for i in range(1, len(requests), 2))
    for place, name in zip(range(0, len(requests), 2), HOSTILE, strict=True):
        assert exploits[name].blocked(evaluations[place]), name

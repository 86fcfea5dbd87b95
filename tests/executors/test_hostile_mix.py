"""Hostile among honest submissions: no evaluation is lost, and the honest ones pass."""

from kernel_gym.commands.exploits import SUITE
from kernel_gym.executors import EvaluationRequest, make_executor
from kernel_gym.exploits.loader import load_exploits
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task

TASK = "triton2triton/softmax"
HOSTILE = ("e06_signal_everybody.py", "e10_crash.py", "e07_daemon.py")


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

"""A copy of the start kernel earns less than any own effort that is right."""

from __future__ import annotations

import pytest

from kernel_gym.records import Clock, Evaluation, Outcome, Stage, WorkloadResult
from kernel_gym.rewards import get_reward
from kernel_gym.tasks import Kind, Split, get_task
from kernel_gym.tasks.copies import fingerprint, is_copy

SMOOTH = get_reward("kernel-opt-smooth")


def _workload(split: Split, speedup: float, timed: bool = True) -> WorkloadResult:
    low = speedup if timed else None
    kind = Kind.TRAIN if split is Split.TRAIN else Kind.ASPECT
    return WorkloadResult(
        dims={}, split=split, kind=kind, distribution="", passed=True, timed=timed, speedup_low=low
    )


def _passed(train: float, unseen: float) -> Evaluation:
    workloads = (
        _workload(Split.TRAIN, train),
        _workload(Split.UNSEEN, unseen),
        _workload(Split.UNSEEN, 0.0, timed=False),
    )
    return Evaluation(
        protocol_version="1",
        task="triton2triton/softmax",
        device="sim:gfx942",
        clock=Clock.MODELLED,
        source_sha256="",
        outcome=Outcome.PASSED,
        stage=Stage.DONE,
        workloads=workloads,
        speedup=train,
        speedup_low=train,
        unseen_speedup=unseen,
        unseen_speedup_low=unseen,
    )


@pytest.mark.parametrize("task", ["triton2triton/softmax", "hip2hip/softmax"])
def test_a_copy_earns_less_than_the_slowest_right_kernel(task):
    start = get_task(task).start_source
    mark = "//" if task.startswith("hip") else "#"
    copy = f"{mark} mine\n" + start.replace("\n\n", "\n\n\n")
    assert is_copy(get_task(task), copy)
    assert not is_copy(get_task(task), copy.replace("1.0", "2.0").replace("0.0f", "1.0f") + "\nx")
    earned = SMOOTH(_passed(1.0, 1.0).model_copy(update={"copied": True})).value
    slowest = SMOOTH(_passed(0.1, 0.1)).value
    assert earned == pytest.approx(0.115)
    assert 0.11 < earned < slowest == pytest.approx(0.12)


def test_docstrings_and_layout_do_not_hide_a_copy_but_other_code_is_no_copy():
    text = 'def f(x):\n    """Doc."""\n    return x\n'
    assert fingerprint(text) == fingerprint("def f( x ) : return x")
    assert fingerprint(text) != fingerprint("def f(x): return x + 1")
    assert fingerprint("int f() { return 1; } // a") == fingerprint("int f() {return 1;}/* b */")


def test_the_draw_of_unseen_workloads_counts_beyond_the_slack_only():
    rewards = [SMOOTH(_passed(2.0, unseen)).value for unseen in (1.7, 2.0, 2.6)]
    assert max(rewards) - min(rewards) == pytest.approx(0.0)
    assert SMOOTH(_passed(2.0, 1.0)).value < rewards[0] - 0.1


def test_slower_kernels_spread_and_faster_ones_are_not_clamped():
    values = [SMOOTH(_passed(s, s)).value for s in (0.1, 0.25, 0.5, 1.0, 2.0, 10.0, 40.0, 100.0)]
    assert values == sorted(values)
    assert values[3] - values[0] > 0.1
    assert values[6] > values[5] + 0.05
    assert values[-1] < 1.0

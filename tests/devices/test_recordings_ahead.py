"""Calls that are recorded ahead: the recorder is asked in the judge's order, and fails in it."""

from __future__ import annotations

import threading

import pytest

from kernel_gym.devices.base import Failed, FailureKind
from kernel_gym.devices.looking_ahead import ExpectedCall
from kernel_gym.devices.plan_recordings import PlannedCall
from kernel_gym.devices.recordings_ahead import RecordingsAhead
from kernel_gym.plans.types import LaunchPlan

PLAN = LaunchPlan("gfx942", (), (), (), (), ())
BROKEN = Failed(FailureKind.COMPILE, "does not compile")


class Recorder:
    """Stands for `PlanRecordings`: notes what it is asked, and answers what a test has set."""

    def __init__(self, answers=None):
        self.answers = answers or {}
        self.asked = []
        self.threads = set()
        self._kept = {}

    def key(self, inputs, dims):
        return str(dims["n"])

    def record(self, inputs, dims, time_steps):
        key = self.key(inputs, dims)
        if key not in self._kept:
            self.asked.append(key)
            self.threads.add(threading.current_thread())
            answer = self.answers.get(key, PlannedCall(PLAN, key))
            answer = answer(time_steps) if callable(answer) else answer
            if isinstance(answer, Failed):
                return answer
            self._kept[key] = answer
        return self._kept[key]

    def repeat(self, inputs, dims, time_steps, seed):
        self.asked.append(f"{self.key(inputs, dims)} again {seed}")
        return self.answers.get("again")


def call(size, repeats=None):
    return ExpectedCall(dict, {"n": size}, repeats)


def seconds(plan, first):
    raise AssertionError("nobody asks for times")


def taken(ahead, size, time_steps=seconds):
    return ahead.record({}, {"n": size}, time_steps)


def test_calls_are_recorded_in_order_on_another_thread():
    recorder = Recorder()
    ahead = RecordingsAhead(recorder, [call(1), call(2), call(2, repeats=7), call(3)])
    assert [taken(ahead, size).sha256 for size in (1, 2)] == ["1", "2"]
    assert ahead.repeat({}, {"n": 2}, seconds, 7) is None
    assert taken(ahead, 2).sha256 == "2"  # as when the kernels do nothing
    assert taken(ahead, 3).sha256 == "3"
    assert recorder.asked == ["1", "2", "2 again 7", "3"]
    assert threading.current_thread() not in recorder.threads


def test_a_failure_counts_where_the_judge_would_have_seen_it():
    recorder = Recorder({"2": BROKEN})
    ahead = RecordingsAhead(recorder, [call(1), call(2), call(2), call(3)])
    assert taken(ahead, 1).sha256 == "1"
    assert taken(ahead, 2) is BROKEN
    assert taken(ahead, 2) is BROKEN  # as without this: what fails is not kept
    assert taken(ahead, 3).sha256 == "3"
    assert recorder.asked == ["1", "2", "2", "3"]


def test_a_repeat_that_differs_fails():
    ahead = RecordingsAhead(Recorder({"again": BROKEN}), [call(1), call(1, repeats=5)])
    taken(ahead, 1)
    assert ahead.repeat({}, {"n": 1}, seconds, 5) is BROKEN


def test_the_judge_answers_questions_for_times_when_it_comes_to_the_call():
    def tunes(time_steps):
        return PlannedCall(PLAN, f"tuned by {time_steps(PLAN, 4)}")

    asked = []

    def answers(plan, first):
        asked.append((first, threading.current_thread()))
        return 2e-6

    ahead = RecordingsAhead(Recorder({"2": tunes}), [call(1), call(2)])
    assert taken(ahead, 1).sha256 == "1"
    assert not asked
    assert taken(ahead, 2, answers).sha256 == "tuned by 2e-06"
    assert asked == [(4, threading.current_thread())]


def test_an_exception_is_raised_where_the_judge_would_have_seen_it():
    def breaks(time_steps):
        raise OSError("the machine")

    ahead = RecordingsAhead(Recorder({"2": breaks}), [call(1), call(2)])
    assert taken(ahead, 1).sha256 == "1"
    with pytest.raises(OSError, match="the machine"):
        taken(ahead, 2)


def test_a_shape_that_was_not_expected_is_recorded_after_the_others():
    recorder = Recorder()
    ahead = RecordingsAhead(recorder, [call(1), call(2)])
    assert taken(ahead, 9).sha256 == "9"
    assert recorder.asked == ["1", "2", "9"]
    assert ahead.repeat({}, {"n": 9}, seconds, 3) is None
    assert recorder.asked[-1] == "9 again 3"


def test_an_end_leaves_out_what_has_not_begun_and_answers_who_waits():
    told = []

    def tunes(time_steps):
        told.extend(time_steps(PLAN, 0) for _ in range(3))
        return BROKEN

    recorder = Recorder({"1": tunes})
    ahead = RecordingsAhead(recorder, [call(1), call(2)])
    ahead.stop()
    assert recorder.asked in (["1"], [])
    assert all(isinstance(answer, Failed) for answer in told)

"""Answers by a hostile worker, read as typed values."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.devices.answers import (
    MAX_OUTPUTS,
    BadAnswerError,
    PlacedOutput,
    StatedOutput,
    Wrong,
    parse_call,
    parse_failure,
    parse_output,
    reading_an_answer,
)
from kernel_gym.devices.base import DeviceLostError, FailureKind
from kernel_gym.devices.failures import exit_text
from kernel_gym.devices.sim.outputs import read_outputs

STATED = StatedOutput("out", (2, 3), torch.float16)
GOOD = {"address": 1 << 45, "shape": [2, 3], "strides": [3, 1], "dtype": "float16"}


def test_what_is_expected_is_taken():
    assert parse_output(GOOD, STATED) == PlacedOutput(1 << 45)
    assert parse_output(GOOD | {"start": 12}, STATED) == PlacedOutput(1 << 45, 12)
    one_row = StatedOutput("out", (1, 3), torch.float16)
    assert parse_output(GOOD | {"shape": [1, 3], "strides": [77, 1]}, one_row) == PlacedOutput(
        1 << 45
    )
    empty = StatedOutput("out", (0, 3), torch.float16)
    assert parse_output(GOOD | {"shape": [0, 3], "strides": [5, 5]}, empty) == PlacedOutput(1 << 45)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"wrong": "a list"}, "found a list, expected a device tensor"),
        ({"wrong": "a \x1b[2J"}, "found a \\x1b[2J, expected a device tensor"),
        ({"wrong": {"a": 1}}, "found a dict, expected a device tensor"),
        ({"dtype": "float32"}, "found torch.float32, expected torch.float16"),
        ({"dtype": "quint8"}, "found torch.quint8, expected torch.float16"),
        ({"dtype": "quint4x2"}, "found torch.quint4x2, expected torch.float16"),
        ({"dtype": "load"}, "found torch.load, expected torch.float16"),
        ({"dtype": ["float16"]}, "no tensor"),
        ({"shape": [3, 2]}, "found shape (3, 2), expected (2, 3)"),
        ({"shape": [0, 1 << 61], "strides": [1, 1]}, "expected (2, 3)"),
        ({"shape": [2, -3]}, "found shape (2, -3), expected (2, 3)"),
        ({"shape": None}, "no tensor"),
        ({"shape": [2]}, "no tensor"),
        ({"shape": [2.0, 3.0]}, "no tensor"),
        ({"shape": [2, True]}, "no tensor"),
        ({"shape": [float("inf"), 1]}, "no tensor"),
        ({"shape": [0, 10**30]}, "no tensor"),
        ({"shape": [0] * 5000, "strides": [1] * 5000}, "no tensor"),
        ({"strides": [1, 2]}, "found strides (1, 2), expected contiguous"),
        ({"strides": [0, 1]}, "found strides (0, 1), expected contiguous"),
        ({"strides": [0, 5000]}, "found strides (0, 5000), expected contiguous"),
        ({"strides": [3, -1]}, "found strides (3, -1), expected contiguous"),
        ({"strides": [1 << 70, 1]}, "no tensor"),
        ({"address": "x"}, "no tensor"),
        ({"address": -1}, "no tensor"),
        ({"address": 1 << 70}, "no tensor"),
        ({"address": True}, "no tensor"),
    ],
)
def test_what_differs_is_told_and_not_looked_at(change, problem):
    wrong = parse_output(GOOD | change, STATED)
    assert isinstance(wrong, Wrong)
    assert problem in wrong.problem


@pytest.mark.parametrize("described", [None, 1, "x", [], True])
def test_an_output_is_an_object(described):
    assert isinstance(parse_output(described, STATED), Wrong)


def test_outputs_are_counted_before_they_are_read():
    def never(*_):
        raise AssertionError("memory is read")

    parsed = parse_call({"outputs": [GOOD] * 5}, [STATED]).outputs
    read = read_outputs(parsed, [STATED], {}, never, never)
    assert len(read) == 5
    assert all(output.tensor is None for output in read)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"outputs": None},
        {"outputs": {"0": GOOD}},
        {"outputs": [GOOD] * (MAX_OUTPUTS + 1)},
        {"outputs": [GOOD], "launches": True},
        {"outputs": [GOOD], "launches": -1},
        {"outputs": [GOOD], "launches": 1 << 70},
        {"outputs": [GOOD], "launches": 1.0},
        {"outputs": [GOOD], "refused": "all"},
    ],
)
def test_an_answer_of_another_form_is_refused(answer):
    with pytest.raises(BadAnswerError, match="broke the protocol"):
        parse_call(answer, [STATED])


def test_names_of_refused_operators_are_short_lines():
    refused = [["A" * 9000] * 119, "\ud800", "x" * 9000, *["y"] * 900]
    parsed = parse_call({"outputs": [GOOD], "refused": refused}, [STATED]).refused
    assert parsed[:2] == ("a list", "\\ud800")
    assert len(parsed) == 16
    assert max(map(len, parsed)) == 120


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "error", [None, [], "x", {}, {"type": 1, "message": nested(900)}, {"message": "\ud800" * 10**6}]
)
def test_any_account_of_a_failure_is_a_failure(error):
    failed = parse_failure(error)
    assert failed.kind is FailureKind.RUNTIME
    assert failed.message.isprintable()
    assert len(failed.message) < 700


def test_an_error_while_an_answer_is_read_is_the_candidates_failure():
    unread = pytest.raises(BadAnswerError, match=r"cannot be read: RuntimeError: \\ud800")
    with unread, reading_an_answer():
        raise RuntimeError("\ud800")
    with pytest.raises(DeviceLostError), reading_an_answer():
        raise DeviceLostError("ours")


@pytest.mark.parametrize("status", range(-128, 256))
def test_a_candidate_may_choose_any_exit_status(status):
    assert exit_text(status).startswith("the worker ")


def test_signals_with_a_name_are_named():
    assert exit_text(-9) == "the worker was killed by SIGKILL"
    assert exit_text(-40) == "the worker was killed by signal 40"
    assert exit_text(-101) == "the worker exited with status 155 during the call"
    assert exit_text(None) == "the worker exited during the call"

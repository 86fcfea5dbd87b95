"""Descriptions of outputs by a hostile worker."""

import pytest
import torch

from kernel_gym.devices.sim_outputs import MAX_OUTPUTS, Described, are_outputs, parse_output

GOOD = {"address": 1 << 45, "shape": [2, 3], "strides": [3, 1], "dtype": "float16"}


def test_a_plain_description_is_taken():
    said = parse_output(GOOD)
    assert said == Described(torch.float16, [2, 3], [3, 1], 1 << 45)
    assert said.span == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": "load"}, "no tensor"),
        ({"dtype": ["float16"]}, "no tensor"),
        ({"shape": None}, "no tensor"),
        ({"shape": [2]}, "no tensor"),
        ({"shape": [float("inf"), 1]}, "no tensor"),
        ({"address": "x"}, "no tensor"),
        ({"shape": [0, 10**30]}, "larger than the device"),
        ({"shape": [0, 1 << 34, 1 << 34], "strides": [1, 1, 1]}, "larger than the device"),
        ({"shape": [0] * 5000, "strides": [1] * 5000}, "larger than the device"),
        ({"strides": [1 << 70, 1]}, "larger than the device"),
        ({"shape": [-2, 3]}, "negative"),
        ({"strides": [1, -1]}, "negative"),
        ({"strides": [1, 1]}, "share memory"),
        ({"strides": [0, 0]}, "share memory"),
    ],
)
def test_what_is_impossible_is_said(change, message):
    assert message in parse_output(GOOD | change)


def test_answers_are_short_lists_of_objects():
    assert are_outputs([GOOD])
    assert not are_outputs([GOOD] * (MAX_OUTPUTS + 1))
    assert not are_outputs({"0": GOOD})
    assert not are_outputs([GOOD, 1])

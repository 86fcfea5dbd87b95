"""Outputs in the memory that a judge shares with a GPU worker, read without a GPU."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.devices.answers import BadAnswerError
from kernel_gym.devices.gpu.arena import ArenaPiece
from kernel_gym.devices.gpu.outputs import read_call
from kernel_gym.devices.placement import Placed
from kernel_gym.tasks import get_task

TASK = get_task("triton2triton/softmax")
DIMS = {"rows": 4, "cols": 8}
GOOD = {"address": 1 << 45, "start": -1, "shape": [4, 8], "strides": [8, 1], "dtype": "float16"}


class Arena:
    """The part of an arena that is read: bytes on the host."""

    def __init__(self):
        self.bytes = torch.zeros(4096, dtype=torch.uint8)

    def view(self, piece):
        return self.bytes[piece.start : piece.end]


def read(answer):
    arena = Arena()
    x = torch.randn(4, 8).half()
    placed = Placed({"x": x}, {"x": ArenaPiece(0, 64, "x")}, (ArenaPiece(1024, 64, "out"),))
    arena.bytes[:64] = x.view(-1).view(torch.uint8)
    arena.bytes[1024:1088] = (2 * x).view(-1).view(torch.uint8)
    return x, read_call(arena, TASK, answer, placed, DIMS)


def test_an_output_is_read():
    x, call = read({"outputs": [GOOD], "launches": 2, "refused": ["aten::mm\n"]})
    assert torch.equal(call.outputs[0].tensor, 2 * x)
    assert (call.launches, call.refused, call.modified_inputs) == (2, ("aten::mm\\n",), ())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"dtype": "quint2x4"}, "found torch.quint2x4, expected torch.float16"),
        ({"dtype": "float32"}, "found torch.float32"),
        ({"strides": [0, 1]}, "found strides (0, 1)"),
        ({"start": 16}, "a view of the input 'x'"),
        ({"shape": [8, 4]}, "found shape (8, 4)"),
    ],
)
def test_what_differs_is_told(change, problem):
    (output,) = read({"outputs": [GOOD | change], "launches": 1, "refused": []})[1].outputs
    assert output.tensor is None
    assert problem in output.problem


def test_outputs_are_counted():
    assert len(read({"outputs": [GOOD] * 3})[1].outputs) == 3


@pytest.mark.parametrize("answer", [{}, {"outputs": 1}, {"outputs": [GOOD], "launches": "1"}])
def test_an_answer_of_another_form_is_refused(answer):
    with pytest.raises(BadAnswerError):
        read(answer)

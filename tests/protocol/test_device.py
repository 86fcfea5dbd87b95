"""Requests of a program to its simulated device, decoded as typed messages."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch

from kernel_gym.devices.sim.server import FOR_PROGRAM
from kernel_gym.protocol.fields import ELEMENT_TYPES, TensorOnDevice
from kernel_gym.protocol.request import BadRequestError

TENSOR = {"address": 1 << 45, "shape": [2, 3], "strides": [3, 1], "dtype": "float16"}
ODD = (None, True, -1, 1 << 70, 0.5, float("nan"), [], {}, [["x"]], {"dtype": "load"})
NAMES = {
    kind.verb: [one.name for one in fields(kind) if "parser" in one.metadata]
    for kind in FOR_PROGRAM.handlers
}


def parse_request(header, data=b""):
    return FOR_PROGRAM.decode(header, (data,))


def test_a_tensor_is_read():
    tensor = parse_request({"do": "fill", "tensor": TENSOR, "value": float("-inf")}).tensor
    assert tensor == TensorOnDevice(1 << 45, (2, 3), (3, 1), torch.float16)
    assert (tensor.nbytes, tensor.extent) == (12, 12)
    assert not tensor.repeats


@pytest.mark.parametrize("name", ["quint8", "quint4x2", "qint32", "bits8", "bits1x8", "load", "x"])
def test_elements_are_whole_bytes_of_plain_types(name):
    with pytest.raises(BadRequestError, match="no elements of type"):
        parse_request({"do": "fill", "tensor": TENSOR | {"dtype": name}, "value": 0})
    assert name not in ELEMENT_TYPES


@pytest.mark.parametrize("do", [verb for verb, names in NAMES.items() if names])
@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_odd_fields_are_refused(do, odd):
    for name in NAMES[do]:
        if odd is None and name in ("name", "shared"):
            continue
        values = dict.fromkeys(NAMES[do], 1) | {name: odd}
        with pytest.raises(BadRequestError):
            parse_request({"do": do} | values)


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"do": None},
        {"do": ["load"]},
        {"do": "begin", "noop": True},
        {"do": "names", "more": 1},
        {"do": "allocate"},
        {"do": "names", "text": "x"},
        {"do": "variable", "name": "x" * 5000},
        {"do": "launch", "kernel": 0, "grid": [1, 1], "block": [1] * 3, "sizes": [], "lds": 0},
        {"do": "fill", "tensor": TENSOR | {"strides": [1]}, "value": 0},
        {"do": "fill", "tensor": TENSOR | {"shape": [1] * 99, "strides": [1] * 99}, "value": 0},
    ],
)
def test_requests_of_another_form_are_refused(header):
    with pytest.raises(BadRequestError):
        parse_request(header)


def test_a_refusal_is_short():
    with pytest.raises(BadRequestError) as refusal:
        parse_request({"do": "A" * 10**6} | {f"k{i}" * 999: 1 for i in range(999)})
    assert len(str(refusal.value)) < 400

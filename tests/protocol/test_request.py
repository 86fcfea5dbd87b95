"""Every request: it survives the pipe, and its handler takes its fields."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields

import pytest
import torch

from kernel_gym.devices.sim import server
from kernel_gym.launcher import main as launcher_main
from kernel_gym.protocol import device, launcher, template, worker
from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.protocol.request import BadRequestError, decode, encode
from kernel_gym.worker.recording import main as recorder_main

TABLES = {
    "the judge to the device": server.FOR_JUDGE,
    "a program to its device": server.FOR_PROGRAM,
    "the judge to a recorder": recorder_main.REQUESTS,
    "the judge to a launcher": launcher_main.REQUESTS,
}
ON_DEVICE = TensorOnDevice(1 << 45, (2, 3), (3, 1), torch.float16)
IN_ARENA = worker.ArenaTensor(4096, 12, 1, (2, 3), (3, 1), torch.bfloat16)
ARGUMENTS = [IN_ARENA, worker.Scalar(0.5)]
EXAMPLES = (
    device.Allocate(3),
    device.Free(4096),
    device.LoadKernel("k", None, b"s_endpgm"),
    device.KernelNames(b"\x7fELF"),
    device.FindVariable("v", b"s_endpgm"),
    device.Fill(ON_DEVICE, float("-inf")),
    device.Copy(ON_DEVICE, ON_DEVICE),
    device.SwapOrders(),
    device.Upload(4096, b"abc"),
    device.LaunchKernel(0, (1, 2, 3), (64, 1, 1), [8], 0, b"12345678"),
    device.SeedSamples(-1),
    device.BeginCall(True, "on"),
    device.EndCall(),
    device.AllocateForJudge(8, "input"),
    device.Locate(4096, 1),
    device.ReadFacts(),
    device.RunPlan({"version": 1}, [4096], b"codes", b"constants"),
    launcher.LoadPlan(0, {"version": 1}, b"codes", b"constants"),
    launcher.LoadReference(1, "text", "f", [0.5, {"bytes": 8}]),
    launcher.ExecutePlan(0, 0, [256], True),
    launcher.TimeCalls([[0, 256], [1, 512]], True),
    worker.RecordCall(ARGUMENTS, [0]),
    worker.TellSeconds(0.5, "a fault"),
    worker.TellValues("", b"1234"),
    worker.TellForms({"list": [{"same": 0}, None]}, ""),
    worker.LoadOnSimulator("hip", "launch", "text", [2], b"assembler", b"library"),
    template.Fork("device", {"threads": 1}, "", {}, {"memory": 1}, True, [], ["a"], {}),
    template.Kill(7, 0.5),
    worker.BuildHip({"a.hip": ""}, [["clang", "a.hip"]], ["a.so"], True),
)


@pytest.mark.parametrize("request_", EXAMPLES, ids=lambda one: type(one).__name__)
def test_a_request_survives_the_pipe(request_):
    header, buffers = encode(request_)
    assert decode(type(request_), json.loads(json.dumps(header)), buffers) == request_


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_each_handler_takes_the_fields_of_its_request(table):
    verbs = [kind.verb for kind in table.handlers]
    assert len(set(verbs)) == len(verbs)
    for kind, handler in table.handlers.items():
        names = [one.name for one in fields(kind)]
        inspect.signature(handler).bind(None, **dict.fromkeys(names))
        assert kind in {type(one) for one in EXAMPLES}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_requests_of_other_tables_are_refused(table):
    for other in TABLES.values():
        for kind in other.handlers:
            if kind.verb not in {known.verb for known in table.handlers}:
                with pytest.raises(BadRequestError, match="does not know the request"):
                    table.decode({"do": kind.verb})


@pytest.mark.parametrize(
    "arg", [3, None, {"dtype": "quint8"}, {"dtype": "float16", "address": -1}], ids=repr
)
def test_a_malformed_argument_is_refused(arg):
    with pytest.raises(BadRequestError):
        decode(worker.RecordCall, {"do": "record", "args": [arg], "outputs": []})

"""A fuzzer of what untrusted processes say: the judge never raises, dies, hangs or grows.

A few hundred messages in the usual tests, 100,000 with `-m sweep`. Each example of hypothesis is a
seed of some messages, so that one that fails is played again from the seed.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import socket
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_gym.devices.answers import (
    BadAnswerError,
    parse_call,
    parse_failure,
    stated_outputs,
)
from kernel_gym.devices.base import Call, DeviceLostError, Failed
from kernel_gym.devices.budget import HostBudget
from kernel_gym.devices.candidate_loading import CandidateLoading
from kernel_gym.devices.operators import USUAL as USUAL_OPERATORS
from kernel_gym.devices.sim import memory as sim_memory
from kernel_gym.devices.sim.device import SimDevice
from kernel_gym.devices.sim.session import MEMORY
from kernel_gym.devices.sim.worker import SimWorkerHandle
from kernel_gym.feedback import MAX_CHARS, feedback
from kernel_gym.judge.metadata import check_metadata
from kernel_gym.records import Evaluation, Outcome, Stage
from kernel_gym.sandbox.channel import MAX_ANSWER, Channel
from kernel_gym.sandbox.spawn import shared_template
from kernel_gym.tasks import get_task
from tests.devices import hostile
from tests.records import evaluation, workload

TASK = get_task("triton2triton/softmax")
DIMS = {"rows": 64, "cols": 256}
BATCH = 10
MAX_GROWTH = 100 << 20
SEEDS = st.integers(0, 2**64 - 1)
USUAL = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@pytest.fixture(autouse=True)
def growth():
    """The most memory that this process takes during a test, over what it had before."""
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    yield
    assert peak() - before < MAX_GROWTH


def peak():
    text = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) << 10


def check_record(outcome, **fields):
    """The record can be written, is small, and its feedback for a policy is short."""
    made = evaluation(outcome, Stage.TRAIN, [workload(passed=False)], **fields)
    text = made.model_dump_json()
    assert len(text.encode()) < 400_000
    assert Evaluation.model_validate_json(text) == made
    assert len(feedback(TASK, made)) <= MAX_CHARS


def play_answers(seed):
    draws = random.Random(seed)
    stated = stated_outputs(TASK.problem, DIMS)
    for _ in range(BATCH):
        answer = hostile.message(draws, hostile.answers())
        labels, message = (), ""
        try:
            parsed = parse_call(answer, stated)
            labels, message = parsed.refused, str(parsed.outputs[:1])
        except BadAnswerError as error:
            message = str(error)
        failed = parse_failure(answer.get("error"))
        text = f"{message} {failed.message}"
        check_record(Outcome.RUNTIME_ERROR, message=text, detail=failed.detail, labels=labels)


@settings(max_examples=30, **USUAL)
@given(SEEDS)
def test_answers(seed):
    play_answers(seed)


class ScriptedWorker:
    """The worker's end of a session, which sends bytes of a test."""

    pid, ended_for, template_alive = os.getpid(), "", True

    def __init__(self, sent, status):
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        with contextlib.suppress(OSError):  # what does not fit is cut off
            theirs.sendall(sent)
        theirs.shutdown(socket.SHUT_WR)
        self.channel, self._theirs, self._status = Channel(ours, header=MAX_ANSWER), theirs, status

    def close(self, grace=0.0):
        self.channel.close()
        self._theirs.close()
        return self._status


@pytest.fixture(scope="module")
def session():
    opened = SimDevice().open(TASK)
    opened._child.close()
    opened.kept = opened._allocate(1 << 20, "kept")
    yield opened
    opened.close()


def play_session(session, seed):
    """Real calls on a real device, whose worker answers with whatever it likes."""
    draws = random.Random(seed)
    inputs = {"x": torch.zeros(64, 256, dtype=torch.float16)}
    for _ in range(BATCH):
        answer = hostile.message(draws, hostile.answers(session.kept))
        sent = hostile.framed(draws, answer)
        child = ScriptedWorker(sent, draws.choice((None, *range(-128, 256))))
        worker = session._worker = SimWorkerHandle(child, session._device, HostBudget())
        session._loading = CandidateLoading(TASK, "", worker, "gfx942", 1.0, HostBudget(), None)
        session.__dict__.pop("_recordings", None)  # they would ask the former worker
        try:
            result = session.call(inputs, DIMS)
        except DeviceLostError:  # the drawn status is that of SIGKILL
            continue
        finally:
            child.close()
        assert isinstance(result, Call | Failed)
        if isinstance(result, Call):
            message = check_metadata(TASK.problem.outputs, result)
            check_record(Outcome.WRONG_METADATA, message=message, labels=result.refused)
        else:
            check_record(Outcome.RUNTIME_ERROR, message=result.message, detail=result.detail)


@settings(max_examples=20, **USUAL)
@given(SEEDS)
def test_sessions(session, seed):
    play_session(session, seed)


class Device:
    """A real device process, which executes plans."""

    def __init__(self, operators="none"):
        memory = sim_memory.create_file()
        options = {"threads": 1, "memory": MEMORY, "launch_instructions": 10**6}
        options |= {"operators": operators, "permitted": sorted(USUAL_OPERATORS)}
        try:
            self.child = shared_template().fork("device", [memory], options | {"arch": "gfx942"})
        finally:
            os.close(memory)

    def ask(self, header, *buffers):
        return self.child.channel.request(header, *buffers, timeout=30).header

    def run(self, plan, code, noop=False):
        """Executes a plan in a call, and frees what it leaves."""
        self.ask({"do": "begin", "noop": noop})
        address = self.ask({"do": "allocate", "size": hostile.SIZE, "label": "x"})["address"]
        header = {"do": "run_plan", "plan": plan, "addresses": [address]}
        steps = plan.get("steps") if isinstance(plan.get("steps"), list) else []
        constants = sum(isinstance(step, dict) and "size" in step for step in steps)
        answer = self.ask(header, code, b"constant" * constants)
        self.ask({"do": "end"})
        for one in (address, *answer.get("owned", ())):
            self.ask({"do": "free", "address": one})
        return answer

    def close(self):
        self.child.close()


@pytest.fixture(scope="module")
def device():
    opened = Device()
    yield opened
    opened.close()


@pytest.fixture(scope="module", params=["usual", "all"])
def operator_device(request):
    """A device of a candidate of an imported task, or of the suite's own code."""
    opened = Device(request.param)
    yield opened
    opened.close()


def play_device(device, seed, plans):
    """Plans, each of which is answered, and by a device that still works."""
    draws = random.Random(seed)
    for _ in range(BATCH):
        plan = hostile.message(draws, plans)
        answer = device.run(plan, hostile.code(draws), noop=bool(seed % 2))
        assert "error" not in answer or len(answer["error"]) <= 2000


@settings(max_examples=20, **USUAL)
@given(SEEDS)
def test_plans(device, seed):
    play_device(device, seed, hostile.plans())


@settings(max_examples=40, **USUAL)
@given(SEEDS)
def test_plans_with_operators(operator_device, seed):
    play_device(operator_device, seed, hostile.operators())


def asked(device, name, *args, overload="default", tensors=()):
    """Returns the answer of the device to a plan with one operator."""
    step = hostile.operator(name, overload, [*args], {}, [*tensors])
    return device.run(hostile.plan([step], codes=[], kernels=[], outputs=[]), b"")


@pytest.mark.parametrize(
    ("name", "overload"),
    [
        ("aten::add", "__class__"),
        ("aten::add", "_schema"),
        ("aten::__class__", "__init__"),
        ("aten::from_file", "default"),
        ("prims::add", "default"),
        ("torch::load", "default"),
    ],
)
def test_what_is_no_operator_of_the_device_is_refused(operator_device, name, overload):
    answer = asked(operator_device, name, "/etc/hostname", overload=overload)
    assert "there is no operator" in answer["error"] or "is refused" in answer["error"]


def test_a_result_that_is_too_large_is_refused_and_the_device_goes_on(operator_device):
    for size in (1 << 31, 1 << 34, 1 << 62):
        assert "error" in asked(operator_device, "aten::ones", {"list": [size]})
    assert "error" not in asked(operator_device, "aten::ones", {"list": [8]})


def test_a_tensor_outside_of_its_buffer_is_refused(operator_device):
    for change in ({"offset": 1}, {"buffer": 7}, {"shape": [64, 257]}, {"strides": [257, 1]}):
        one, two = hostile.view(), hostile.view() | change
        args = {"tensor": 0}, {"tensor": 1}
        answer = asked(operator_device, "aten::add_", *args, overload="Tensor", tensors=(one, two))
        assert "error" in answer


@pytest.mark.sweep
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_messages(session, device):
    plays = (
        (7000, play_answers),
        (1000, lambda seed: play_session(session, seed)),
        (2000, lambda seed: play_device(device, seed, hostile.plans())),
    )
    for examples, play in plays:
        settings(max_examples=examples, **USUAL)(given(SEEDS)(play))()

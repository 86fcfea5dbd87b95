"""Head-room on a device with measured times: the source of each time."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

from kernel_gym.admission.head_room import HeadRoom, ReferenceFailed
from kernel_gym.devices.base import Failed, FailureKind
from kernel_gym.devices.description import TimingMethod
from kernel_gym.devices.gpu.vendors import data_sheet
from kernel_gym.records import Clock, Evaluation, Outcome, Stage, WorkloadResult
from kernel_gym.tasks import Scale, get_task, train_workloads

LAUNCH = data_sheet("NVIDIA H200").shortest_kernel_seconds
TASK = get_task("triton2triton/silu")


class Session:
    """A worker that holds the reference."""

    def load(self, source, language):
        assert language == "torch"

    @property
    def timed(self):
        return self

    def release_pool(self):
        pass

    def close(self):
        pass


@pytest.fixture
def device():
    """The part of a GPU that head-room uses."""
    opened = []

    def open_(task, trusted, resident):
        assert trusted
        opened.append(task.id)
        return Session()

    return SimpleNamespace(
        description=SimpleNamespace(
            name="cuda:0",
            spec=data_sheet("NVIDIA H200"),
            clock=Clock.MEASURED,
            timing=TimingMethod.PAIRED,
            scale=Scale.SIM,
            torch_device=torch.device("cpu"),
        ),
        held=lambda exclusivity: nullcontext(),
        open=open_,
        opened=opened,
    )


def evaluation(baseline_seconds, roofline_seconds):
    """Returns an evaluation of a start kernel with one time for all train workloads."""
    results = tuple(
        WorkloadResult(
            dims=dict(w.dims),
            split=w.split,
            kind=w.kind,
            distribution=w.distribution,
            layout=w.layout,
            passed=True,
            baseline_seconds=baseline_seconds,
            roofline_seconds=roofline_seconds,
        )
        for w in train_workloads(TASK.problem, Scale.SIM)
    )
    return Evaluation(
        protocol_version="1",
        task=TASK.id,
        device="cuda:0",
        clock=Clock.MEASURED,
        source_sha256="",
        outcome=Outcome.PASSED,
        stage=Stage.DONE,
        workloads=results,
        speedup=1.0,
        speedup_low=1.0,
        seed=0,
    )


def test_pytorch_is_timed_once_for_all_modes_and_kernels_with_their_evaluation(device, monkeypatch):
    timed = []

    def seconds_alone(task, workload, session, seed, device):
        timed.append(workload.key)
        return 9 * LAUNCH

    monkeypatch.setattr("kernel_gym.judge.timing.gpu.seconds_alone", seconds_alone)
    rooms, measured = HeadRoom(device), evaluation(6 * LAUNCH, 2 * LAUNCH)
    assert rooms.of(TASK, measured) == 2.0
    assert timed == []
    for mode in ("torch2triton", "instruction2triton", "torch2hip"):
        assert rooms.of(get_task(f"{mode}/silu"), measured) == 3.0
    assert timed == [w.key for w in train_workloads(TASK.problem, Scale.SIM)]
    assert device.opened == ["torch2triton/silu"]
    assert rooms.of(TASK, evaluation(None, 2 * LAUNCH)) is None


def test_a_reference_that_fails_is_no_failure_of_the_machine(device, monkeypatch):
    monkeypatch.setattr(
        "kernel_gym.judge.timing.gpu.seconds_alone",
        lambda *_: Failed(FailureKind.RUNTIME, "no such kernel"),
    )
    rooms, measured = HeadRoom(device), evaluation(6 * LAUNCH, 2 * LAUNCH)
    for mode in ("torch2triton", "torch2hip"):
        with pytest.raises(ReferenceFailed, match="no such kernel"):
            rooms.of(get_task(f"{mode}/silu"), measured)
    assert device.opened == ["torch2triton/silu"]

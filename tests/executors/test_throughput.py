"""`kernel-gym bench throughput`, and the default number of workers."""

import json
import os
from types import SimpleNamespace

import pytest
import torch
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.devices import UnknownDevice
from kernel_gym.executors import default_workers

COUNTED = 5


@pytest.mark.parametrize(
    "executor", ["local", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.sweep])]
)
def test_only_evaluations_beside_others_are_counted(executor):
    command = f"bench throughput --count {COUNTED} --workers 2 --broken --device sim:gfx942 --json"
    result = CliRunner().invoke(app, [*command.split(), "--executor", executor])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["outcomes"] == {"compile_error": COUNTED}
    assert report["labels"] == {}
    assert report["per_minute"] > 0
    assert report["gpu_busy"] is None
    assert set(report["stage_seconds"]) >= {"screen", "build"}


@pytest.mark.parametrize(
    ("cores", "gib", "workers"), [(32, 140, 6), (32, 79, 4), (4, 140, 4), (32, 12, 1)]
)
def test_a_gpu_has_as_many_evaluators_as_keep_it_busy_and_fit(monkeypatch, cores, gib, workers):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(
        torch.cuda,
        "get_device_properties",
        lambda index: SimpleNamespace(total_memory=gib << 30),
    )
    assert default_workers("cuda:0") == workers


@pytest.mark.parametrize(("cores", "workers"), [(2, 2), (64, 8)])
def test_the_simulator_has_one_evaluator_per_core(monkeypatch, cores, workers):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert default_workers("sim:gfx942") == workers


def test_an_unknown_device_has_none():
    with pytest.raises(UnknownDevice, match="sim:gfx942"):
        default_workers("sim:gfx943")

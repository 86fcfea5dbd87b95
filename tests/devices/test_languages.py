"""Reasons why a device takes no candidates in a language inside of Python."""

from __future__ import annotations

import dataclasses
import importlib.util

import pytest

from kernel_gym.devices import describe, languages
from kernel_gym.devices.languages import lacking
from kernel_gym.devices.sim.toolchain import MissingToolchain
from kernel_gym.policies.evaluate import runnable
from kernel_gym.tasks import get_task
from kernel_gym.tasks.embedded import EXTRAS, missing_package

AMD = dataclasses.replace(describe("sim:gfx942"), embedded=())
NVIDIA = dataclasses.replace(AMD, arch="sm_90a")


@pytest.fixture
def packages(monkeypatch):
    """Which packages are installed, for a test to change. All are at first."""
    find, there = importlib.util.find_spec, dict.fromkeys(EXTRAS, object())
    spec = lambda name, *rest: there[name] if name in there else find(name, *rest)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", spec)
    return there


@pytest.mark.parametrize(("package", "name"), EXTRAS.items())
def test_a_device_says_why_it_takes_no_candidate_in_a_language(
    monkeypatch, packages, package, name
):
    takes = dataclasses.replace(AMD, embedded=(package,))
    assert lacking(package, takes) == lacking("", AMD) == missing_package(package) == ""
    foreign = f"candidates in {name} are for AMD's GPUs: use --device sim"
    assert lacking(package, NVIDIA) == foreign
    lacks = MissingToolchain("no clang++ 17 or newer", "apt-get install clang-19")
    monkeypatch.setattr(languages, "hip_toolchain", lambda arch: lacks)
    assert lacking(package, NVIDIA) == foreign
    assert lacking(package, AMD) == (
        f"candidates in {name} need a compiler of HIP: no clang++ 17 or newer; "
        "apt-get install clang-19"
    )
    packages[package] = None
    missing = f"{package} is missing; pip install 'kernel-gym[{package}]'"
    assert lacking(package, AMD) == lacking(package, NVIDIA) == missing_package(package) == missing


def test_an_evaluation_skips_tilelang_without_a_compiler_of_hip(monkeypatch, packages):
    lacks = MissingToolchain("no clang++ 17 or newer", "apt-get install clang-19")
    for place in ("languages", "sim.device"):
        monkeypatch.setattr(f"kernel_gym.devices.{place}.hip_toolchain", lambda *_: lacks)
    notes: list[str] = []
    tasks = [get_task("torch2tilelang/softmax"), get_task("torch2flydsl/relu_squared")]
    assert runnable(tasks, "sim:gfx942", notes.append) == tasks[1:]
    assert notes[0] == (
        "skipped, candidates in TileLang need a compiler of HIP: no clang++ 17 or newer; "
        "apt-get install clang-19: torch2tilelang/softmax"
    )

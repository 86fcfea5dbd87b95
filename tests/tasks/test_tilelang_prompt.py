"""TileLang in prompts of Triton tasks: where a device takes it, with kernels and a guide."""

from __future__ import annotations

import importlib.util
import re

import pytest

from kernel_gym.devices import describe
from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.tasks import get_task, problem_names, prompt
from kernel_gym.tasks.embedded import EXTRAS, embedded_kernel, uses
from kernel_gym.tasks.guide import TOPICS, guide

WITH_TILELANG = [name for name in problem_names() if embedded_kernel("tilelang", name)]
SOFTMAX = get_task("triton2triton/softmax")


def test_there_are_start_kernels_in_tilelang():
    assert len(WITH_TILELANG) >= 8
    assert all(uses("tilelang", embedded_kernel("tilelang", name) or "") for name in WITH_TILELANG)


def test_a_prompt_shows_kernel_and_guide_where_the_device_takes_them():
    text = prompt(SOFTMAX, "a device", arch="gfx942", embedded=["tilelang"])
    assert "## The start kernel in TileLang, which you may submit as well" in text
    assert (SOFTMAX.embedded_source("tilelang") or "?").rstrip() in text
    assert guide("gfx942", "tilelang", {"rows"}) in text
    assert "your own `@triton.jit`, `@gluon.jit` or (in TileLang) `@tilelang.jit` kernels" in text
    assert "T.gemm" not in text


def test_a_prompt_may_show_all_languages():
    text = prompt(SOFTMAX, "a device", arch="gfx942", embedded=list(EXTRAS))
    assert "`@gluon.jit`, (in FlyDSL) `@flyc.kernel` or (in TileLang) `@tilelang.jit`" in text
    assert all(f"The start kernel in {name}" in text for name in ("Gluon", *EXTRAS.values()))


def test_other_prompts_say_nothing_of_it():
    hip = get_task("hip2hip/softmax")
    for text in (
        prompt(SOFTMAX, "a device", arch="gfx942"),
        prompt(hip, "a device", arch="gfx942", embedded=["tilelang"]),
    ):
        assert "tilelang" not in text.lower()


@pytest.mark.parametrize(("arch", "known"), [("gfx942", True), ("sm_90a", False)])
def test_the_guide_is_that_of_amd(arch, known):
    assert ("T.gemm" in guide(arch, "tilelang")) is known
    assert "T.gemm" not in guide(arch, "tilelang", TOPICS - {"product"})


@pytest.mark.parametrize("there", [True, False])
def test_a_simulated_gpu_takes_it_where_it_and_a_compiler_of_hip_are(monkeypatch, there):
    find = importlib.util.find_spec
    spec = lambda name: (there or None) if name == "tilelang" else find(name)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", spec)
    has_hip = isinstance(hip_toolchain("gfx942"), HipToolchain)
    assert ("tilelang" in describe("sim:gfx942").embedded) is (there and has_hip)


def test_what_the_guide_names_is_in_a_start_kernel():
    """Those kernels are played by the tests of the recorder."""
    played = "\n".join(embedded_kernel("tilelang", name) or "" for name in WITH_TILELANG)
    fragments = re.findall(r"`([^`]+)`", guide("gfx942", "tilelang"))
    names = {name for text in fragments for name in re.findall(r"\bT\.\w+|tilelang\.\w+", text)}
    assert len(names) >= 20
    assert not [name for name in sorted(names) if name not in played]

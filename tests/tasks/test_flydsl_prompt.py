"""FlyDSL in prompts of Triton tasks: where a device takes it, with kernels and a guide that run."""

from __future__ import annotations

import importlib.util
import re

import pytest

from kernel_gym.devices import describe
from kernel_gym.evaluator import Evaluator
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task, problem_names, prompt
from kernel_gym.tasks.embedded import embedded_kernel, uses
from kernel_gym.tasks.guide import TOPICS, guide

WITH_FLYDSL = [name for name in problem_names() if embedded_kernel("flydsl", name)]
SOFTMAX = get_task("triton2triton/softmax")
PLACES = {"gfx942": True, "gfx90a": True, "sm_90a": False}
"""Architectures, and whether there is a guide."""

WIDE_ADD = """
import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

LANES, WIDE = 256, 8


@flyc.kernel
def add_kernel(x: fx.Tensor, y: fx.Tensor, out: fx.Tensor):
    _, cols = x.shape.unpack()
    row, col = fx.block_idx.x, (fx.block_idx.y * LANES + fx.thread_idx.x) * WIDE
    if col + WIDE <= cols:
        a = fx.make_view(x.iter + fx.crd2idx((row, col), x.layout), fx.make_layout(8, 1)).load()
        b = fx.make_view(y.iter + fx.crd2idx((row, col), y.layout), fx.make_layout(8, 1)).load()
        view = fx.make_view(out.iter + fx.crd2idx((row, col), out.layout), fx.make_layout(8, 1))
        view.store(a + b)
    else:
        for at in range(col, cols):
            out[row, at] = x[row, at] + y[row, at]


@flyc.jit
def launch(x: fx.Tensor, y: fx.Tensor, out: fx.Tensor):
    rows, cols = x.shape.unpack()
    grid = (rows, fx.ceildiv(cols, LANES * WIDE))
    add_kernel(x, y, out).launch(grid=grid, block=(LANES,))


def add(x, y):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    launch(x, y, out)
    return out
"""
SHUFFLED_SUM = """
import flydsl.compiler as flyc
import flydsl.expr as fx
import torch


@flyc.kernel
def row_sum_kernel(x: fx.Tensor, out: fx.Tensor, scale: fx.Float32, WAVE: fx.Constexpr[int]):
    _, cols = x.shape.unpack()
    row, lane = fx.block_idx.x, fx.thread_idx.x
    total = fx.Float32(0.0)
    for start in range(0, cols, WAVE):
        col = start + lane
        value = x[row, fx.min(col, cols - 1)].to(fx.Float32)
        total = total + (col < cols).select(value, fx.Float32(0.0))
    for step in fx.range_constexpr(6):
        total = total + fx.shuffle_xor(total, 1 << step, 64)
    if lane == 0:
        out[row] = fx.math.fma(total, scale, fx.Float32(0.0)).to(out.dtype)


@flyc.jit
def launch(x: fx.Tensor, out: fx.Tensor, scale: fx.Float32, WAVE: fx.Constexpr[int]):
    rows, _ = x.shape.unpack()
    row_sum_kernel(x, out, scale, WAVE).launch(grid=(rows,), block=(WAVE,))


def row_sum(x):
    out = torch.empty((x.shape[0],), dtype=x.dtype, device=x.device)
    launch(x, out, 1.0, 64)
    return out
"""
WHOLE = [WIDE_ADD, SHUFFLED_SUM, *(embedded_kernel("flydsl", name) or "" for name in WITH_FLYDSL)]
"""Texts that are played: those above, and the start kernels in `test_flydsl.py` of recorders."""


def fragments() -> list[str]:
    """Returns the fragments of code of the guide."""
    return re.findall(r"`([^`]+)`", guide("gfx942", "flydsl"))


def test_there_are_start_kernels_in_flydsl():
    assert len(WITH_FLYDSL) >= 12
    assert all(uses("flydsl", embedded_kernel("flydsl", name) or "") for name in WITH_FLYDSL)
    assert embedded_kernel("flydsl", "../cdna/flydsl") is None


def test_a_prompt_shows_kernel_and_guide_where_the_device_takes_them():
    text = prompt(SOFTMAX, "a device", arch="gfx942", embedded=["flydsl"])
    assert "## The start kernel in FlyDSL, which you may submit as well" in text
    assert (SOFTMAX.embedded_source("flydsl") or "?").rstrip() in text
    assert guide("gfx942", "flydsl", {"rows"}) in text
    assert "`@flyc.kernel`" in text
    assert "mfma_f32" not in text


def test_other_prompts_say_nothing_of_it():
    assert "flyc" not in prompt(SOFTMAX, "a device", arch="gfx942")
    assert "flyc" not in prompt(
        get_task("hip2hip/softmax"), "a device", arch="gfx942", embedded=["flydsl"]
    )
    started = prompt(
        get_task("torch2triton/softmax"), "a device", arch="gfx942", embedded=["flydsl"]
    )
    assert "`@flyc.kernel`" in started
    assert "start kernel in FlyDSL" not in started


@pytest.mark.parametrize("arch", PLACES)
def test_the_guide_is_that_of_amd(arch):
    assert bool(guide(arch, "flydsl")) is PLACES[arch]
    assert ("mfma" in guide(arch, "flydsl")) is PLACES[arch]
    assert "mfma" not in guide(arch, "flydsl", TOPICS - {"product"})


@pytest.mark.parametrize("there", [True, False])
def test_a_simulated_gpu_takes_it_where_it_is_installed(monkeypatch, there):
    find = importlib.util.find_spec
    spec = lambda name: (there or None) if name == "flydsl" else find(name)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", spec)
    assert ("flydsl" in describe("sim:gfx942").embedded) is there


def test_what_the_guide_names_is_in_a_kernel_that_runs():
    """Names are compared, as the guide shortens sizes and names of variables."""
    names = {name for text in fragments() for name in re.findall(r"fx(?:\.\w+)+|flyc\.\w+", text)}
    names -= {"fx.Tensor"}
    assert len(names) >= 20
    played = "\n".join(WHOLE)
    assert not [name for name in sorted(names) if name not in played]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("flydsl") is None, reason="FlyDSL is not installed")
@pytest.mark.parametrize(("name", "text"), [("add", WIDE_ADD), ("row_sum", SHUFFLED_SUM)])
def test_the_fragments_of_the_guide_run(name, text):
    with Evaluator(device="sim:gfx942", seed=0) as evaluator:
        result = evaluator.evaluate(get_task(f"triton2triton/{name}"), text)
    assert (result.outcome, result.message) == (Outcome.PASSED, "")

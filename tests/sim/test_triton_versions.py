"""Kernels under each version of Triton: right code, known miscompilations, known gaps.

The tests run with the Triton that is installed. KERNEL_GYM_TRITONS names a folder with further
versions, each in a folder of its own name (`pip install --no-deps --target $DIR/3.6.0
triton==3.6.0`). `pytest -m sweep tests/sim/test_triton_versions.py` runs the tests under each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import triton

from kernel_gym import triton_versions
from kernel_gym.evaluator import Evaluator
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task
from tests.sim import triton_kernels, version_kernels
from tests.sim.support import launch
from tests.sim.triton_kernels import compiled

ROOT = Path(__file__).parent.parent.parent
VERSION = triton_versions.numbers(triton.__version__)
TILES = {"TILE_M": 128, "TILE_N": 128, "TILE_K": 64}
FOLDER = os.environ.get("KERNEL_GYM_TRITONS", "")
OTHERS = sorted(path.name for path in Path(FOLDER).iterdir()) if FOLDER else []
UNDER_EACH = (
    "tests/sim/programs",
    "tests/sim/test_triton.py",
    "tests/sim/test_late_reads.py",
    "tests/sim/test_triton_versions.py",
    "tests/test_triton_versions.py",
    "tests/worker/sim",
)
BLOCK_POINTERS = """
import torch, triton
import triton.language as tl

@triton.jit
def rows(x, out, n, stride, BLOCK: tl.constexpr):
    source = tl.make_block_ptr(
        x + tl.program_id(0) * stride, (n,), (1,), (0,), (BLOCK,), (0,)
    )
    i = tl.arange(0, BLOCK)
    value = tl.load(source, boundary_check=(0,)).to(tl.float32)
    value = tl.where(i < n, value, -float("inf"))
    e = tl.exp(value - tl.max(value, 0))
    e = (e / tl.sum(e, 0)).to(out.dtype.element_ty)
    target = tl.make_block_ptr(out + tl.program_id(0) * n, (n,), (1,), (0,), (BLOCK,), (0,))
    tl.store(target, e, boundary_check=(0,))

def softmax(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.shape[-1]
    BLOCK = triton.next_power_of_2(n)
    warps = min(16, max(1, BLOCK // 512))
    if out.numel():
        rows[(out.numel() // n,)](x, out, n, x.stride(0), BLOCK=BLOCK, num_warps=warps)
    return out
"""


@pytest.fixture
def fresh_cache(monkeypatch, tmp_path):
    """Results of other settings are not found again."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    triton_kernels._compiled.cache_clear()
    yield monkeypatch
    triton_kernels._compiled.cache_clear()


def product(engine):
    """The matrix product of triton-lang/triton#11696: whether its waits are proven, its fault."""
    types = ["*fp32"] * 3 + ["i32"] * 3
    text, shared = compiled(
        triton_kernels.matmul, types, 8, 2, TOTAL=triton.language.float32, **TILES
    )
    kernel = engine.load(text, shared=shared)
    a, b, out = torch.randn(128, 192), torch.randn(192, 128), torch.empty(128, 128)
    result = launch(engine, kernel, (1, 1), (512,), [a, b, out, 128, 128, 192], audit=True)
    return kernel.program.waits_everywhere, result.fault


def test_block_ping_pong_lets_waves_overwrite_what_others_read(engine, fresh_cache):
    fresh_cache.setenv("TRITON_HIP_USE_BLOCK_PINGPONG", "1")
    proven, fault = product(engine)
    broken = VERSION <= (3, 8)
    assert (fault and fault.kind) == ("unwaited_read" if broken else None)
    assert proven is not broken


def test_as_we_set_triton_up_the_product_is_right(engine, fresh_cache):
    proven, fault = product(engine)
    assert proven
    assert fault is None, fault.message


@pytest.mark.parametrize(
    ("warps", "ordered", "races"), [(1, 0, 0), (4, 0, 1), (8, 0, 1), (4, 1, 0)]
)
def test_waves_that_read_what_others_have_just_stored(engine, warps, ordered, races):
    sizes = {"K": 32, "N": 64, "TILE": 64, "ORDER": bool(ordered)}
    types = ["*fp16"] * 4 + ["*fp32"]
    text, shared = compiled(version_kernels.two_loops, types, warps, 2, (), **sizes)
    x, a, b = torch.randn(128, 32).half(), torch.randn(32, 64).half(), torch.randn(64, 64).half()
    middle, out = torch.full((128, 64), float("nan")).half(), torch.empty(128, 64)
    kernel = engine.load(text, shared=shared)
    values = [x, a, b, middle, out]
    fault = launch(engine, kernel, (2,), (64 * warps,), values, audit=True).fault
    assert (fault and fault.kind) == ("global_race" if races else None)
    if not races:
        wanted = (x.double() @ a.double()).relu() @ b.double()
        torch.testing.assert_close(out.double(), wanted, rtol=0, atol=0.1)


def test_a_flag_that_one_wave_sets_before_another_has_loaded_it(engine):
    text, shared = compiled(version_kernels.first_come, ["*i32"] * 2, 4, 2, (), N=256)
    flags, out = torch.zeros(2, dtype=torch.int32), torch.zeros(512, dtype=torch.int32)
    kernel = engine.load(text, shared=shared)
    fault = launch(engine, kernel, (2,), (256,), [flags, out], audit=True).fault
    assert (fault and fault.kind) == ("global_race" if VERSION < (3, 9) else None)


@pytest.mark.parametrize("reverse", [True, False])
@pytest.mark.parametrize("ordered", [True, False])
def test_a_part_that_not_all_waves_have_stored_when_one_says_so(engine, ordered, reverse):
    text, shared = compiled(version_kernels.send, ["*i32"] * 3, 4, 2, (), N=256, ORDER=ordered)
    parts, ready = torch.zeros(256, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    out = torch.zeros(256, dtype=torch.int32)
    kernel = engine.load(text, shared=shared)
    values = [parts, ready, out]
    options = {"audit": True, "reverse_waves": reverse}
    fault = launch(engine, kernel, (2,), (256,), values, **options).fault
    assert (fault and fault.kind) == (None if ordered or VERSION >= (3, 9) else "global_race")
    if not fault:
        assert out.tolist() == list(range(256, 0, -1))


def test_block_pointers_work_or_their_absence_is_named():
    task = get_task("triton2triton/softmax")
    with Evaluator(device="sim:gfx942", seed=0) as evaluator:
        result = evaluator.evaluate(task, BLOCK_POINTERS)
    assert result.versions["triton"] == triton.__version__
    if triton_versions.has_block_pointers(triton.__version__):
        assert result.outcome is Outcome.PASSED, result.message
    else:
        assert result.outcome is Outcome.COMPILE_ERROR
        assert f"Triton {triton.__version__} has no block pointers" in result.message
        assert "Triton 3.5 to 3.8 have them" in result.message


@pytest.mark.sweep
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not OTHERS, reason="KERNEL_GYM_TRITONS names no folder with Tritons")
@pytest.mark.parametrize("version", OTHERS)
def test_under_each_version(version):
    environment = {k: v for k, v in os.environ.items() if k != "KERNEL_GYM_TRITONS"}
    environment["PYTHONPATH"] = str(Path(FOLDER) / version)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *UNDER_EACH]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    asked = subprocess.run(
        [sys.executable, "-c", "import triton; print(triton.__version__)"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert asked.stdout.strip() == version

"""HIP C++ compiled by clang to assembler text, against numpy."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.sim.support import launch

SOURCE = Path(__file__).with_name("kernels.hip")
CANDIDATES = ("clang++-19", "/usr/lib/llvm-19/bin/clang++", "/opt/rocm/llvm/bin/clang++")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Assembler text of kernels.hip."""
    compiler = next((command for name in CANDIDATES if (command := shutil.which(name))), None)
    if compiler is None:
        pytest.skip("no clang for HIP found")
    output = tmp_path_factory.mktemp("hip") / "kernels.s"
    command = [compiler, "-x", "hip", "--offload-arch=gfx942", "--offload-device-only", "-S"]
    command += ["-O2", "-nogpuinc", "-nogpulib", "-std=c++17", str(SOURCE), "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"clang cannot compile HIP here: {done.stderr[:200]}")
    return output.read_text()


def start(engine, text, name, grid, block, values, **options):
    result = launch(engine, engine.load(text, name), grid, block, values, **options)
    assert result.fault is None, result.fault.message


def helper(x, count):
    table = np.array([1.5, 2.5, 3.5, 4.5], np.float32)
    for i in range(count):
        x = x * table[i % 4] + np.float32(1)
    return x


def test_kernels_are_listed(engine, text):
    assert {"block_sum", "calls", "apertures"} <= set(engine.kernel_names(text))


def test_shared_memory_and_dynamic_lds(any_engine, text):
    x = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    out = np.zeros(4, np.float32)
    start(any_engine, text, "block_sum", (4,), (256,), [x, out, 1000], dynamic_lds=1024)
    expected = [x[i : i + 256].sum() for i in range(0, 1000, 256)]
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_two_dimensional_blocks(engine, text):
    out = np.zeros((6, 20), np.int32)
    start(engine, text, "coordinates", (3, 2), (8, 4), [out, 20, 6])
    rows, columns = np.mgrid[0:6, 0:20]
    np.testing.assert_array_equal(out, 100 * rows + columns)


def test_function_calls_and_constant_tables(any_engine, text):
    x = np.random.default_rng(0).standard_normal(500).astype(np.float32)
    out = np.zeros_like(x)
    start(any_engine, text, "calls", (2,), (256,), [x, out, 500])
    odd = np.arange(500) % 2 == 1
    np.testing.assert_allclose(
        out, np.where(odd, helper(x, 5), helper(x, 3) + 1), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("which", [0, 1, 2])
def test_flat_pointers_to_lds_scratch_and_global(engine, text, which):
    x = np.random.default_rng(0).standard_normal(256).astype(np.float32)
    before, out = x.copy(), np.zeros_like(x)
    start(engine, text, "apertures", (1,), (256,), [x, out, 256, which])
    t = np.arange(256)
    source = {0: (t + 1) % 256, 1: (t + t % 4) % 256, 2: t}[which]
    np.testing.assert_array_equal(out, before[source] + 1)


def test_matrix_builtin(engine, text):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 16, 16)).astype(np.float16)
    out = np.zeros((16, 16), np.float32)
    start(engine, text, "matrix16", (1,), (64,), [a, b, out])
    np.testing.assert_allclose(
        out, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-5, atol=1e-5
    )

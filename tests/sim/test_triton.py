"""Whole Triton kernels, compiled for gfx942, against PyTorch."""

from __future__ import annotations

import pytest
import torch
import triton.language as tl

from kernel_gym.sim.engine.engine import Engine
from tests.sim import triton_kernels as kernels
from tests.sim.support import run
from tests.sim.triton_kernels import compiled


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def launch(engine, function, types, grid, values, warps=4, stages=2, **constants):
    text, shared = compiled(function, types, warps, stages, **constants)
    return run(engine, text, grid, values, shared=shared, block=(64 * warps,))


def test_softmax(any_engine):
    x, out = torch.randn(64, 1000), torch.empty(64, 1000)
    types = ["*fp32", "*fp32", "i32"]
    launch(any_engine, kernels.softmax, types, (64,), [x, out, 1000], BLOCK=1024)
    torch.testing.assert_close(out, torch.softmax(x, 1), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_layer_norm(engine, dtype):
    x, out = torch.randn(32, 700).to(dtype), torch.empty(32, 700, dtype=dtype)
    w, b = torch.randn(700).to(dtype), torch.randn(700).to(dtype)
    kind = {torch.float32: "*fp32", torch.float16: "*fp16"}[dtype]
    values = [x, w, b, out, 700, 1e-5]
    types = [kind] * 4 + ["i32", "fp32"]
    launch(engine, kernels.layer_norm, types, (32,), values, BLOCK=1024)
    expected = torch.nn.functional.layer_norm(x.float(), (700,), w.float(), b.float(), 1e-5)
    tolerance = 1e-4 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(out.float(), expected, rtol=tolerance, atol=tolerance)


MATMULS = [
    # input, output, Triton types, tile, warps, stages, tolerance
    ("half", "half", "*fp16", "*fp16", 64, 4, 2, 2e-2),
    ("half", "half", "*fp16", "*fp16", 16, 1, 1, 2e-2),
    ("half", "float", "*fp16", "*fp32", 128, 8, 2, 2e-3),
    ("bfloat16", "bfloat16", "*bf16", "*bf16", 64, 4, 2, 1e-1),
    ("float32", "float32", "*fp32", "*fp32", 32, 2, 1, 1e-2),
    ("int8", "int32", "*i8", "*i32", 64, 4, 2, 0),
    ("float8_e4m3fnuz", "float32", "*fp8e4b8", "*fp32", 64, 4, 2, 1e-3),
    ("float8_e5m2fnuz", "float32", "*fp8e5b16", "*fp32", 32, 2, 2, 1e-3),
]


@pytest.mark.parametrize("case", MATMULS, ids=lambda case: f"{case[0]}-{case[4]}")
def test_matmul(any_engine, case):
    source, target, source_type, target_type, tile, warps, stages, tolerance = case
    m, n, k = 128, 256, 96
    if source == "int8":
        a = torch.randint(-128, 128, (m, k), dtype=torch.int8)
        b = torch.randint(-128, 128, (k, n), dtype=torch.int8)
    else:
        a, b = (torch.randn(shape).to(getattr(torch, source)) for shape in ((m, k), (k, n)))
    out = torch.zeros(m, n, dtype=getattr(torch, target))
    types = [source_type, source_type, target_type, "i32", "i32", "i32"]
    total = tl.int32 if target == "int32" else tl.float32
    constants = {"TILE_M": tile, "TILE_N": tile, "TILE_K": 32, "TOTAL": total}
    grid = (m // tile, n // tile)
    launch(
        any_engine, kernels.matmul, types, grid, [a, b, out, m, n, k], warps, stages, **constants
    )
    expected = a.double() @ b.double()
    torch.testing.assert_close(out.double(), expected, rtol=tolerance, atol=10 * tolerance)


def test_causal_attention(any_engine):
    q, k, v = (torch.randn(2, 128, 64).half() for _ in range(3))
    out = torch.empty_like(q)
    types = ["*fp16"] * 4 + ["fp32", "i32"]
    values = [q, k, v, out, 0.125, 128]
    launch(any_engine, kernels.causal_attention, types, (2, 2), values, stages=1, D=64, TILE=64)
    expected = torch.nn.functional.scaled_dot_product_attention(
        q.float(), k.float(), v.float(), is_causal=True
    )
    torch.testing.assert_close(out.float(), expected, rtol=5e-3, atol=5e-3)


def test_argmax(engine):
    x, out = torch.randn(64, 1000), torch.zeros(64, dtype=torch.int32)
    types = ["*fp32", "*i32", "i32"]
    launch(engine, kernels.row_argmax, types, (64,), [x, out, 1000], BLOCK=1024)
    assert torch.equal(out.long(), x.argmax(1))


def test_cumsum_sort_and_flip(any_engine):
    x, out = torch.randn(16, 512), torch.empty(16, 512)
    types = ["*fp32", "*fp32"]
    launch(any_engine, kernels.row_cumsum, types, (16,), [x, out], BLOCK=512)
    torch.testing.assert_close(out, x.cumsum(1), rtol=1e-4, atol=1e-4)
    launch(any_engine, kernels.row_sort, types, (16,), [x, out], BLOCK=512)
    assert torch.equal(out, x.sort(1)[0])
    launch(any_engine, kernels.reversed_copy, types, (16,), [x, out], BLOCK=512)
    assert torch.equal(out, x.flip(1))


def test_transpose(engine):
    x, out = torch.randn(128, 192), torch.empty(192, 128)
    types = ["*fp32", "*fp32", "i32", "i32"]
    launch(engine, kernels.transpose, types, (2, 3), [x, out, 128, 192], TILE_M=64, TILE_N=64)
    assert torch.equal(out, x.T)


def test_float_atomics_are_the_same_with_any_number_of_threads():
    x = torch.randn(50_000)
    sums = set()
    for threads in (1, 2):
        out = torch.zeros(1)
        types = ["*fp32", "*fp32", "i32"]
        values = [x, out, 50_000]
        launch(Engine(threads=threads), kernels.total_sum, types, (49,), values, BLOCK=1024)
        torch.testing.assert_close(out[0], x.sum(), rtol=1e-4, atol=1e-2)
        sums.add(out.item())
    assert len(sums) == 1


def test_histogram(engine):
    x, out = torch.randint(0, 64, (20_000,), dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    types = ["*i32", "*i32", "i32"]
    launch(engine, kernels.histogram, types, (20,), [x, out, 20_000], BLOCK=1024)
    assert torch.equal(out.long(), torch.bincount(x.long(), minlength=64))


def test_gelu_in_bf16(any_engine):
    x = torch.randn(4000).bfloat16()
    out = torch.empty_like(x)
    types = ["*bf16", "*bf16", "i32"]
    launch(any_engine, kernels.gelu, types, (4,), [x, out, 4000], BLOCK=1024)
    expected = torch.nn.functional.gelu(x.float())
    torch.testing.assert_close(out.float(), expected, rtol=1e-2, atol=1e-2)


def test_64_bit_integers(any_engine):
    x = torch.randint(-(10**12), 10**12, (512,))
    y = torch.randint(1, 10**6, (512,))
    out = torch.empty_like(x)
    types = ["*i64"] * 3
    launch(any_engine, kernels.integer_math, types, (1,), [x, y, out], BLOCK=512)
    quotient = torch.div(x, y, rounding_mode="trunc")
    expected = quotient + (x - quotient * y) + x * y + (x >> 3) + torch.maximum(x, y)
    assert torch.equal(out, expected)


def test_double_precision(any_engine):
    x, out = torch.randn(256, dtype=torch.float64), torch.empty(256, dtype=torch.float64)
    launch(any_engine, kernels.double_math, ["*fp64"] * 2, (1,), [x, out], BLOCK=256)
    expected = x.abs().sqrt() / (1 + x.exp()) + (x.abs() + 1).log()
    torch.testing.assert_close(out, expected, rtol=1e-14, atol=1e-14)


def test_spin_lock(engine):
    lock, counter = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    types = ["*i32", "*i32"]
    launch(engine, kernels.locked_increment, types, (64,), [lock, counter], warps=1, UNUSED=0)
    assert (counter.item(), lock.item()) == (64, 0)


def test_a_program_waits_for_the_last_one():
    flag, out = torch.zeros(1, dtype=torch.int32), torch.zeros(9 * 1024, dtype=torch.int32)
    types = ["*i32", "*i32"]
    engine = Engine(threads=1)
    launch(engine, kernels.after_the_last_program, types, (9,), [flag, out], BLOCK=1024)
    assert torch.equal(out, torch.arange(9 * 1024, dtype=torch.int32))

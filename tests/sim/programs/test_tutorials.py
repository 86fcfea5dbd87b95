"""Kernels of tutorial class, compiled for gfx942, against PyTorch in double precision."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import triton

from kernel_gym.triton_versions import numbers
from tests.sim.programs import tutorial_kernels as kernels
from tests.sim.support import ARENA, argument_bytes, pack_kernarg, run
from tests.sim.triton_kernels import compiled

NAMES = {
    torch.float32: "*fp32",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.int32: "*i32",
    torch.int64: "*i64",
    torch.uint8: "*u8",
    torch.int8: "*i8",
    torch.float8_e4m3fn: "*fp8e4nv",
    torch.float8_e5m2: "*fp8e5",
}


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def go(engine, function, grid, values, warps=4, stages=2, **constants):
    """Compile with types from the values and launch, with an audit. Returns the text."""
    types = [
        NAMES[v.dtype] if torch.is_tensor(v) else "fp32" if isinstance(v, float) else "i32"
        for v in values
    ]
    names = [name for name in function.arg_names if name not in constants]
    multiples = tuple(
        name
        for name, value in zip(names, values, strict=True)
        if isinstance(value, int) and value % 16 == 0
    )
    text, shared = compiled(function, types, warps, stages, multiples, **constants)
    run(engine, text, grid, values, shared=shared, block=(64 * warps,), audit=True)
    return text


def close(actual, wanted, tolerance):
    torch.testing.assert_close(actual.double(), wanted.double(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("grid", [(5, 1, 1), (3, 4, 1), (2, 3, 4)])
@pytest.mark.parametrize("warps", [1, 4])
def test_num_programs(engine, grid, warps):
    out = torch.zeros(int(np.prod(grid)), 3, dtype=torch.int32)
    go(engine, kernels.counts, grid, [out], warps)
    assert out.tolist() == [list(grid)] * len(out)


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_persistent_softmax(engine, dtype, stages):
    x, out = torch.randn(37, 203).to(dtype), torch.empty(37, 203, dtype=dtype)
    values = [x, out, 37, 203, 203]
    go(engine, kernels.persistent_softmax, (6,), values, BLOCK=256, STAGES=stages)
    close(out, torch.softmax(x.double(), 1), 1e-5 if dtype == torch.float32 else 1e-2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("kernel", [kernels.matmul, kernels.persistent_matmul])
def test_matmul(engine, kernel, dtype):
    m, n, k = 90, 77, 70
    a, b = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)
    out = torch.empty(m, n, dtype=dtype)
    tiles = {"TM": 32, "TN": 32, "TK": 32, "GROUP": 2}
    grid = (9,) if kernel is kernels.matmul else (4,)
    go(engine, kernel, grid, [a, b, out, m, n, k], **tiles)
    wanted = a.double() @ b.double()
    if kernel is kernels.matmul:
        wanted = F.leaky_relu(wanted, 0.01)
    # Products of fp32 go through the ten mantissa bits of xf32 unless asked otherwise.
    close(out, wanted, {torch.float16: 1e-2, torch.bfloat16: 1e-1, torch.float32: 4e-2}[dtype])


def test_split_matmul(engine):
    a, b, out = torch.randn(64, 256).half(), torch.randn(256, 32).half(), torch.zeros(64, 32)
    tiles = {"SPLIT": 4, "TM": 32, "TN": 32, "TK": 32}
    go(engine, kernels.split_matmul, (2, 4), [a, b, out, 64, 32, 256], **tiles)
    close(out, a.double() @ b.double(), 1e-3)


def test_grouped_matmul(engine):
    shapes = [(32, 48, 64), (70, 32, 32), (16, 90, 40)]
    data, starts, used = [], [], 0
    for m, n, k in shapes:
        for size in (m * k, k * n, m * n):
            starts.append(ARENA.base + 2 * used)
            data.append(torch.randn(size).half())
            used += size
    memory = torch.cat(data)
    sizes, addresses = torch.tensor(shapes, dtype=torch.int32), torch.tensor(starts)
    before = memory.clone()
    text, shared = compiled(
        kernels.grouped_matmul, ["*i64", "*i32", "i32"], 4, 2, TM=32, TN=32, TK=32
    )
    kernel = engine.load(text, shared=shared)
    # The table of addresses is an argument, the memory behind them is not.
    placed = [ARENA.place(value, i) for i, value in enumerate((memory, addresses, sizes))]
    engine.set_allocations(ARENA.spans)
    values = [*placed[1:], len(shapes)]
    explicit = [arg for arg in kernel.args if not arg.hidden]
    packed = [argument_bytes(v, a.size) for v, a in zip(values, explicit, strict=False)]
    result = engine.launch(
        kernel, (5,), (256,), pack_kernarg(kernel, packed, (5,), (256,)), model_time=False
    )
    ARENA.take_back()
    assert result.fault is None, result.fault.message
    used = 0
    for m, n, k in shapes:
        a, b = before[used : used + m * k], before[used + m * k : used + m * k + k * n]
        used += m * k + k * n
        wanted = a.view(m, k).double() @ b.view(k, n).double()
        close(memory[used : used + m * n].view(m, n), wanted, 2e-2)
        used += m * n


def test_descriptors(engine):
    m, n, k = 80, 72, 96
    a, b, out = torch.randn(m, k).half(), torch.randn(n, k).half(), torch.empty(m, n).half()
    values = [a, b, out, m, n, k]
    go(engine, kernels.descriptor_matmul, (3, 3), values, TM=32, TN=32, TK=32)
    close(out, a.double() @ b.double().T, 2e-2)


E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


def scaled_operand(kind, shape, axis):
    """Storage and values of one factor of a block-scaled product, packed along ``axis``."""
    if kind == "e2m1":
        codes = torch.randint(0, 16, shape)
        even, odd = (codes.index_select(axis, torch.arange(s, shape[axis], 2)) for s in (0, 1))
        return (even | odd << 4).to(torch.uint8), E2M1[codes].double()
    dtype = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "bf16": torch.bfloat16}[kind]
    values = torch.randn(shape).to(dtype)
    return values, values.double()


@pytest.mark.skipif(
    numbers(triton.__version__) < (3, 8), reason="Triton before 3.8 cannot compile such a product"
)
@pytest.mark.parametrize(
    ("left", "right"), [("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e2m1", "e4m3"), ("e2m1", "e2m1")]
)
def test_scaled_matmul(engine, left, right):
    scaled_matmul_is_right(engine, left, right, (32, 32, 64))


@pytest.mark.skipif(
    numbers(triton.__version__) < (3, 8), reason="Triton before 3.8 cannot compile such a product"
)
@pytest.mark.parametrize("size", [(64, 64, 256), (128, 128, 64)])
@pytest.mark.parametrize("left", ["e4m3", "e5m2", "e2m1"])
@pytest.mark.parametrize("right", ["e4m3", "e5m2", "e2m1"])
def test_scaled_matmul_by_the_instructions_of_gfx950(engine, left, right, size):
    text = scaled_matmul_is_right(engine, left, right, size, arch="gfx950")
    assert re.search(r"v_mfma_scale_f32_(16x16x128|32x32x64)_f8f6f4", text)


def scaled_matmul_is_right(engine, left, right, size, **target):
    """Runs a product of drawn factors and scales; returns the assembler text of its kernel."""
    m, n, k = size
    (a, x), (b, y) = scaled_operand(left, (m, k), 1), scaled_operand(right, (k, n), 0)
    sa, sb = (torch.randint(124, 131, (size, k // 32), dtype=torch.uint8) for size in (m, n))
    out = torch.zeros(m, n)
    packs = {"PA": 2 if left == "e2m1" else 1, "PB": 2 if right == "e2m1" else 1}
    shape = {"LEFT": left, "RIGHT": right, "M": m, "N": n, "K": k}
    text = go(engine, kernels.scaled_matmul, (1,), [a, b, sa, sb, out], **packs, **shape, **target)
    wide = [torch.exp2(s.double() - 127).repeat_interleave(32, 1) for s in (sa, sb)]
    close(out, (x * wide[0]) @ (y * wide[1].T), 1e-2)
    return text


def philox(counter, seed):
    """First word of Philox 4x32-10 for each counter."""
    c = [counter.astype(np.uint64)] + [np.zeros_like(counter, np.uint64)] * 3
    key, low = [seed & 0xFFFFFFFF, seed >> 32], np.uint64(0xFFFFFFFF)
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (second >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]),
            second & low,
            (first >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]),
            first & low,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0].astype(np.uint32)


def test_philox(engine):
    out = torch.zeros(1024, dtype=torch.int32)
    go(engine, kernels.random_words, (4,), [out, 1234567], BLOCK=256)
    assert np.array_equal(out.numpy().view(np.uint32), philox(np.arange(1024), 1234567))


def test_dropout(engine):
    x, out = torch.randn(1000), torch.empty(1000)
    go(engine, kernels.dropout, (4,), [x, out, 1000, 0.3, 99], BLOCK=256)
    words = philox(np.arange(1000), 99).view(np.int32).astype(np.int64)
    uniform = np.where(words < 0, -words - 1, words) * 4.6566127342e-10
    wanted = torch.where(torch.from_numpy(uniform > 0.3), x.double() / 0.7, 0.0)
    close(out, wanted, 1e-6)


def test_layer_norm(engine):
    rows, n, groups = 24, 200, 4
    x, w, b = torch.randn(rows, n), torch.randn(n), torch.randn(n)
    out, mean, scale = torch.empty(rows, n), torch.empty(rows), torch.empty(rows)
    values = [x, out, w, b, mean, scale, n, 1e-5]
    go(engine, kernels.layer_norm, (rows,), values, BLOCK=128)
    leaves = [value.double().requires_grad_() for value in (x, w, b)]
    wanted = F.layer_norm(leaves[0], (n,), leaves[1], leaves[2], 1e-5)
    close(out, wanted.detach(), 1e-5)
    dy, dx = torch.randn(rows, n), torch.empty(rows, n)
    dw, db = torch.empty(groups, n), torch.empty(groups, n)
    locks = torch.zeros(2 * groups, dtype=torch.int32)
    values = [dx, dy, dw, db, x, w, mean, scale, locks, n]
    go(engine, kernels.layer_norm_backward, (rows,), values, GROUPS=groups, BLOCK=256)
    wanted.backward(dy.double())
    for actual, leaf in zip((dx, dw.sum(0), db.sum(0)), leaves, strict=True):
        close(actual, leaf.grad, 1e-4)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("warps", [1, 4])
def test_attention(engine, dtype, causal, warps):
    q, k, v = (torch.randn(2, 128, 32).to(dtype) for _ in range(3))
    out = torch.empty_like(q)
    tiles = {"D": 32, "TM": 32, "TN": 32, "CAUSAL": causal}
    go(engine, kernels.attention, (4, 2), [q, k, v, out, 0.2, 128], warps, **tiles)
    qkv = (value.double() for value in (q, k, v))
    wanted = F.scaled_dot_product_attention(*qkv, is_causal=causal, scale=0.2)
    close(out, wanted, 1e-2 if dtype == torch.float16 else 4e-2)


def test_device_assert_is_compiled_out(engine):
    x, out = torch.randn(200), torch.zeros(200)
    go(engine, kernels.asserted_copy, (1,), [x, out, 200], BLOCK=256)
    assert torch.equal(out, x)


def test_inline_assembly(engine):
    x, y = (torch.randint(0, 1 << 12, (256,), dtype=torch.int32) for _ in range(2))
    out = torch.zeros_like(x)
    go(engine, kernels.inline_assembly, (1,), [x, y, out], BLOCK=256)
    assert torch.equal(out, x * y + 7)


@pytest.mark.parametrize("warps", [1, 2, 8])
def test_moments(engine, warps):
    x, mean, variance = torch.randn(6, 512) + 3, torch.empty(6), torch.empty(6)
    go(engine, kernels.moments, (6,), [x, mean, variance], warps, BLOCK=512)
    close(mean, x.double().mean(1), 1e-5)
    close(variance, x.double().var(1, correction=0), 1e-5)


@pytest.mark.parametrize("warps", [1, 4])
def test_recurrence(engine, warps):
    decay, x, out = torch.rand(2, 512) * 0.9, torch.randn(2, 512), torch.empty(2, 512)
    go(engine, kernels.recurrence, (2,), [decay, x, out], warps, BLOCK=512)
    state, wanted = torch.zeros(2).double(), []
    for a, b in zip(decay.double().T, x.double().T, strict=True):
        state = a * state + b
        wanted.append(state)
    close(out, torch.stack(wanted, 1), 1e-4)


def test_cross_entropy(engine):
    logits, labels = torch.randn(12, 333).half(), torch.randint(1, 333, (12,))
    loss = torch.empty(12)
    go(engine, kernels.cross_entropy, (12,), [logits, labels, loss, 333], BLOCK=128)
    close(loss, F.cross_entropy(logits.double(), labels, reduction="none"), 1e-4)


def test_rotary(engine):
    x, angle, out = torch.randn(8, 128), torch.rand(8, 64) * 6, torch.empty(8, 128)
    go(engine, kernels.rotary, (8,), [x, angle.cos(), angle.sin(), out], 2, HALF=64)
    turned = torch.view_as_complex(x.double().view(8, 64, 2)) * torch.polar(
        torch.ones(8, 64).double(), angle.double()
    )
    close(out, torch.view_as_real(turned).reshape(8, 128), 1e-5)


def test_four_bit_matmul(engine):
    n, k = 32, 64
    x, codes = torch.randn(16, k).half(), torch.randint(0, 16, (k, n))
    packed, scales = (codes[::2] | codes[1::2] << 4).to(torch.uint8), torch.rand(n).half()
    out = torch.empty(16, n)
    go(engine, kernels.four_bit_matmul, (1,), [x, packed, scales, out], N=n, K=k)
    weights = (codes - 8).double() * scales.double()
    close(out, x.double() @ weights, 5e-2)


def test_convolution(engine):
    x, w, out = torch.randn(8, 16, 32).half(), torch.randn(9, 32, 16).half(), torch.empty(8, 16, 16)
    sizes = {"H": 8, "W": 16, "C": 32, "F": 16, "R": 3}
    go(engine, kernels.convolution, (8,), [x, w, out], **sizes)
    taps = w.double().view(3, 3, 32, 16).permute(3, 2, 0, 1)
    wanted = F.conv2d(x.double().permute(2, 0, 1)[None], taps, padding=1)[0]
    close(out, wanted.permute(1, 2, 0), 1e-3)


def test_data_dependent_loops(engine):
    x = torch.arange(1, 41, dtype=torch.int32)
    out = torch.zeros_like(x)
    go(engine, kernels.collatz, (40,), [x, out], 1, BLOCK=1)

    def steps(n):
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    assert out.tolist() == [steps(n) for n in range(1, 41)]

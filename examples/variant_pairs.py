"""Times six schedule variants of each of 12 problems and prints 60 log speedups over the first.

Imports torch and triton alone, so that one file runs on any GPU that PyTorch calls "cuda", and on
the simulator. Every variant must give the values of the first one. Caches are flushed before calls.

    python examples/variant_pairs.py --out measured.json                    # a GPU, 2-3 minutes
    kernel-gym sim examples/variant_pairs.py --timeout 3000 -- --once       # modelled for an MI300X
    python examples/compare_pairs.py measured.json                          # both, and their ranks
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import statistics
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

FLUSH_BYTES = 256 << 20
REPEATS = 20
DEVICE = "cuda"
Variant = Callable[..., torch.Tensor]


# ---- element by element
@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def add(x, y, block, warps):
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), block),)
    add_kernel[grid](x, y, out, x.numel(), BLOCK=block, num_warps=warps)
    return out


@triton.jit
def gelu_kernel(x, out, n, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * BLOCK * STEPS
    for step in range(STEPS):
        i = first + step * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(x + i, mask=i < n).to(tl.float32)
        cube = 0.7978845608 * (v + 0.044715 * v * v * v)
        tanh = 1 - 2 / (1 + tl.exp(2 * cube))
        tl.store(out + i, (0.5 * v * (1 + tanh)).to(out.dtype.element_ty), mask=i < n)


def gelu(x, block, warps, steps=1):
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), block * steps),)
    gelu_kernel[grid](x, out, x.numel(), STEPS=steps, BLOCK=block, num_warps=warps)
    return out


@triton.jit
def swiglu_kernel(gate, up, out, n, MODE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate + i, mask=i < n).to(tl.float32)
    if MODE != "multiply":
        g = g / (1 + tl.exp(-g))
    if MODE != "silu":
        g *= tl.load(up + i, mask=i < n).to(tl.float32)
    tl.store(out + i, g.to(out.dtype.element_ty), mask=i < n)


def swiglu(gate, up, block, warps, fused=True):
    out = torch.empty_like(gate)
    n = gate.numel()
    launch = functools.partial(swiglu_kernel[(triton.cdiv(n, block),)], BLOCK=block)
    if fused:
        launch(gate, up, out, n, MODE="both", num_warps=warps)
        return out
    silu = torch.empty_like(gate)
    launch(gate, up, silu, n, MODE="silu", num_warps=warps)
    launch(silu, up, out, n, MODE="multiply", num_warps=warps)
    return out


# ---- moving
@triton.jit
def transpose_kernel(x, out, m, n, TILE_M: tl.constexpr, TILE_N: tl.constexpr):
    i = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    j = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    tile = tl.load(x + i[:, None] * n + j[None, :])
    tl.store(out + j[:, None] * m + i[None, :], tl.trans(tile))


def transpose(x, tile_m, tile_n, warps):
    m, n = x.shape
    out = torch.empty((n, m), dtype=x.dtype, device=x.device)
    grid = (m // tile_m, n // tile_n)
    transpose_kernel[grid](x, out, m, n, TILE_M=tile_m, TILE_N=tile_n, num_warps=warps)
    return out


# ---- rows
@triton.jit
def softmax_kernel(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row + c, mask=c < n, other=float("-inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row + c, e / tl.sum(e, 0), mask=c < n)


@triton.jit
def softmax_loop_kernel(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    c = tl.arange(0, BLOCK)
    top = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, n, BLOCK):
        v = tl.load(x + row + start + c, mask=start + c < n, other=float("-inf"))
        top = tl.maximum(top, v)
    m = tl.max(top, 0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        v = tl.load(x + row + start + c, mask=start + c < n, other=float("-inf"))
        total += tl.exp(v - m)
    s = tl.sum(total, 0)
    for start in range(0, n, BLOCK):
        v = tl.load(x + row + start + c, mask=start + c < n)
        tl.store(out + row + start + c, tl.exp(v - m) / s, mask=start + c < n)


def softmax(x, block, warps, loop=False):
    out = torch.empty_like(x)
    kernel = softmax_loop_kernel if loop else softmax_kernel
    kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=block, num_warps=warps)
    return out


@triton.jit
def norm_kernel(
    x, residual, weight, out, n, CENTRE: tl.constexpr, ADD: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * n
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row + c, mask=c < n, other=0).to(tl.float32)
    if ADD:
        v += tl.load(residual + row + c, mask=c < n, other=0).to(tl.float32)
    if CENTRE:
        v = tl.where(c < n, v - tl.sum(v, 0) / n, 0)
    scale = 1 / tl.sqrt(tl.sum(v * v, 0) / n + 1e-5)
    w = tl.load(weight + c, mask=c < n).to(tl.float32)
    tl.store(out + row + c, (v * scale * w).to(out.dtype.element_ty), mask=c < n)


@triton.jit
def norm_loop_kernel(x, weight, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    c = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        v = tl.load(x + row + start + c, mask=start + c < n, other=0).to(tl.float32)
        total += v
        squares += v * v
    mean = tl.sum(total, 0) / n
    scale = 1 / tl.sqrt(tl.sum(squares, 0) / n - mean * mean + 1e-5)
    for start in range(0, n, BLOCK):
        v = tl.load(x + row + start + c, mask=start + c < n).to(tl.float32)
        w = tl.load(weight + start + c, mask=start + c < n).to(tl.float32)
        y = ((v - mean) * scale * w).to(out.dtype.element_ty)
        tl.store(out + row + start + c, y, mask=start + c < n)


def layer_norm(x, weight, block, warps, loop=False):
    out = torch.empty_like(x)
    rows, n = x.shape
    if loop:
        norm_loop_kernel[(rows,)](x, weight, out, n, BLOCK=block, num_warps=warps)
    else:
        norm_kernel[(rows,)](
            x, x, weight, out, n, CENTRE=True, ADD=False, BLOCK=block, num_warps=warps
        )
    return out


def add_rms_norm(x, residual, weight, block, warps, fused=True):
    out = torch.empty_like(x)
    rows, n = x.shape
    if not fused:
        x = add(x, residual, 1024, 4)
    norm_kernel[(rows,)](
        x, residual, weight, out, n, CENTRE=False, ADD=fused, BLOCK=block, num_warps=warps
    )
    return out


@triton.jit
def row_sum_kernel(x, out, n, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * n + tl.program_id(1) * STEPS * BLOCK
    total = tl.zeros([BLOCK], tl.float32)
    for step in range(STEPS):
        total += tl.load(x + first + step * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(out + tl.program_id(0), tl.sum(total, 0))


def row_sum(x, block, warps, parts=1):
    rows, n = x.shape
    out = torch.zeros(rows, dtype=torch.float32, device=x.device)
    steps = n // block // parts
    row_sum_kernel[(rows, parts)](x, out, n, STEPS=steps, BLOCK=block, num_warps=warps)
    return out


@triton.jit
def cross_entropy_kernel(x, target, out, n, BLOCK: tl.constexpr, ONLINE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    c = tl.arange(0, BLOCK)
    top = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        v = tl.load(x + row + start + c, mask=start + c < n, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(top, v)
        if ONLINE:
            total = total * tl.exp(tl.where(higher > top, top - higher, 0)) + tl.exp(v - higher)
        top = higher
    m = tl.max(top, 0)
    if ONLINE:
        s = tl.sum(total * tl.exp(top - m), 0)
    else:
        for start in range(0, n, BLOCK):
            v = tl.load(x + row + start + c, mask=start + c < n, other=float("-inf"))
            total += tl.exp(v.to(tl.float32) - m)
        s = tl.sum(total, 0)
    chosen = tl.load(x + row + tl.load(target + tl.program_id(0))).to(tl.float32)
    tl.store(out + tl.program_id(0), tl.log(s) + m - chosen)


def cross_entropy(x, target, block, warps, online=True):
    out = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    cross_entropy_kernel[(x.shape[0],)](
        x, target, out, x.shape[1], BLOCK=block, ONLINE=online, num_warps=warps
    )
    return out


# ---- matrices
@triton.jit
def matmul_kernel(
    a,
    b,
    out,
    m,
    n,
    k,
    GELU: tl.constexpr,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    TILE_K: tl.constexpr,
):
    i = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    j = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    step = tl.arange(0, TILE_K)
    total = tl.zeros([TILE_M, TILE_N], tl.float32)
    for start in range(0, k, TILE_K):
        left = tl.load(a + i[:, None] * k + start + step[None, :])
        right = tl.load(b + (start + step[:, None]) * n + j[None, :])
        total = tl.dot(left, right, total)
    if GELU:
        total = total / (1 + tl.exp(-1.702 * total))
    tl.store(out + i[:, None] * n + j[None, :], total.to(out.dtype.element_ty))


@triton.jit
def quick_gelu_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(out + i, (v / (1 + tl.exp(-1.702 * v))).to(out.dtype.element_ty), mask=i < n)


def matmul(a, b, tile_m, tile_n, tile_k, warps, stages=2, epilogue=""):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    matmul_kernel[(m // tile_m, n // tile_n)](
        a,
        b,
        out,
        m,
        n,
        k,
        GELU=epilogue == "fused",
        TILE_M=tile_m,
        TILE_N=tile_n,
        TILE_K=tile_k,
        num_warps=warps,
        num_stages=stages,
    )
    if epilogue != "apart":
        return out
    after = torch.empty_like(out)
    quick_gelu_kernel[(triton.cdiv(m * n, 1024),)](out, after, m * n, BLOCK=1024)
    return after


@triton.jit
def attention_kernel(
    q, k, v, out, n, scale, D: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr
):
    head = tl.program_id(1) * n * D
    i = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    d = tl.arange(0, D)
    query = tl.load(q + head + i[:, None] * D + d[None, :])
    top = tl.full([TILE_M], float("-inf"), tl.float32)
    total = tl.zeros([TILE_M], tl.float32)
    result = tl.zeros([TILE_M, D], tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * TILE_M, TILE_N):
        j = start + tl.arange(0, TILE_N)
        keys = tl.load(k + head + j[None, :] * D + d[:, None])
        score = tl.dot(query, keys) * scale
        score = tl.where(i[:, None] >= j[None, :], score, float("-inf"))
        higher = tl.maximum(top, tl.max(score, 1))
        p = tl.exp(score - higher[:, None])
        shrink = tl.exp(top - higher)
        total = total * shrink + tl.sum(p, 1)
        values = tl.load(v + head + j[:, None] * D + d[None, :])
        result = result * shrink[:, None] + tl.dot(p.to(values.dtype), values)
        top = higher
    tl.store(
        out + head + i[:, None] * D + d[None, :], (result / total[:, None]).to(out.dtype.element_ty)
    )


def attention(q, k, v, tile_m, tile_n, warps, stages=1):
    heads, n, d = q.shape
    out = torch.empty_like(q)
    attention_kernel[(n // tile_m, heads)](
        q,
        k,
        v,
        out,
        n,
        d**-0.5,
        D=d,
        TILE_M=tile_m,
        TILE_N=tile_n,
        num_warps=warps,
        num_stages=stages,
    )
    return out


# ---- the problems: inputs, function, and what differs between the variants
def _random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def problems() -> dict[str, tuple[Variant, tuple[torch.Tensor, ...], list[dict[str, Any]]]]:
    """By name: the function, its inputs on the host, and six sets of options."""
    half, wide = torch.float16, torch.bfloat16
    rows = _random(4096, 2048)
    logits = _random(1024, 16384, dtype=wide)
    target = torch.randint(0, 16384, (1024,), generator=torch.Generator().manual_seed(2))
    a, b = _random(2048, 1024, dtype=half), _random(1024, 2048, dtype=half)
    heads = [_random(8, 2048, 64, dtype=half) for i in range(3)]
    row_options = [
        {"block": 2048, "warps": 4},
        {"block": 2048, "warps": 1},
        {"block": 2048, "warps": 8},
        {"block": 2048, "warps": 16},
        {"block": 256, "warps": 1, "loop": True},
        {"block": 1024, "warps": 4, "loop": True},
    ]
    tiles = [
        {"tile_m": 64, "tile_n": 64, "tile_k": 32, "warps": 4},
        {"tile_m": 16, "tile_n": 16, "tile_k": 32, "warps": 1},
        {"tile_m": 32, "tile_n": 32, "tile_k": 32, "warps": 2},
        {"tile_m": 128, "tile_n": 128, "tile_k": 32, "warps": 8},
        {"tile_m": 128, "tile_n": 64, "tile_k": 64, "warps": 4},
        {"tile_m": 64, "tile_n": 64, "tile_k": 32, "warps": 4, "stages": 1},
    ]
    return {
        "add": (
            add,
            (_random(1 << 23), _random(1 << 23)),
            [
                {"block": 1024, "warps": 4},
                {"block": 64, "warps": 1},
                {"block": 256, "warps": 1},
                {"block": 256, "warps": 8},
                {"block": 4096, "warps": 8},
                {"block": 16384, "warps": 4},
            ],
        ),
        "gelu": (
            gelu,
            (_random(1 << 23, dtype=wide),),
            [
                {"block": 1024, "warps": 4},
                {"block": 128, "warps": 4},
                {"block": 1024, "warps": 1},
                {"block": 512, "warps": 1, "steps": 16},
                {"block": 2048, "warps": 8, "steps": 4},
                {"block": 8192, "warps": 4},
            ],
        ),
        "swiglu": (
            swiglu,
            (_random(1 << 22, dtype=half), _random(1 << 22, dtype=half)),
            [
                {"block": 1024, "warps": 4},
                {"block": 1024, "warps": 4, "fused": False},
                {"block": 128, "warps": 2},
                {"block": 4096, "warps": 2},
                {"block": 256, "warps": 4, "fused": False},
                {"block": 2048, "warps": 8},
            ],
        ),
        "transpose": (
            transpose,
            (_random(2048, 2048),),
            [
                {"tile_m": 64, "tile_n": 64, "warps": 4},
                {"tile_m": 32, "tile_n": 32, "warps": 4},
                {"tile_m": 1, "tile_n": 1024, "warps": 4},
                {"tile_m": 16, "tile_n": 128, "warps": 4},
                {"tile_m": 128, "tile_n": 16, "warps": 4},
                {"tile_m": 4, "tile_n": 256, "warps": 4},
            ],
        ),
        "softmax": (softmax, (rows,), row_options),
        "layer_norm": (layer_norm, (rows, _random(2048)), row_options),
        "add_rms_norm": (
            add_rms_norm,
            (_random(4096, 2048, dtype=half), _random(4096, 2048, dtype=half), _random(2048)),
            [
                {"block": 2048, "warps": 4},
                {"block": 2048, "warps": 4, "fused": False},
                {"block": 2048, "warps": 1},
                {"block": 2048, "warps": 16},
                {"block": 4096, "warps": 4},
                {"block": 2048, "warps": 8, "fused": False},
            ],
        ),
        "row_sum": (
            row_sum,
            (_random(512, 16384),),
            [
                {"block": 1024, "warps": 4},
                {"block": 1024, "warps": 4, "parts": 4},
                {"block": 256, "warps": 1},
                {"block": 4096, "warps": 8},
                {"block": 256, "warps": 1, "parts": 64},
                {"block": 1024, "warps": 8, "parts": 16},
            ],
        ),
        "cross_entropy": (
            cross_entropy,
            (logits, target),
            [
                {"block": 2048, "warps": 4},
                {"block": 2048, "warps": 4, "online": False},
                {"block": 512, "warps": 1},
                {"block": 4096, "warps": 16},
                {"block": 512, "warps": 2, "online": False},
                {"block": 1024, "warps": 8},
            ],
        ),
        "matmul": (matmul, (a, b), tiles),
        "matmul_gelu": (
            matmul,
            (a[:1024].clone(), b),
            [
                {**tiles[0], "epilogue": "fused"},
                {**tiles[0], "epilogue": "apart"},
                {**tiles[2], "epilogue": "fused"},
                {**tiles[3], "epilogue": "fused"},
                {**tiles[4], "epilogue": "apart"},
                {**tiles[0], "tile_k": 64, "epilogue": "fused"},
            ],
        ),
        "attention": (
            attention,
            tuple(heads),
            [
                {"tile_m": 64, "tile_n": 64, "warps": 4},
                {"tile_m": 16, "tile_n": 16, "warps": 1},
                {"tile_m": 32, "tile_n": 32, "warps": 2},
                {"tile_m": 128, "tile_n": 64, "warps": 4},
                {"tile_m": 128, "tile_n": 32, "warps": 8},
                {"tile_m": 64, "tile_n": 64, "warps": 4, "stages": 2},
            ],
        ),
    }


# ---- timing
def measure(call: Callable[[], torch.Tensor], flush: torch.Tensor | None) -> float:
    """Seconds of a call: the median of cold ones, or one call where time is modelled."""
    seconds = []
    for _ in range(REPEATS if flush is not None else 1):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if flush is not None:
            flush.zero_()
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        seconds.append(start.elapsed_time(end) * 1e-3)
    return statistics.median(seconds)


def label(options: dict[str, Any]) -> str:
    """The options of a variant in one word."""
    return ",".join(f"{key}={value}" for key, value in options.items())


def run(once: bool, only: list[str]) -> list[dict[str, Any]]:
    """The pairs, with seconds of both sides and the logarithm of the speedup."""
    flush = None if once else torch.empty(FLUSH_BYTES, dtype=torch.int8, device=DEVICE)
    pairs = []
    for name, (function, inputs, variants) in problems().items():
        if only and name not in only:
            continue
        values = [value.to(DEVICE) for value in inputs]
        expected, base = None, 0.0
        for options in variants:
            call = functools.partial(function, *values, **options)
            try:
                result = call().float()
                seconds = measure(call, flush)
            except triton.runtime.errors.OutOfResources as error:
                print(f"# {name} {label(options)}: {error}")
                continue
            if expected is None:
                expected, base, first = result, seconds, label(options)
                continue
            torch.testing.assert_close(result, expected, rtol=2e-2, atol=2e-2)
            pairs.append(
                {
                    "problem": name,
                    "base": first,
                    "variant": label(options),
                    "base_seconds": base,
                    "seconds": seconds,
                    "log_speedup": math.log(base / seconds),
                }
            )
            print(f"# {name:14} {label(options):48} {base / seconds:6.2f}x", flush=True)
    return pairs


def main() -> None:
    """Times the pairs and writes them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", help="A file for the JSON; else it is the last line printed.")
    parser.add_argument("--once", action="store_true", help="One call, no flush: modelled time.")
    parser.add_argument("--only", nargs="*", default=[], help="Names of problems.")
    options = parser.parse_args()
    data = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "clock": "modelled" if options.once else "measured",
        "pairs": run(options.once, options.only),
    }
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1)
    else:
        print(json.dumps(data))


if __name__ == "__main__":
    main()

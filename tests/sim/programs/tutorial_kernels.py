"""Kernels of the kind that Triton's tutorials teach."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def counts(out):
    """Which program of how many, along three axes."""
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.store(out + at * 3, tl.num_programs(0))
    tl.store(out + at * 3 + 1, tl.num_programs(1))
    tl.store(out + at * 3 + 2, tl.num_programs(2))


@triton.jit
def persistent_softmax(x, out, rows, columns, stride, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    j = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        v = tl.load(x + row * stride + j, mask=j < columns, other=-float("inf")).to(tl.float32)
        e = tl.exp(v - tl.max(v, axis=0))
        y = e / tl.sum(e, axis=0)
        tl.store(out + row * stride + j, y.to(out.dtype.element_ty), mask=j < columns)


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def grouped_position(tile, tiles_m, tiles_n, GROUP: tl.constexpr):
    width = GROUP * tiles_n
    first = (tile // width) * GROUP
    size = min(tiles_m - first, GROUP)
    return first + (tile % width) % size, (tile % width) // size


@triton.jit
def product_tile(
    a, b, m, n, k, tile_m, tile_n, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr
):
    i = (tile_m * TM + tl.arange(0, TM)) % m
    j = (tile_n * TN + tl.arange(0, TN)) % n
    p = tl.arange(0, TK)
    total = tl.zeros((TM, TN), tl.float32)
    for step in range(tl.cdiv(k, TK)):
        q = step * TK + p
        x = tl.load(a + i[:, None] * k + q[None, :], mask=q[None, :] < k, other=0.0)
        y = tl.load(b + q[:, None] * n + j[None, :], mask=q[:, None] < k, other=0.0)
        total = tl.dot(x, y, total)
    return total


@triton.jit
def store_tile(out, value, m, n, tile_m, tile_n, TM: tl.constexpr, TN: tl.constexpr):
    i = tile_m * TM + tl.arange(0, TM)[:, None]
    j = tile_n * TN + tl.arange(0, TN)[None, :]
    tl.store(out + i * n + j, value.to(out.dtype.element_ty), mask=(i < m) & (j < n))


@triton.jit
def matmul(
    a, b, out, m, n, k, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr, GROUP: tl.constexpr
):
    tile_m, tile_n = grouped_position(tl.program_id(0), tl.cdiv(m, TM), tl.cdiv(n, TN), GROUP)
    total = product_tile(a, b, m, n, k, tile_m, tile_n, TM, TN, TK)
    store_tile(out, leaky_relu(total), m, n, tile_m, tile_n, TM, TN)


@triton.jit
def persistent_matmul(
    a, b, out, m, n, k, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr, GROUP: tl.constexpr
):
    tiles_m, tiles_n = tl.cdiv(m, TM), tl.cdiv(n, TN)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        tile_m, tile_n = grouped_position(tile, tiles_m, tiles_n, GROUP)
        total = product_tile(a, b, m, n, k, tile_m, tile_n, TM, TN, TK)
        store_tile(out, total, m, n, tile_m, tile_n, TM, TN)


@triton.jit
def split_matmul(
    a, b, out, m, n, k, SPLIT: tl.constexpr, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr
):
    i = tl.program_id(0) * TM + tl.arange(0, TM)
    j = tl.arange(0, TN)
    total = tl.zeros((TM, TN), tl.float32)
    for start in range(tl.program_id(1) * TK, k, SPLIT * TK):
        p = start + tl.arange(0, TK)
        total += tl.dot(
            tl.load(a + i[:, None] * k + p[None, :]), tl.load(b + p[:, None] * n + j[None, :])
        )
    tl.atomic_add(out + i[:, None] * n + j[None, :], total, sem="relaxed")


@triton.jit
def grouped_matmul(addresses, sizes, groups, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr):
    tile = tl.program_id(0)
    done = 0
    for group in range(groups):
        m = tl.load(sizes + group * 3)
        n = tl.load(sizes + group * 3 + 1)
        k = tl.load(sizes + group * 3 + 2)
        tiles_n = tl.cdiv(n, TN)
        tiles = tl.cdiv(m, TM) * tiles_n
        while tile >= done and tile < done + tiles:
            a = tl.load(addresses + group * 3).to(tl.pointer_type(tl.float16))
            b = tl.load(addresses + group * 3 + 1).to(tl.pointer_type(tl.float16))
            out = tl.load(addresses + group * 3 + 2).to(tl.pointer_type(tl.float16))
            tile_m, tile_n = (tile - done) // tiles_n, (tile - done) % tiles_n
            total = product_tile(a, b, m, n, k, tile_m, tile_n, TM, TN, TK)
            store_tile(out, total, m, n, tile_m, tile_n, TM, TN)
            tile += tl.num_programs(0)
        done += tiles


@triton.jit
def descriptor_matmul(a, b, out, m, n, k, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [TM, TK])
    right = tl.make_tensor_descriptor(b, [n, k], [k, 1], [TN, TK])
    result = tl.make_tensor_descriptor(out, [m, n], [n, 1], [TM, TN])
    i, j = tl.program_id(0) * TM, tl.program_id(1) * TN
    total = tl.zeros((TM, TN), tl.float32)
    for p in range(0, k, TK):
        total = tl.dot(left.load([i, p]), right.load([j, p]).T, total)
    result.store([i, j], total.to(tl.float16))


@triton.jit
def scaled_matmul(
    a, b, scale_a, scale_b, out, LEFT: tl.constexpr, RIGHT: tl.constexpr, PA: tl.constexpr,
    PB: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):  # fmt: skip
    i, j = tl.arange(0, M), tl.arange(0, N)
    g = tl.arange(0, K // 32)
    ka, kb = tl.arange(0, K // PA), tl.arange(0, K // PB)
    x = tl.load(a + i[:, None] * (K // PA) + ka[None, :])
    y = tl.load(b + kb[:, None] * N + j[None, :])
    sx = tl.load(scale_a + i[:, None] * (K // 32) + g[None, :])
    sy = tl.load(scale_b + j[:, None] * (K // 32) + g[None, :])
    r = tl.dot_scaled(x, sx, LEFT, y, sy, RIGHT)
    tl.store(out + i[:, None] * N + j[None, :], r)


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > p
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(keep, v / (1 - p), 0.0), mask=i < n)


@triton.jit
def random_words(out, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.randint(seed, i))


@triton.jit
def layer_norm(x, out, weight, bias, mean, scale, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        j = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * n + j, mask=j < n, other=0.0).to(tl.float32)
    centre = tl.sum(total, axis=0) / n
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        j = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + j, mask=j < n, other=0.0).to(tl.float32)
        v = tl.where(j < n, v - centre, 0.0)
        total += v * v
    inverse = tl.rsqrt(tl.sum(total, axis=0) / n + eps)
    tl.store(mean + row, centre)
    tl.store(scale + row, inverse)
    for start in range(0, n, BLOCK):
        j = start + tl.arange(0, BLOCK)
        w = tl.load(weight + j, mask=j < n)
        b = tl.load(bias + j, mask=j < n)
        v = tl.load(x + row * n + j, mask=j < n, other=0.0).to(tl.float32)
        y = (v - centre) * inverse * w + b
        tl.store(out + row * n + j, y.to(out.dtype.element_ty), mask=j < n)


@triton.jit
def layer_norm_backward(
    dx, dy, dw, db, x, weight, mean, scale, locks, n, GROUPS: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    mask = j < n
    v = tl.load(x + row * n + j, mask=mask, other=0.0)
    g = tl.load(dy + row * n + j, mask=mask, other=0.0)
    w = tl.load(weight + j, mask=mask, other=0.0)
    inverse = tl.load(scale + row)
    unit = tl.where(mask, (v - tl.load(mean + row)) * inverse, 0.0)
    inner = w * g
    c1 = tl.sum(unit * inner, axis=0) / n
    c2 = tl.sum(inner, axis=0) / n
    tl.store(dx + row * n + j, (inner - (unit * c1 + c2)) * inverse, mask=mask)
    group = row % GROUPS
    lock, filled = locks + group, locks + GROUPS + group
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    at = group * n + j
    first = tl.load(filled) == 0
    tl.debug_barrier()  # Triton before 3.9 sets none between the load and the exchange
    if first:
        tl.atomic_xchg(filled, 1)
        part_w, part_b = g * unit, g
    else:
        part_w = g * unit + tl.load(dw + at, mask=mask)
        part_b = g + tl.load(db + at, mask=mask)
    tl.store(dw + at, part_w, mask=mask)
    tl.store(db + at, part_b, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def attention(
    q, k, v, out, scale, n, D: tl.constexpr, TM: tl.constexpr, TN: tl.constexpr,
    CAUSAL: tl.constexpr
):  # fmt: skip
    i = tl.program_id(0) * TM + tl.arange(0, TM)
    d = tl.arange(0, D)
    base = tl.program_id(1) * n * D
    query = tl.load(q + base + i[:, None] * D + d[None, :])
    top = tl.full([TM], -float("inf"), tl.float32)
    norm = tl.zeros([TM], tl.float32)
    total = tl.zeros([TM, D], tl.float32)
    end = (tl.program_id(0) + 1) * TM if CAUSAL else n
    for start in range(0, end, TN):
        j = start + tl.arange(0, TN)
        key = tl.load(k + base + j[:, None] * D + d[None, :])
        score = tl.dot(query, tl.trans(key)) * (scale * 1.44269504)
        if CAUSAL:
            score = tl.where(i[:, None] >= j[None, :], score, -1.0e6)
        new = tl.maximum(top, tl.max(score, 1))
        p = tl.exp2(score - new[:, None])
        shrink = tl.exp2(top - new)
        norm = norm * shrink + tl.sum(p, 1)
        value = tl.load(v + base + j[:, None] * D + d[None, :])
        total = tl.dot(p.to(value.dtype), value, total * shrink[:, None])
        top = new
    tl.store(out + base + i[:, None] * D + d[None, :], (total / norm[:, None]).to(query.dtype))


@triton.jit
def asserted_copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.device_assert(i < n, "past the end")
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def inline_assembly(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    r = tl.inline_asm_elementwise(
        "v_mad_u32_u24 $0, $1, $2, 7",
        "=v,v,v",
        [tl.load(x + i), tl.load(y + i)],
        dtype=tl.int32,
        is_pure=True,
        pack=1,
    )
    tl.store(out + i, r)


@triton.jit
def merge_moments(mean_a, squares_a, count_a, mean_b, squares_b, count_b):
    delta = mean_b - mean_a
    count = count_a + count_b
    share = count_b / count
    squares = squares_a + squares_b + delta * delta * count_a * share
    return mean_a + delta * share, squares, count


@triton.jit
def moments(x, mean, variance, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    v = tl.load(x + row * BLOCK + tl.arange(0, BLOCK))
    first, squares, count = tl.reduce((v, v * 0, v * 0 + 1), 0, merge_moments)
    tl.store(mean + row, first)
    tl.store(variance + row, squares / count)


@triton.jit
def compose(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def recurrence(decay, x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    _, h = tl.associative_scan((tl.load(decay + i), tl.load(x + i)), 0, compose)
    tl.store(out + i, h)


@triton.jit
def cross_entropy(logits, labels, loss, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(labels + row)
    top = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        j = start + tl.arange(0, BLOCK)
        v = tl.load(logits + row * columns + j, mask=j < columns, other=-float("inf"))
        v = v.to(tl.float32)
        new = tl.maximum(top, tl.max(v, 0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(v - new), 0)
        top = new
    picked = tl.load(logits + row * columns + label).to(tl.float32)
    tl.store(loss + row, tl.where(label == 0, 0.0, top + tl.log(total) - picked))


@triton.jit
def rotary(x, cos, sin, out, HALF: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, HALF)
    pair = tl.load(x + row * 2 * HALF + tl.arange(0, 2 * HALF)).reshape(HALF, 2)
    a, b = tl.split(pair)
    c, s = tl.load(cos + row * HALF + j), tl.load(sin + row * HALF + j)
    y = tl.interleave(a * c - b * s, a * s + b * c)
    tl.store(out + row * 2 * HALF + tl.arange(0, 2 * HALF), y)


@triton.jit
def four_bit_matmul(x, packed, scales, out, N: tl.constexpr, K: tl.constexpr):
    i, j = tl.arange(0, 16), tl.arange(0, N)
    half = tl.arange(0, K // 2)
    words = tl.load(packed + half[:, None] * N + j[None, :])
    low = ((words & 15).to(tl.int8) - 8).to(tl.float16)
    high = ((words >> 4).to(tl.int8) - 8).to(tl.float16)
    weights = tl.reshape(tl.trans(tl.join(low, high), 0, 2, 1), (K, N))
    weights = weights * tl.load(scales + j)[None, :]
    rows = tl.load(x + i[:, None] * K + tl.arange(0, K)[None, :])
    tl.store(out + i[:, None] * N + j[None, :], tl.dot(rows, weights))


@triton.jit
def convolution(
    x, w, out, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, F: tl.constexpr, R: tl.constexpr
):
    f, c = tl.arange(0, F), tl.arange(0, C)
    row, column = tl.program_id(0), tl.arange(0, W)
    total = tl.zeros((W, F), tl.float32)
    for r in tl.static_range(R):
        for s in tl.static_range(R):
            y, z = row + r - R // 2, column + s - R // 2
            inside = (y >= 0) & (y < H) & (z >= 0) & (z < W)
            at = (y * W + z)[:, None] * C + c[None, :]
            pixels = tl.load(x + at, mask=inside[:, None], other=0.0)
            taps = tl.load(w + ((r * R + s) * C + c)[:, None] * F + f[None, :])
            total = tl.dot(pixels, taps, total)
    tl.store(out + (row * W + column)[:, None] * F + f[None, :], total)


@triton.jit
def collatz(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0)
    n = tl.load(x + at)
    steps = 0
    while n > 1:
        if n % 2 == 0:  # noqa: SIM108 - a branch is what is tested
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    tl.store(out + at, steps)

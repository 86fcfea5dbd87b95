"""A decoder layer in 13 launches: norms, products with an optional sum, rotations, attention."""

import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, weight_ptr, out_ptr, cols, x_row, eps, BLOCK: tl.constexpr):
    """Normalises one row, BLOCK elements at a time."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * x_row + at, mask=at < cols, other=0.0).to(tl.float32)
        squares += x * x
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        at = start + lane
        x = tl.load(x_ptr + row * x_row + at, mask=at < cols, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * cols + at, (x * scale * weight).to(tl.float16), mask=at < cols)


@triton.jit
def linear_kernel(
    x_ptr,
    w_ptr,
    sum_ptr,
    out_ptr,
    m,
    n,
    k,
    x_row,
    w_row,
    sum_row,
    ADD: tl.constexpr,
    TILE: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """Computes one TILE x TILE tile of `x @ w^T`, and adds the same tile of another matrix."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    deep_rows, deep_cols = rows[:, None].to(tl.int64), cols[None, :].to(tl.int64)
    inside = (rows[:, None] < m) & (cols[None, :] < n)
    total = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, k, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        x = tl.load(
            x_ptr + deep_rows * x_row + depth[None, :],
            mask=(rows[:, None] < m) & (depth[None, :] < k),
            other=0.0,
        )
        w = tl.load(
            w_ptr + depth[:, None] + deep_cols * w_row,
            mask=(depth[:, None] < k) & (cols[None, :] < n),
            other=0.0,
        )
        total = tl.dot(x, w, total)
    if ADD:
        added = tl.load(sum_ptr + deep_rows * sum_row + deep_cols, mask=inside, other=0.0)
        total += added.to(tl.float32)
    tl.store(out_ptr + deep_rows * n + deep_cols, total.to(tl.float16), mask=inside)


@triton.jit
def rotate_kernel(x_ptr, cos_ptr, sin_ptr, heads, half, cos_row, sin_row, BLOCK: tl.constexpr):
    """Rotates one head of one token in place."""
    token = (tl.program_id(0) // heads).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    inside = lane < half
    base = x_ptr + tl.program_id(0).to(tl.int64) * 2 * half
    cos = tl.load(cos_ptr + token * cos_row + lane, mask=inside, other=0.0)
    sin = tl.load(sin_ptr + token * sin_row + lane, mask=inside, other=0.0)
    a = tl.load(base + lane, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(base + half + lane, mask=inside, other=0.0).to(tl.float32)
    tl.store(base + lane, (a * cos - b * sin).to(tl.float16), mask=inside)
    tl.store(base + half + lane, (b * cos + a * sin).to(tl.float16), mask=inside)


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    tokens,
    heads,
    group,
    width,
    scale,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Attends BLOCK queries of one head to the keys up to them, with a running softmax."""
    head = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lane = tl.arange(0, WIDTH)[None, :]
    q_at = rows[:, None].to(tl.int64) * heads * width + head * width + lane
    q_inside = (rows[:, None] < tokens) & (lane < width)
    q = tl.load(q_ptr + q_at, mask=q_inside, other=0.0)
    top = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    out = tl.zeros([BLOCK, WIDTH], tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BLOCK, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        inside = (keys[:, None] < tokens) & (lane < width)
        at = keys[:, None].to(tl.int64) * (heads // group) * width + head // group * width + lane
        k = tl.load(k_ptr + at, mask=inside, other=0.0)
        v = tl.load(v_ptr + at, mask=inside, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(keys[None, :] <= rows[:, None], scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(weights, axis=1)
        out = tl.dot(weights.to(tl.float16), v, out * shrink[:, None])
        top = new_top
    tl.store(out_ptr + q_at, (out / total[:, None]).to(tl.float16), mask=q_inside)


@triton.jit
def swiglu_kernel(gate_ptr, up_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Computes BLOCK elements of `silu(gate) * up`."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + at, mask=at < count, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + at, mask=at < count, other=0.0).to(tl.float32)
    out = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out_ptr + at, out.to(tl.float16), mask=at < count)


def norm(x, weight, eps):
    """Normalises the rows of x, float16[tokens, hidden] with any row stride."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    norm_kernel[(x.shape[0],)](x, weight, out, x.shape[1], x.stride(0), eps, BLOCK=1024)
    return out


def linear(x, weight, added=None):
    """Returns `x @ weight^T`, plus a matrix of the result's shape."""
    (m, k), n, tile = x.shape, weight.shape[0], 32
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    other = x if added is None else added
    linear_kernel[(triton.cdiv(m, tile), triton.cdiv(n, tile))](
        x,
        weight,
        other,
        out,
        m,
        n,
        k,
        x.stride(0),
        weight.stride(0),
        other.stride(0),
        ADD=added is not None,
        TILE=tile,
        DEPTH=32,
    )
    return out


def rotate(x, cos, sin):
    """Rotates all heads of x, float16[tokens, heads * head_dim], in place."""
    half = cos.shape[1]
    heads = x.shape[1] // (2 * half)
    block = triton.next_power_of_2(half)
    grid = (x.shape[0] * heads,)
    rotate_kernel[grid](
        x, cos, sin, heads, half, cos.stride(0), sin.stride(0), BLOCK=block, num_warps=1
    )


def attend(q, k, v, width):
    """Returns causal attention of heads of `width`, float16[tokens, heads * width]."""
    tokens, block = q.shape[0], 32
    heads, group = q.shape[1] // width, q.shape[1] // k.shape[1]
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    attention_kernel[(triton.cdiv(tokens, block), heads)](
        q,
        k,
        v,
        out,
        tokens,
        heads,
        group,
        width,
        width**-0.5,
        WIDTH=triton.next_power_of_2(width),
        BLOCK=block,
        num_stages=1,
    )
    return out


def llama_decoder_layer(
    x,
    input_norm,
    q_proj,
    k_proj,
    v_proj,
    o_proj,
    post_norm,
    gate_proj,
    up_proj,
    down_proj,
    cos,
    sin,
    eps,
):
    """Runs the layer on x, float16[tokens, hidden]; all matrices may have any row stride."""
    a = norm(x, input_norm, eps)
    q, k, v = linear(a, q_proj), linear(a, k_proj), linear(a, v_proj)
    rotate(q, cos, sin)
    rotate(k, cos, sin)
    h = linear(attend(q, k, v, 2 * cos.shape[1]), o_proj, x)
    m = norm(h, post_norm, eps)
    gate, up = linear(m, gate_proj), linear(m, up_proj)
    inner = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    count = gate.numel()
    swiglu_kernel[(triton.cdiv(count, 1024),)](gate, up, inner, count, BLOCK=1024)
    return linear(inner, down_proj, h)

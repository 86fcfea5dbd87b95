"""RWKV-7 time mixing: one program some rows of one head's state, step by step."""

import torch
import triton
import triton.language as tl


@triton.jit
def rwkv7_kernel(
    r_ptr,
    w_ptr,
    k_ptr,
    v_ptr,
    a_ptr,
    b_ptr,
    out_ptr,
    r_row,
    w_row,
    k_row,
    v_row,
    a_row,
    b_row,
    heads,
    seq,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Keeps ROWS x WIDTH of the state in registers."""
    batch = (tl.program_id(0) // heads).to(tl.int64)
    head = tl.program_id(0) % heads
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, WIDTH)
    state = tl.zeros([ROWS, WIDTH], tl.float32)
    for t in range(0, seq):
        at = (batch * seq + t) * heads + head
        r = tl.load(r_ptr + at * r_row + col).to(tl.float32)
        w = tl.load(w_ptr + at * w_row + col)
        k = tl.load(k_ptr + at * k_row + col).to(tl.float32)
        a = tl.load(a_ptr + at * a_row + col).to(tl.float32)
        b = tl.load(b_ptr + at * b_row + col).to(tl.float32)
        v = tl.load(v_ptr + at * v_row + row).to(tl.float32)
        held = tl.sum(state * a[None, :], axis=1)
        state = state * w[None, :] + held[:, None] * b[None, :] + v[:, None] * k[None, :]
        out = tl.sum(state * r[None, :], axis=1)
        tl.store(out_ptr + at * WIDTH + row, out.to(tl.float16))


def rwkv7_recurrence(
    r: torch.Tensor,
    w: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
) -> torch.Tensor:
    """Reads of r, float16[batch, seq, heads, 64]; rows of all tensors may be padded."""
    batch, seq, heads, width = r.shape
    out = torch.empty((batch, seq, heads, width), dtype=r.dtype, device=r.device)
    rows = [tensor.stride(2) for tensor in (r, w, k, v, a, b)]
    rwkv7_kernel[(batch * heads, 4)](
        r, w, k, v, a, b, out, *rows, heads, seq, ROWS=16, WIDTH=64, num_warps=1
    )
    return out

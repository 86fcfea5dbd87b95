"""LoRA for many adapters: one program a token, first down to the rank, then back up."""

import torch
import triton
import triton.language as tl


@triton.jit
def lora_kernel(
    x_ptr,
    a_ptr,
    b_ptr,
    scale_ptr,
    adapter_ptr,
    base_ptr,
    out_ptr,
    width,
    out_width,
    rank,
    x_row,
    a_adapter,
    a_row,
    b_adapter,
    b_row,
    base_row,
    RANK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Reads the token's adapter twice over: a by rows, then b by rows."""
    token = tl.program_id(0).to(tl.int64)
    adapter = tl.load(adapter_ptr + token).to(tl.int64)
    some = adapter >= 0
    lane = tl.arange(0, BLOCK)
    ranks = tl.arange(0, RANK)
    a_base = a_ptr + adapter * a_adapter
    b_base = b_ptr + adapter * b_adapter

    low = tl.zeros([RANK], tl.float32)
    for start in range(0, width, BLOCK):
        at = start + lane
        inside = (at < width) & some
        x = tl.load(x_ptr + token * x_row + at, mask=inside, other=0.0).to(tl.float32)
        a = tl.load(
            a_base + at[:, None] * a_row + ranks[None, :],
            mask=inside[:, None] & (ranks[None, :] < rank),
            other=0.0,
        ).to(tl.float32)
        low += tl.sum(x[:, None] * a, axis=0)
    low *= tl.load(scale_ptr + adapter, mask=some, other=0.0)

    for start in range(0, out_width, BLOCK):
        at = start + lane
        inside = at < out_width
        b = tl.load(
            b_base + ranks[:, None] * b_row + at[None, :],
            mask=(ranks[:, None] < rank) & inside[None, :] & some,
            other=0.0,
        ).to(tl.float32)
        base = tl.load(base_ptr + token * base_row + at, mask=inside, other=0.0).to(tl.float32)
        out = base + tl.sum(low[:, None] * b, axis=0)
        tl.store(out_ptr + token * out_width + at, out.to(tl.float16), mask=inside)


def lora_shrink_expand(
    x: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    scale: torch.Tensor,
    adapter: torch.Tensor,
    base: torch.Tensor,
) -> torch.Tensor:
    """Base + scale * (x @ a) @ b by each token's adapter; any outer strides."""
    tokens, width = x.shape
    rank, out_width = b.shape[1:]
    out = torch.empty((tokens, out_width), dtype=x.dtype, device=x.device)
    lora_kernel[(tokens,)](
        x,
        a,
        b,
        scale,
        adapter,
        base,
        out,
        width,
        out_width,
        rank,
        x.stride(0),
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        base.stride(0),
        RANK=triton.next_power_of_2(rank),
        BLOCK=64,
        num_warps=2,
    )
    return out

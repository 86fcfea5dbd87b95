"""Merge of partial attention: one program a head, all parts at once."""

import torch
import triton
import triton.language as tl


@triton.jit
def merge_kernel(
    part_ptr,
    lse_ptr,
    out_ptr,
    total_ptr,
    part_row,
    lse_row,
    splits,
    width,
    SPLITS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Merges the parts of one head."""
    head = tl.program_id(0).to(tl.int64)
    s = tl.arange(0, SPLITS)
    at = tl.arange(0, WIDTH)
    lse = tl.load(lse_ptr + head * lse_row + s, mask=s < splits, other=float("-inf"))
    top = tl.max(lse, axis=0)
    weights = tl.exp(lse - top)
    total = tl.sum(weights, axis=0)
    inside = (s[:, None] < splits) & (at[None, :] < width)
    rows = head * splits + s[:, None]
    part = tl.load(part_ptr + rows * part_row + at[None, :], mask=inside, other=0.0)
    out = tl.sum(part * weights[:, None], axis=0) / total
    tl.store(out_ptr + head * width + at, out.to(tl.float16), mask=at < width)
    tl.store(total_ptr + head, top + tl.log(total))


def split_kv_merge(part: torch.Tensor, lse: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Merges float32[batch, heads, splits, head_dim], whose rows may be padded."""
    batch, heads, splits, width = part.shape
    out = torch.empty((batch, heads, width), dtype=torch.float16, device=part.device)
    total = torch.empty((batch, heads), dtype=torch.float32, device=part.device)
    merge_kernel[(batch * heads,)](
        part,
        lse,
        out,
        total,
        part.stride(2),
        lse.stride(1),
        splits,
        width,
        SPLITS=triton.next_power_of_2(splits),
        WIDTH=triton.next_power_of_2(width),
    )
    return out, total

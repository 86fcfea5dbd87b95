"""Cache write: one program a token copies its key and value head by head."""

import torch
import triton
import triton.language as tl


@triton.jit
def write_kernel(
    k_ptr,
    v_ptr,
    slot_ptr,
    k_cache_ptr,
    v_cache_ptr,
    k_row,
    v_row,
    k_cache_row,
    v_cache_row,
    heads,
    width,
    BLOCK: tl.constexpr,
):
    """Copies one head of one token, unless its slot is -1."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    at = tl.arange(0, BLOCK)
    slot = tl.load(slot_ptr + token)
    inside = (at < width) & (slot >= 0)
    source = token * heads + head
    target = slot * heads + head
    k = tl.load(k_ptr + source * k_row + at, mask=inside)
    v = tl.load(v_ptr + source * v_row + at, mask=inside)
    tl.store(k_cache_ptr + target * k_cache_row + at, k, mask=inside)
    tl.store(v_cache_ptr + target * v_cache_row + at, v, mask=inside)


def kv_cache_write(
    k: torch.Tensor,
    v: torch.Tensor,
    slot: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Writes k and v, float16[tokens, heads, head_dim]; rows of all tensors may be padded."""
    tokens, heads, width = k.shape
    write_kernel[(tokens, heads)](
        k,
        v,
        slot,
        k_cache,
        v_cache,
        k.stride(1),
        v.stride(1),
        k_cache.stride(2),
        v_cache.stride(2),
        heads,
        width,
        BLOCK=triton.next_power_of_2(width),
        num_warps=1,
    )
    return k_cache, v_cache

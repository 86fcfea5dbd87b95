"""Quantised cache store: one program a head of a token, first its key and then its value."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def store_quantised(x_ptr, cache_ptr, scale_ptr, source, target, width, BLOCK: tl.constexpr):
    """Quantises the `width` elements at `source` and stores them as row `target`."""
    at = tl.arange(0, BLOCK)
    inside = at < width
    x = tl.load(x_ptr + source + at, mask=inside, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-8) / 127.0
    tl.store(
        cache_ptr + target * width + at, libdevice.nearbyint(x / scale).to(tl.int8), mask=inside
    )
    tl.store(scale_ptr + target, scale)


@triton.jit
def kv_cache_store_kernel(
    k_ptr,
    v_ptr,
    slot_ptr,
    k_cache_ptr,
    v_cache_ptr,
    k_scale_ptr,
    v_scale_ptr,
    k_token,
    k_head,
    v_token,
    v_head,
    heads,
    width,
    BLOCK: tl.constexpr,
):
    """Stores one head of one token."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    target = tl.load(slot_ptr + token) * heads + head
    k_at = token * k_token + head * k_head
    v_at = token * v_token + head * v_head
    store_quantised(k_ptr, k_cache_ptr, k_scale_ptr, k_at, target, width, BLOCK)
    store_quantised(v_ptr, v_cache_ptr, v_scale_ptr, v_at, target, width, BLOCK)


def kv_cache_store_quant(
    k: torch.Tensor, v: torch.Tensor, slot: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Caches and scales of k and v, float16[tokens, heads, head_dim] with any outer strides."""
    tokens, heads, width = k.shape
    k_cache = torch.empty((tokens, heads, width), dtype=torch.int8, device=k.device)
    v_cache = torch.empty((tokens, heads, width), dtype=torch.int8, device=k.device)
    k_scale = torch.empty((tokens, heads), dtype=torch.float32, device=k.device)
    v_scale = torch.empty((tokens, heads), dtype=torch.float32, device=k.device)
    kv_cache_store_kernel[(tokens, heads)](
        k,
        v,
        slot,
        k_cache,
        v_cache,
        k_scale,
        v_scale,
        *k.stride()[:2],
        *v.stride()[:2],
        heads,
        width,
        BLOCK=256,
        num_warps=1,
    )
    return k_cache, v_cache, k_scale, v_scale

"""Decides which calls of PyTorch's attention have a fused kernel on an AMD GPU.

PyTorch tries the flash kernel, then the memory-efficient kernel. If neither accepts a call, PyTorch
computes products and a softmax, with all scores in memory and 16-bit inputs converted to float32.
It does the same for meta tensors. Source: `can_use_flash_attention` and
`can_use_mem_efficient_attention` in PyTorch's `sdp_utils.cpp`, as compiled for ROCm.
"""

from __future__ import annotations

import torch

_LARGEST_HEAD = 512  # of AOTriton 0.9 and later
_HALF = (torch.float16, torch.bfloat16)


def attention_work(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **_: object,
) -> tuple[int, int]:
    """Returns the bytes that a fused kernel moves and its FLOPs, those of two products.

    A causal kernel leaves out the half of its FLOPs. Arguments are those of `has_fused_attention`;
    the result has the form of the query, but the width of the value.
    """
    rows = query.numel() // query.shape[-1]
    given = [t for t in (query, key, value, attn_mask) if t is not None]
    moved = sum(t.numel() * t.itemsize for t in given) + rows * value.shape[-1] * query.itemsize
    flops = 2 * rows * key.shape[-2] * (query.shape[-1] + value.shape[-1])
    return moved, flops // 2 if is_causal else flops


def has_fused_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **_: object,
) -> bool:
    """Whether a fused kernel takes a call of `scaled_dot_product_attention`.

    Args:
        query: [batch, heads, queries, width]. With another number of dimensions no kernel takes it.
        key: [batch, key heads, keys, width].
        value: [batch, key heads, keys, value width].
        attn_mask: bool, or a bias.
        dropout_p: Both kernels have it.
        is_causal: The flash kernel has it for as many queries as keys.
    """
    if query.ndim != 4 or not query.shape[-1] == key.shape[-1] == value.shape[-1] <= _LARGEST_HEAD:
        return False
    square = query.shape[-2] == key.shape[-2]
    if attn_mask is None and query.dtype in _HALF and (square or not is_causal):
        return True
    return (
        query.shape[1] == key.shape[1]
        and query.dtype in (*_HALF, torch.float32)
        and (attn_mask is None or attn_mask.dtype in (torch.bool, query.dtype))
        and query.shape[-1] % (8 if query.dtype in _HALF else 4) == 0
    )

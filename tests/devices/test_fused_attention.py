"""Which attention PyTorch fuses on a GPU of AMD, by the conditions of its source."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from kernel_gym.devices.fused_attention import has_fused_attention
from kernel_gym.hardware import MI300X
from kernel_gym.judge.timing.torch_model import reference_seconds


def tensors(heads=4, key_heads=4, queries=16, keys=16, width=64, value=None, dtype=torch.float16):
    empty = torch.empty((0,), dtype=dtype, device="meta")
    return (
        empty.new_empty(2, heads, queries, width),
        empty.new_empty(2, key_heads, keys, width),
        empty.new_empty(2, key_heads, keys, value or width),
    )


MASK = torch.empty((2, 1, 1, 16), dtype=torch.bool, device="meta")


@pytest.mark.parametrize(
    ("given", "more", "fused"),
    [
        ({}, {}, True),
        ({"key_heads": 1}, {"enable_gqa": True}, True),
        ({}, {"attn_mask": MASK}, True),
        ({"key_heads": 1}, {"attn_mask": MASK, "enable_gqa": True}, False),
        ({"dtype": torch.float32}, {}, True),
        ({"dtype": torch.float32, "key_heads": 1}, {"enable_gqa": True}, False),
        ({"dtype": torch.float64}, {}, False),
        ({"width": 576, "value": 512}, {}, False),
        ({"width": 576}, {}, False),
        ({"width": 512}, {}, True),
        ({"queries": 8}, {"is_causal": True}, True),
        ({"queries": 8, "key_heads": 1}, {"is_causal": True, "enable_gqa": True}, False),
        ({}, {"attn_mask": MASK.to(torch.float32)}, False),
        ({}, {"attn_mask": MASK.half()}, True),
        ({"width": 36}, {"attn_mask": MASK}, False),
    ],
)
def test_what_neither_kernel_takes_is_not_fused(given, more, fused):
    assert has_fused_attention(*tensors(**given), **more) is fused


def test_three_dimensions_are_not_fused():
    query, key, value = (t[0] for t in tensors())
    assert not has_fused_attention(query, key, value)


class _Grouped:
    @staticmethod
    def reference(q, k, v, mask):
        return (functional.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True),)


def test_attention_that_is_not_fused_is_charged_by_its_products():
    def seconds(key_heads):
        query, key, value = tensors(key_heads=key_heads)
        inputs = {"q": query, "k": key, "v": value, "mask": MASK}
        return reference_seconds(_Grouped, inputs, MI300X)

    assert seconds(key_heads=4) < 2 * MI300X.shortest_kernel_seconds
    # a mask as numbers (3), three inputs in float32, two scaled and two repeated ones, two
    # products, their sum with the mask, a softmax, and both results in float16
    assert seconds(key_heads=1) > 14 * MI300X.shortest_kernel_seconds

"""Decoder layers are rewritten only where a sum, a copy and a norm follow each other."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernel_gym.packages.models.rewrite import fused_forward


class Layer(nn.Module):
    """A layer with one place to fuse."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.mix = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, scale: float = 2.0, **kwargs: object) -> torch.Tensor:
        """Mixes and normalises."""
        residual = x
        x = self.mix(x) * scale
        x = residual + x
        residual = x
        x = self.norm(x)
        return residual + x


class Other(Layer):
    """The residual is not the sum."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalises a sum."""
        residual = x
        x = residual + self.mix(x)
        x = self.norm(x)
        return residual + x


def test_a_sum_and_its_norm_become_one_call():
    calls = []

    def step(norm, x, residual):
        calls.append(norm)
        return norm(x + residual), x + residual

    forward, names = fused_forward(Layer, step)
    layer, x = Layer(), torch.randn(3, 4)
    assert names == ("norm",)
    assert torch.equal(forward(layer, x, scale=3.0, more=1), layer(x, scale=3.0))
    assert calls == [layer.norm]


def test_another_order_is_refused():
    with pytest.raises(LookupError, match="no residual sum"):
        fused_forward(Other, print)
    with pytest.raises(LookupError, match="no source"):
        fused_forward(type("Made", (Other,), {"forward": abs}), print)

"""Activations of AgentKernelArena's `torch2flydsl` tasks in FlyDSL 0.5: a thread makes one element.

The arena's tasks have a stub in this place. The names are those that their harness calls. The input
is bfloat16[rows, cols]; a gated one has its gate in the first half of a row.
"""

from __future__ import annotations

from collections.abc import Callable

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

BLOCK = 256
ALPHA, LIMIT = 1.702, 7.0
"""The slope of the SwiGLU of gpt-oss, and the bound of its gate and of its linear part."""
ROOT_2_OVER_PI, CUBIC, ROOT_HALF = 0.7978845608028654, 0.044715, 0.7071067811865476


def _sigmoid(x):
    return 1.0 / (1.0 + fx.math.exp(-x))


def _exact_gelu(gate, up):
    return 0.5 * gate * (1.0 + fx.math.erf(gate * ROOT_HALF)) * up


def _tanh_gelu(gate, up):
    return gate * _sigmoid(2.0 * ROOT_2_OVER_PI * (gate + CUBIC * gate * gate * gate)) * up


def _silu(gate, up):
    return gate * _sigmoid(gate) * up


def _swiglu(gate, up):
    bounded = (gate < LIMIT).select(gate, fx.Float32(LIMIT))
    linear = (up < LIMIT).select(up, fx.Float32(LIMIT))
    linear = (linear > -LIMIT).select(linear, fx.Float32(-LIMIT))
    return bounded * _sigmoid(ALPHA * bounded) * (linear + 1.0)


def _activation(function: Callable, is_gated: bool = True) -> Callable[..., torch.Tensor]:
    """Returns the activation of bfloat16[rows, cols]; a gated one has half as many columns."""

    @flyc.kernel
    def activation_kernel(x: fx.Tensor, out: fx.Tensor) -> None:
        _, cols = out.shape.unpack()
        row, col = fx.block_idx.x, fx.block_idx.y * BLOCK + fx.thread_idx.x
        if col < cols:
            gate = x[row, col].to(fx.Float32)
            up = fx.Float32(1.0)
            if fx.const_expr(is_gated):
                up = x[row, col + cols].to(fx.Float32)
            out[row, col] = function(gate, up).to(fx.BFloat16)

    @flyc.jit
    def launch(x: fx.Tensor, out: fx.Tensor) -> None:
        rows, cols = out.shape.unpack()
        activation_kernel(x, out).launch(grid=(rows, fx.ceildiv(cols, BLOCK)), block=(BLOCK,))

    def call(x: torch.Tensor, limit: float = 0.0) -> torch.Tensor:
        if limit:
            raise NotImplementedError(f"limit: found {limit}, expected 0")
        rows, cols = x.shape
        out = torch.empty((rows, cols // 2 if is_gated else cols), dtype=x.dtype, device=x.device)
        launch(x, out)
        return out

    return call


flydsl_gelu_and_mul = _activation(_exact_gelu)
flydsl_gelu_tanh_and_mul = _activation(_tanh_gelu)
flydsl_gelu_fast = _activation(_tanh_gelu, is_gated=False)
flydsl_silu_and_mul = _activation(_silu)
flydsl_swiglu_and_mul = _activation(_swiglu)

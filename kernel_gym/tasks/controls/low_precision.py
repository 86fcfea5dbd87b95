"""Sums as a kernel would give them that accumulates in 16 bits.

The oracle runs in fp64 under a dispatch mode that replaces sums and matrix products: terms are
added up in blocks, and the running total is rounded to float16 or bfloat16 after each. Everything
else stays exact, so that the difference is the accumulator's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_gym.tasks.problem import Problem, Value

FEWEST_TERMS = 64
"""Shorter sums are not held against a kernel: rounding them this way stays within tolerance."""
MOST_STEPS = 512
"""Roundings of one sum at most; longer ones are added up in larger blocks."""

_aten = torch.ops.aten


def accumulated_coarsely(
    problem: Problem, inputs: Mapping[str, Value]
) -> tuple[torch.Tensor, ...] | None:
    """The oracle's answer with low-precision sums, in the dtypes of the outputs.

    Returns:
        None where no sum has as many as `FEWEST_TERMS` terms.
    """
    floating = [o.dtype for o in problem.outputs if o.dtype.is_floating_point]
    coarse = torch.float16 if torch.float16 in floating else torch.bfloat16
    with _CoarseSums(coarse) as mode:
        found = problem.oracle(**inputs)
    if mode.longest < FEWEST_TERMS:
        return None
    pairs = zip(found, problem.outputs, strict=True)
    return tuple(out.to(output.dtype).contiguous() for out, output in pairs)


class _CoarseSums(TorchDispatchMode):
    """Rounds the running total of every long sum; notes the longest."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.longest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Replaces sums; takes composite operators apart first, as far as they hold sums."""
        kwargs = kwargs or {}
        if not _on_floats(args):
            return func(*args, **kwargs)
        replacement = _SUMS.get(func)
        if replacement is not None:
            return replacement(self, *args, **kwargs)
        if func.overloadpacket in COMPOSITE:
            with self:
                return decomposition_table[func](*args, **kwargs)
        return func(*args, **kwargs)

    def total(
        self, terms: int, part: Callable[[int, int], torch.Tensor], *dense: int
    ) -> torch.Tensor:
        """Adds up `part(start, stop)` over the terms, rounding as it goes.

        `dense` are most terms of any sum that are not zero, by operand.
        """
        longest = min((terms, *dense))
        self.longest = max(self.longest, longest)
        if longest < FEWEST_TERMS:
            return part(0, terms)
        step = -(-terms // MOST_STEPS)
        running = self.rounded(part(0, step))
        for start in range(step, terms, step):
            running = self.rounded(running + part(start, min(start + step, terms)))
        return running

    def rounded(self, value: torch.Tensor) -> torch.Tensor:
        """To the nearest value of the coarse type, still in its own type."""
        return value.to(self.dtype).to(value.dtype)


def _most(x: torch.Tensor, dim: int) -> int:
    """Most elements along a dimension that are not zero."""
    return int(x.count_nonzero(dim).max()) if x.numel() else 0


def _on_floats(args: Any) -> bool:
    return any(isinstance(a, torch.Tensor) and a.is_floating_point() for a in args)


def _sum(
    mode: _CoarseSums, x: torch.Tensor, dim: Any = None, keepdim: bool = False, **_: Any
) -> torch.Tensor:
    dims = [d % x.dim() for d in ([dim] if isinstance(dim, int) else dim or range(x.dim()))]
    kept = [d for d in range(x.dim()) if d not in dims]
    flat = x.permute(*kept, *dims).reshape(*(x.shape[d] for d in kept), -1)
    out = mode.total(flat.shape[-1], lambda a, b: flat[..., a:b].sum(-1), _most(flat, -1))
    return out.reshape([1 if d in dims else n for d, n in enumerate(x.shape)]) if keepdim else out


def _mean(
    mode: _CoarseSums, x: torch.Tensor, dim: Any = None, keepdim: bool = False, **_: Any
) -> torch.Tensor:
    total = _sum(mode, x, dim, keepdim)
    return total * (max(total.numel(), 1) / max(x.numel(), 1))


def _mm(mode: _CoarseSums, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    dense = _most(a, -1), _most(b, -2)
    return mode.total(a.shape[-1], lambda i, j: a[..., i:j] @ b[..., i:j, :], *dense)


def _addmm(
    mode: _CoarseSums, c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, **kwargs: Any
) -> torch.Tensor:
    return kwargs.get("beta", 1) * c + kwargs.get("alpha", 1) * _mm(mode, a, b)


def _mv(mode: _CoarseSums, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _mm(mode, a, b[:, None])[:, 0]


def _dot(mode: _CoarseSums, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return mode.total(a.numel(), lambda i, j: a[i:j] @ b[i:j])


def _cumsum(mode: _CoarseSums, x: torch.Tensor, dim: int, **_: Any) -> torch.Tensor:
    """Prefix sums, the carry rounded from block to block."""
    terms = x.shape[dim] if x.dim() else 1
    mode.longest = max(mode.longest, terms)
    if terms < FEWEST_TERMS:
        return x.cumsum(dim)
    blocks = x.split(-(-terms // MOST_STEPS), dim)
    carry = torch.zeros_like(blocks[0].narrow(dim, 0, 1))
    parts = []
    for block in blocks:
        parts.append(mode.rounded(carry + block.cumsum(dim)))
        carry = parts[-1].narrow(dim, parts[-1].shape[dim] - 1, 1)
    return torch.cat(parts, dim)


def _convolution(mode: _CoarseSums, x: Any, weight: Any, bias: Any, *rest: Any) -> torch.Tensor:
    """A sum over input channels; grouped ones have few and are left alone."""
    groups = rest[-1]
    if groups != 1:
        return _aten.convolution.default(x, weight, bias, *rest)
    taps = weight[0, 0].numel()
    step = max(1, FEWEST_TERMS // 4 // taps)  # several roundings, also where channels are few

    def part(start: int, stop: int) -> torch.Tensor:
        a, b = start * step, stop * step
        return _aten.convolution.default(x[:, a:b], weight[:, a:b], None, *rest)

    mode.longest = max(mode.longest, weight.shape[1] * taps)
    out = part(0, 1)
    for start in range(1, -(-weight.shape[1] // step)):
        out = mode.rounded(out + part(start, start + 1))
    return out if bias is None else out + bias.reshape(-1, *[1] * (out.dim() - 2))


_SUMS: Mapping[Any, Callable[..., torch.Tensor]] = {
    _aten.sum.default: _sum,
    _aten.sum.dim_IntList: _sum,
    _aten.mean.default: _mean,
    _aten.mean.dim: _mean,
    _aten.mm.default: _mm,
    _aten.bmm.default: _mm,
    _aten.addmm.default: _addmm,
    _aten.baddbmm.default: _addmm,
    _aten.mv.default: _mv,
    _aten.dot.default: _dot,
    _aten.cumsum.default: _cumsum,
    _aten.convolution.default: _convolution,
}
COMPOSITE = frozenset(
    {
        _aten._softmax,
        _aten._log_softmax,
        _aten.logsumexp,
        _aten.native_layer_norm,
        _aten.native_group_norm,
        _aten.var,
        _aten.std,
        _aten.var_mean,
        _aten.linalg_vector_norm,
    }
)
"""Operators that add up inside; PyTorch's decompositions spell their sums out."""

"""The answer of a kernel that accumulates sums in 16 bits.

The oracle runs in fp64 under a dispatch mode that replaces sums and matrix products. Terms are
added in blocks, and the running total is rounded to float16 or bfloat16 after each block.
Everything else stays exact, so the accumulator alone causes the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._ops import OpOverload

from kernel_gym.tasks.operator_mode import OperatorMode
from kernel_gym.tasks.problem import Problem, Value

MIN_TERMS = 64
"""Shorter sums are not changed, because rounding them this way stays within tolerance."""
MAX_ROUNDINGS = 512
"""Most roundings of one sum. Longer sums are added in larger blocks."""

_aten = torch.ops.aten


def accumulated_coarsely(
    problem: Problem, inputs: Mapping[str, Value]
) -> tuple[torch.Tensor, ...] | None:
    """Returns the oracle's answer with low-precision sums, in the dtypes of the outputs.

    Returns:
        None if no sum has at least `MIN_TERMS` terms.
    """
    floating = [o.dtype for o in problem.outputs if o.dtype.is_floating_point]
    coarse = torch.float16 if torch.float16 in floating else torch.bfloat16
    with _CoarseSums(coarse) as mode:
        answer = problem.oracle(**inputs)
    if mode.longest < MIN_TERMS:
        return None
    pairs = zip(answer, problem.outputs, strict=True)
    return tuple(out.to(output.dtype).contiguous() for out, output in pairs)


class _CoarseSums(OperatorMode):
    """Rounds the running total of every long sum, and records the longest sum."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.longest = 0

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Replaces sums. Composite operators that contain sums are decomposed first."""
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
        """Adds `part(start, stop)` over all terms, with a rounding after each step.

        `dense` holds, for each operand, the most nonzero terms of any sum.
        """
        longest = min((terms, *dense))
        self.longest = max(self.longest, longest)
        if longest < MIN_TERMS:
            return part(0, terms)
        step = -(-terms // MAX_ROUNDINGS)
        running = self.rounded(part(0, step))
        for start in range(step, terms, step):
            running = self.rounded(running + part(start, min(start + step, terms)))
        return running

    def rounded(self, value: torch.Tensor) -> torch.Tensor:
        """Rounds to the coarse type. The dtype of the tensor does not change."""
        return value.to(self.dtype).to(value.dtype)


def _most(x: torch.Tensor, dim: int) -> int:
    """Returns the most nonzero elements along a dimension."""
    return int(x.count_nonzero(dim).max()) if x.numel() else 0


def _on_floats(args: Any) -> bool:
    return any(isinstance(a, torch.Tensor) and a.is_floating_point() for a in args)


def _sum(
    mode: _CoarseSums, x: torch.Tensor, dim: Any = None, keepdim: bool = False, **_: object
) -> torch.Tensor:
    dims = [d % x.dim() for d in ([dim] if isinstance(dim, int) else dim or range(x.dim()))]
    kept = [d for d in range(x.dim()) if d not in dims]
    flat = x.permute(*kept, *dims).reshape(*(x.shape[d] for d in kept), -1)
    out = mode.total(flat.shape[-1], lambda a, b: flat[..., a:b].sum(-1), _most(flat, -1))
    return out.reshape([1 if d in dims else n for d, n in enumerate(x.shape)]) if keepdim else out


def _mean(
    mode: _CoarseSums, x: torch.Tensor, dim: object = None, keepdim: bool = False, **_: object
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


def _cumsum(mode: _CoarseSums, x: torch.Tensor, dim: int, **_: object) -> torch.Tensor:
    """Computes prefix sums with a carry that is rounded after each block."""
    terms = x.shape[dim] if x.dim() else 1
    mode.longest = max(mode.longest, terms)
    if terms < MIN_TERMS:
        return x.cumsum(dim)
    blocks = x.split(-(-terms // MAX_ROUNDINGS), dim)
    carry = torch.zeros_like(blocks[0].narrow(dim, 0, 1))
    parts = []
    for block in blocks:
        parts.append(mode.rounded(carry + block.cumsum(dim)))
        carry = parts[-1].narrow(dim, parts[-1].shape[dim] - 1, 1)
    return torch.cat(parts, dim)


def _convolution(mode: _CoarseSums, x: Any, weight: Any, bias: Any, *rest: Any) -> torch.Tensor:
    """Adds over input channels. Grouped convolutions have few, and transposed ones are not changed.

    The first axis of the weight of a transposed convolution is that of the input channels.
    """
    transposed, groups = rest[-3], rest[-1]
    if groups != 1 or transposed:
        return _aten.convolution.default(x, weight, bias, *rest)
    taps = weight[0, 0].numel()
    step = max(1, MIN_TERMS // 4 // taps)  # several roundings, also with few channels

    def part(start: int, stop: int) -> torch.Tensor:
        a, b = start * step, stop * step
        return _aten.convolution.default(x[:, a:b], weight[:, a:b], None, *rest)

    mode.longest = max(mode.longest, weight.shape[1] * taps)
    out = part(0, 1)
    for start in range(1, -(-weight.shape[1] // step)):
        out = mode.rounded(out + part(start, start + 1))
    return out if bias is None else out + bias.reshape(-1, *[1] * (out.dim() - 2))


_SUMS: Mapping[object, Callable[..., torch.Tensor]] = {
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
"""Operators with internal sums. PyTorch's decompositions make these sums explicit."""

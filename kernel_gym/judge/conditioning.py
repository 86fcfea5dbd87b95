"""Conditioning: a problem must not amplify rounding errors of float32.

Each kernel adds in its own order. Some problems turn the last bits of intermediate values into
leading digits of the answer, such as a layer norm of nearly constant rows. In such problems a right
kernel can fail, and chance decides whether PyTorch's own order passes. The check runs the reference
again with each float32 result changed by one unit in the last place, up or down at random, as in
stochastic arithmetic (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2002, section
1.7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch._decomp import decomposition_table
from torch._ops import OpOverload
from torch.utils._pytree import tree_map_only

from kernel_gym.judge.expected import Expected, compare
from kernel_gym.tasks.controls.answers import copied
from kernel_gym.tasks.controls.low_precision import COMPOSITE
from kernel_gym.tasks.operator_mode import OperatorMode
from kernel_gym.tasks.problem import Problem

_UNIT = torch.finfo(torch.float32).eps
_EXACT = frozenset(
    "_to_copy clone copy roll flip constant_pad_nd tril index gather slice relu abs neg maximum "
    "minimum clamp amax amin where full_like zeros_like ones_like leaky_relu".split()
)
"""Operators that move, select or negate values. Every kernel computes them without error."""
_SUMS = frozenset("sum mean mm bmm addmm dot mv cumsum".split())
"""Operators with an error that scales with their terms, not with a result that may cancel."""


def is_fragile(problem: Problem, expected: Expected) -> bool:
    """Whether the reference fails if its float32 results change by a unit in the last place.

    In problems that are traced from a user's code they change by half a unit if an output is
    float32: that is the rounding error of an operation, and no later rounding to 16 bits hides it.
    """
    single = problem.startless and any(o.dtype is torch.float32 for o in problem.outputs)
    off = _OffByAUnit(_UNIT / 2 if single else _UNIT)
    with torch.no_grad(), torch.random.fork_rng(), off:
        torch.manual_seed(0)
        answer = problem.reference(**copied(expected.inputs))
    return not compare(problem, expected, answer).passed


class _OffByAUnit(OperatorMode):
    def __init__(self, unit: float) -> None:
        super().__init__()
        self._unit = unit

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Disturbs results and the terms of sums. Composite operators are decomposed first."""
        kwargs = kwargs or {}
        packet = func.overloadpacket
        if packet in COMPOSITE:
            with self:
                return decomposition_table[func](*args, **kwargs)
        name = packet.__name__
        if name in _SUMS:
            args = tree_map_only(torch.Tensor, self._disturbed, args)
        out = func(*args, **kwargs)
        if func.is_view or name in _EXACT:
            return out
        return tree_map_only(torch.Tensor, self._disturbed, out)

    def _disturbed(self, value: torch.Tensor) -> torch.Tensor:
        if value.dtype != torch.float32:
            return value
        sign = torch.randint(0, 2, value.shape, device=value.device) * 2 - 1
        return value * (1 + self._unit * sign)

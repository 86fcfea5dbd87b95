"""Counts the operations of a run on meta tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from kernel_gym.tasks.operator_mode import OperatorMode

_aten = torch.ops.aten
_FREE = frozenset({_aten.empty, _aten.empty_like, _aten.empty_strided, _aten.new_empty})


class CountedOperations(OperatorMode):
    """Adds PyTorch's count for products, and one operation for each element of other results.

    It also counts the tensors that operators return.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations = self.results = self._inner_bytes = self._last_bytes = 0

    def take_inner_bytes(self) -> int:
        """Returns the bytes of the largest result since the last look, without the last result.

        An operator that is composed of others holds such results while it runs.
        """
        inner, self._inner_bytes, self._last_bytes = self._inner_bytes, 0, 0
        return inner

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Runs one operator and counts it."""
        out = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        self.results += len(tensors)
        counter = flop_registry.get(func.overloadpacket)
        if counter is not None:
            self.operations += counter(*args, **(kwargs or {}), out_val=out)
        elif not func.is_view and func.overloadpacket not in _FREE:
            self.operations += sum(math.prod(t.shape) for t in tensors)
        if not func.is_view:
            self._inner_bytes = max(self._inner_bytes, self._last_bytes)
            self._last_bytes = sum(t.numel() * t.itemsize for t in tensors)
        return out

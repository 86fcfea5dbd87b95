"""Counts the operations of a run on meta tensors."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from kernel_gym.tasks.operator_mode import OperatorMode

_aten = torch.ops.aten
_FREE = frozenset({_aten.empty, _aten.empty_like, _aten.empty_strided, _aten.new_empty})


class CountedOperations(OperatorMode):
    """Adds PyTorch's count for products, and one operation for each element of other results."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs one operator and counts it."""
        out = func(*args, **(kwargs or {}))
        counter = flop_registry.get(func.overloadpacket)
        if counter is not None:
            self.operations += counter(*args, **(kwargs or {}), out_val=out)
        elif not func.is_view and func.overloadpacket not in _FREE:
            results = (t for t in tree_leaves(out) if isinstance(t, torch.Tensor))
            self.operations += sum(math.prod(t.shape) for t in results)
        return out

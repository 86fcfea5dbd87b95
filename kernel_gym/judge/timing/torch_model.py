"""The modelled time of a PyTorch baseline on the simulator (rule 23).

Every operator of the reference costs a launch and its achievable roofline: the bytes of its tensor
inputs and outputs, and the FLOPs by PyTorch's counter. On meta tensors nothing is computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from kernel_gym.hardware import DeviceSpec
from kernel_gym.tasks.problem import Problem, Value

_aten = torch.ops.aten
_FREE = frozenset(
    {_aten.empty, _aten.empty_like, _aten.empty_strided, _aten.new_empty, _aten.detach}
)


class _OperatorCost(TorchDispatchMode):
    """Adds up the modelled seconds of each operator that moves or computes something."""

    def __init__(self, spec: DeviceSpec) -> None:
        super().__init__()
        self.spec = spec
        self.seconds = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs the operator on meta tensors and adds its cost."""
        out = func(*args, **(kwargs or {}))
        if func.is_view or func.overloadpacket in _FREE:
            return out
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        results = [t for t in tree_leaves(out) if isinstance(t, torch.Tensor)]
        moved = sum(t.numel() * t.itemsize for t in (*tensors, *results))
        counter = flop_registry.get(func.overloadpacket)
        flops = counter(*args, **(kwargs or {}), out_val=out) if counter else 0
        dtype = results[0].dtype if results else torch.float32
        self.seconds += self.spec.operator_seconds(moved, flops, dtype)
        return out


def reference_seconds(problem: Problem, inputs: Mapping[str, Value], spec: DeviceSpec) -> float:
    """Returns the modelled seconds of `problem.reference` in eager PyTorch on a device."""
    meta = {k: v.to("meta") if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}
    with _OperatorCost(spec) as cost, torch.no_grad():
        problem.reference(**meta)
    return cost.seconds

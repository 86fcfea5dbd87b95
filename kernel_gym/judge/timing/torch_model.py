"""The modelled time of a PyTorch baseline on the simulator (rule 23).

The time of an operator consists of its launches and its achievable roofline. The roofline counts
the bytes of the tensor inputs and outputs, as often as the kernels of the operator move them
(`kernel_gym.devices.operator_costs`), and the FLOPs of PyTorch's counter. RMS normalisation is one
operator, as on a GPU. So is attention, if a fused kernel accepts it
(`kernel_gym.devices.fused_attention`). The operators run on meta tensors, so nothing is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from kernel_gym.devices.fused_attention import attention_work, has_fused_attention
from kernel_gym.devices.operator_costs import operator_cost
from kernel_gym.hardware import DeviceSpec
from kernel_gym.tasks.operator_mode import OperatorMode
from kernel_gym.tasks.problem import Problem, Value

FORMULA_FACTOR = 1.38
"""Factor by which the time of an operator may differ from that of a simulated kernel that computes
the same: nine of ten of 128 cases are nearer (`benchmarks/operator_kernels.py`)."""
_aten = torch.ops.aten
_FREE = frozenset(
    {
        _aten.empty,
        _aten.empty_like,
        _aten.empty_strided,
        _aten.new_empty,
        _aten.detach,
        _aten._unsafe_view,
    }
)


def _flop_counter(operator: object) -> Callable[..., int] | None:
    """Returns PyTorch's counter of an operator's FLOPs. Its module imports Triton."""
    from torch.utils.flop_counter import flop_registry

    counter: Callable[..., int] | None = flop_registry.get(operator)
    return counter


def _tensors(tree: object) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _bytes(tensors: list[torch.Tensor]) -> int:
    return sum(t.numel() * t.itemsize for t in tensors)


class _OperatorCost(OperatorMode):
    """Adds up the modelled seconds of each operator that moves or computes something."""

    def __init__(self, spec: DeviceSpec) -> None:
        super().__init__()
        self.spec = spec
        self.seconds = 0.0
        self.paused = False
        """Whether the operators belong to a fused one, which is charged as a whole."""

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Runs the operator on meta tensors and adds its cost."""
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        operator = func.overloadpacket
        if self.paused or func.is_view or operator in _FREE:
            return out
        results = _tensors(out)
        cost = operator_cost(operator, args, kwargs, out, self.spec.compute_units)
        moved = _bytes(_tensors((args, kwargs)) + results) if cost.moved is None else cost.moved
        counter = _flop_counter(operator)
        flops = counter(*args, **kwargs, out_val=out) if counter else 0
        dtype = results[0].dtype if results else torch.float32
        self.seconds += self.spec.operator_seconds(int(moved * cost.passes), flops, dtype)
        self.seconds += (cost.launches - 1) * self.spec.shortest_kernel_seconds
        self.seconds += cost.waiting
        return out


class _FusedOperators(TorchFunctionMode):
    """Charges functions that are one kernel on a GPU but several operators on meta tensors."""

    def __init__(self, cost: _OperatorCost) -> None:
        super().__init__()
        self.cost = cost

    def __torch_function__(
        self,
        func: Callable[..., torch.Tensor],
        types: object,
        args: Any = (),
        kwargs: Any = None,
    ) -> torch.Tensor:
        """Runs the function, and adds its cost if it is a fused one."""
        kwargs = kwargs or {}
        attention = func is functional.scaled_dot_product_attention
        if not attention and func not in (functional.rms_norm, torch.rms_norm):
            return func(*args, **kwargs)
        if self.cost.paused or (attention and not has_fused_attention(*args, **kwargs)):
            return func(*args, **kwargs)
        self.cost.paused = True
        try:
            out = func(*args, **kwargs)
        finally:
            self.cost.paused = False
        moved, flops = _bytes([*_tensors((args, kwargs)), out]), 0
        if attention:
            moved, flops = attention_work(*args, **kwargs)
        self.cost.seconds += self.cost.spec.operator_seconds(moved, flops, out.dtype)
        return out


def reference_seconds(problem: Problem, inputs: Mapping[str, Value], spec: DeviceSpec) -> float:
    """Returns the modelled seconds of `problem.reference` in eager PyTorch on a device."""
    meta = {k: v.to("meta") if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}
    return call_seconds(lambda: problem.reference(**meta), spec)


def call_seconds(call: Callable[[], object], spec: DeviceSpec) -> float:
    """Returns the modelled seconds of the operators of a call in eager PyTorch on a device.

    Args:
        call: Calls operators on meta tensors.
        spec: The device.
    """
    cost = _OperatorCost(spec)
    with cost, _FusedOperators(cost), torch.no_grad():
        call()
    return cost.seconds

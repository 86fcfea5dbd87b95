"""The cost of an operator of eager PyTorch beyond one pass over its tensors.

The kernels behind an operator decide it: how many there are, how often they read their data, and
which of their steps wait for the one before. Launches and steps were read in PyTorch's kernels;
passes and the lengths of steps are rounded from times of 118 references on an NVIDIA H200, at the
sizes of the full scale. They are used for other devices and sizes, where they are not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

import torch

_aten = torch.ops.aten
_MATRICES_PER_UNIT = 8  # matrices that batched solvers have under way on a compute unit
_SOLVER_STEP_S = 1e-6  # a column of one matrix
_ALIGNMENT_STEP_S = 0.28e-6  # a time step of the CTC loss
_DISTANCE_S = 1.2e-9  # a workgroup for each distance
_SELECTED_ROW_S = 12e-9  # a workgroup of radix selection for each row
_SELECTION_S = 8e-6  # its passes over one row wait for each other
_SHORT_ROW = 128  # elements that a workgroup reduces badly


@dataclass(frozen=True)
class OperatorCost:
    """The cost of one call of an operator.

    Attributes:
        launches: Kernels that it launches.
        passes: How often its bytes move.
        waiting: Seconds of steps that wait for each other, whatever they move.
        moved: Bytes of one pass if these are not those of all its tensors.
    """

    launches: int = 1
    passes: float = 1.0
    waiting: float = 0.0
    moved: int | None = None


_PLAIN = OperatorCost()
_FIXED: Mapping[Any, OperatorCost] = {
    _aten.native_layer_norm: OperatorCost(passes=1.6),
    _aten._softmax: OperatorCost(passes=1.6),
    _aten._safe_softmax: OperatorCost(passes=1.6),
    _aten.native_group_norm: OperatorCost(launches=3, passes=4.0),
    _aten.logsumexp: OperatorCost(launches=6, passes=7.0),
    _aten.binary_cross_entropy_with_logits: OperatorCost(launches=4, passes=6.0),
    _aten.cumsum: OperatorCost(passes=8.0),
    _aten.cumprod: OperatorCost(passes=8.0),
    _aten.upsample_bilinear2d: OperatorCost(passes=10.0),
    _aten.grid_sampler_2d: OperatorCost(passes=6.0),
    _aten.avg_pool2d: OperatorCost(passes=6.0),
    _aten.max_pool2d_with_indices: OperatorCost(passes=3.4),
    _aten.index_add: OperatorCost(launches=2, passes=6.0),
    _aten.scatter_add: OperatorCost(launches=2, passes=9.0),
    _aten.scatter_add_: OperatorCost(passes=9.0),
}


def operator_cost(
    operator: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any, compute_units: int
) -> OperatorCost:
    """The cost of one call.

    Args:
        operator: The overload packet.
        args: Its arguments.
        kwargs: Its arguments by name.
        out: Its results.
        compute_units: Of the device.

    Returns:
        The cost; one launch and one pass for an operator without a rule of its own.
    """
    rule = _RULES.get(operator)
    if rule is None:
        return _FIXED.get(operator, _PLAIN)
    return rule(_Call(args, kwargs, out, compute_units))


@dataclass(frozen=True)
class _Call:
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    out: Any
    compute_units: int

    @property
    def first(self) -> torch.Tensor:
        tensor = self.args[0]
        assert isinstance(tensor, torch.Tensor)
        return tensor

    @property
    def result(self) -> torch.Tensor:
        tensor = self.out[0] if isinstance(self.out, tuple | list) else self.out
        assert isinstance(tensor, torch.Tensor)
        return tensor


def _gathered(call: _Call) -> OperatorCost:
    """Reads as much as it writes, whatever the size of the table."""
    return OperatorCost(moved=2 * call.result.numel() * call.result.itemsize)


def _copied(call: _Call) -> OperatorCost:
    """A copy between two layouts moves cache lines of which it needs a part."""
    strides = [s for s, n in zip(call.first.stride(), call.first.shape, strict=True) if n > 1]
    if call.first.is_contiguous() or not strides:
        return _PLAIN
    return OperatorCost(passes=3.0 if min(strides) > 1 or strides[-1] > 1 else 2.0)


def _reduced(call: _Call) -> OperatorCost:
    """Short rows leave most lanes of a workgroup idle."""
    short = call.first.numel() < _SHORT_ROW * max(1, call.result.numel())
    return OperatorCost(passes=3.0 if short else 1.6)


def _sorted(call: _Call) -> OperatorCost:
    """A row of up to 4,096 elements is sorted by one workgroup, a longer one by radix passes."""
    length = call.first.shape[-1] if call.first.ndim else 1
    return OperatorCost(launches=1 if length <= 4096 else 8, passes=10.0, waiting=_SELECTION_S)


def _selected(call: _Call) -> OperatorCost:
    """Radix selection by one workgroup a row, then a sort of what it selected."""
    rows = call.first.numel() // max(1, call.first.shape[-1] if call.first.ndim else 1)
    waiting = _SELECTION_S + rows * _SELECTED_ROW_S
    return OperatorCost(launches=2, passes=4.0, waiting=waiting)


def _solved(call: _Call) -> OperatorCost:
    """One workgroup a matrix goes through the columns."""
    matrices, columns = prod(call.first.shape[:-2]), call.first.shape[-1]
    turns = ceil(matrices / (_MATRICES_PER_UNIT * call.compute_units))
    return OperatorCost(launches=2, waiting=turns * columns * _SOLVER_STEP_S)


def _distances(call: _Call) -> OperatorCost:
    """One workgroup for each distance."""
    return OperatorCost(waiting=call.result.numel() * _DISTANCE_S)


def _aligned(call: _Call) -> OperatorCost:
    """The CTC loss goes through the time steps, the first dimension."""
    return OperatorCost(launches=2, waiting=call.first.shape[0] * _ALIGNMENT_STEP_S)


def _convolved(call: _Call) -> OperatorCost:
    """With one input channel a group it is no matrix product: each output gathers its window."""
    weight = call.args[1]
    return OperatorCost(passes=8.0) if weight.shape[1] == 1 else OperatorCost(passes=2.0)


_RULES: Mapping[Any, Callable[[_Call], OperatorCost]] = {
    **dict.fromkeys((_aten.index_select, _aten.embedding, _aten.gather, _aten.index), _gathered),
    **dict.fromkeys((_aten.clone, _aten.copy_, _aten._to_copy), _copied),
    **dict.fromkeys(
        (_aten.sum, _aten.mean, _aten.amax, _aten.amin, _aten.max, _aten.var_mean, _aten.argmax),
        _reduced,
    ),
    **dict.fromkeys((_aten.sort, _aten.argsort), _sorted),
    **dict.fromkeys((_aten.linalg_inv_ex, _aten.linalg_cholesky_ex), _solved),
    _aten.linalg_solve_triangular: _solved,
    _aten.topk: _selected,
    _aten._cdist_forward: _distances,
    _aten._ctc_loss: _aligned,
    _aten.convolution: _convolved,
}

"""The cost of an operator of eager PyTorch beyond one pass over its tensors.

The kernels behind an operator decide it: how many there are, how often they read their data, and
which of their steps wait for the one before. Launches were counted by PyTorch's profiler in the
references of 168 problems on an NVIDIA H200, at the simulator's sizes. Passes are rounded from
times of 118 references there, at full sizes, and the lengths of steps from both. They are used for
other devices and sizes, where they are not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

import torch

_aten = torch.ops.aten
_SUBSTITUTION_STEP_S = 0.3e-6  # a column of a triangular matrix
_ALIGNMENT_STEP_S = 0.35e-6  # a time step of the CTC loss
_BAG_STEP_S = 0.8e-6  # a row that a thread adds to its bag
_BAGS_PER_TURN = 1024 * 4  # groups of threads of the kernel, each with one bag and 64 features
_SCAN_STEP_S = 2e-9  # an element of a row that one workgroup scans
_TOKEN_STEP_S = 25e-9  # a token whose gradient goes into its row of the table
MAX_TOKENS_IN_ORDER = 3072
_MIN_CHANNELS_OF_MATRIX_UNITS = 8  # with fewer, matrix units are hardly used
_WINDOW_STEP_S = 0.08e-6  # an element of such a window
_TILE = 128  # rows and columns of a product by one workgroup
_DISTANCE_S = 1.2e-9  # a workgroup for each distance
_SELECTED_ROW_S = 12e-9  # a workgroup of radix selection for each row
_SELECTION_S = 8e-6  # its passes over one row wait for each other
_ROW_SORT_S = 14e-6  # the passes of a workgroup that sorts one row
_SHORT_ROW_SORT_S = 4e-6
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
_FIXED: Mapping[object, OperatorCost] = {
    _aten.native_layer_norm: OperatorCost(passes=1.6),
    _aten._softmax: OperatorCost(passes=1.6),
    _aten._safe_softmax: OperatorCost(passes=1.6),
    _aten.native_group_norm: OperatorCost(launches=3, passes=4.0),
    _aten.native_batch_norm: OperatorCost(launches=3),
    _aten.logsumexp: OperatorCost(launches=9, passes=7.0),
    _aten.binary_cross_entropy_with_logits: OperatorCost(launches=9, passes=6.0),
    _aten.nll_loss_forward: OperatorCost(launches=2),
    _aten.baddbmm: OperatorCost(launches=2),
    _aten._grouped_mm: OperatorCost(launches=2),
    _aten.masked_fill: OperatorCost(launches=2),
    _aten.scatter: OperatorCost(launches=2),
    _aten.repeat_interleave: OperatorCost(launches=3),
    _aten.convolution_backward: OperatorCost(launches=4),
    _aten.upsample_bilinear2d: OperatorCost(passes=10.0),
    _aten.grid_sampler_2d: OperatorCost(passes=6.0),
    _aten.avg_pool2d: OperatorCost(passes=6.0),
    _aten.max_pool2d_with_indices: OperatorCost(passes=3.4),
    _aten.index_add: OperatorCost(launches=2, passes=6.0),
    _aten.scatter_add: OperatorCost(launches=2, passes=9.0),
    _aten.scatter_add_: OperatorCost(passes=9.0),
}


def operator_cost(
    operator: object,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    out: object,
    compute_units: int,
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
    kwargs: Mapping[str, object]
    out: object
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


def _normalised(call: _Call) -> OperatorCost:
    """Its time is fitted without the few factors of the rows, which it writes too."""
    tensors = (call.first, call.args[2], call.result)
    return OperatorCost(moved=sum(t.numel() * t.itemsize for t in tensors if t is not None))


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
    if length > 4096:
        return OperatorCost(launches=14, passes=10.0, waiting=_SELECTION_S)
    waiting = _SHORT_ROW_SORT_S if length <= _SHORT_ROW else _ROW_SORT_S
    return OperatorCost(launches=5, passes=10.0, waiting=waiting)


def _selected(call: _Call) -> OperatorCost:
    """Radix selection by one workgroup a row, then a sort of what it selected."""
    rows = call.first.numel() // max(1, call.first.shape[-1] if call.first.ndim else 1)
    waiting = _SELECTION_S + rows * _SELECTED_ROW_S
    return OperatorCost(launches=2, passes=4.0, waiting=waiting)


def _columns(launches: int, step: float, matrices_per_unit: int) -> Callable[[_Call], OperatorCost]:
    """The rule of a batched solver: one workgroup a matrix goes through the columns.

    Args:
        launches: Kernels that it launches.
        step: Seconds of a column.
        matrices_per_unit: Matrices that are under way on a compute unit.
    """

    def rule(call: _Call) -> OperatorCost:
        matrices, columns = prod(call.first.shape[:-2]), call.first.shape[-1]
        turns = ceil(matrices / (matrices_per_unit * call.compute_units))
        return OperatorCost(launches=launches, waiting=turns * columns * step)

    return rule


def _triangular(call: _Call) -> OperatorCost:
    """A workgroup goes through the columns for 64 right-hand sides of a matrix."""
    matrices, columns = prod(call.first.shape[:-2]), call.first.shape[-1]
    groups = matrices * ceil(call.result.shape[-1] / 64)
    turns = ceil(groups / (2 * call.compute_units))
    return OperatorCost(launches=4, waiting=turns * columns * _SUBSTITUTION_STEP_S)


def _distances(call: _Call) -> OperatorCost:
    """One workgroup for each distance."""
    return OperatorCost(waiting=call.result.numel() * _DISTANCE_S)


def _aligned(call: _Call) -> OperatorCost:
    """The CTC loss goes through the time steps, the first dimension, and copies its lengths."""
    return OperatorCost(launches=8, waiting=call.first.shape[0] * _ALIGNMENT_STEP_S)


def _convolved(call: _Call) -> OperatorCost:
    """A product between changes of layout, then the bias.

    With one input channel a group it is no matrix product: each output gathers its window. Other
    groups have a kernel of their own, which takes the layout as it is.
    """
    weight, bias, groups = call.args[1], call.args[2], call.args[8]
    if weight.shape[1] == 1:
        return OperatorCost(launches=2 if bias is not None and weight.ndim == 3 else 1, passes=8.0)
    launches = (4 if groups == 1 else 1) + (bias is not None)
    if groups > 1 or weight.shape[1] >= _MIN_CHANNELS_OF_MATRIX_UNITS:
        return OperatorCost(launches=launches, passes=2.0)
    filters, window = weight.shape[0], prod(weight.shape[1:])
    tiles = ceil(call.result.numel() / filters / _TILE) * ceil(filters / _TILE)
    turns = ceil(tiles / call.compute_units)
    return OperatorCost(launches=launches, passes=2.0, waiting=turns * window * _WINDOW_STEP_S)


def _bagged(call: _Call) -> OperatorCost:
    """A thread adds the rows of its bag one by one; of the table only these are read."""
    ids, offsets = call.args[1:3]
    width = call.result.shape[-1]
    turns = ceil(offsets.numel() * ceil(width / 64) / _BAGS_PER_TURN)
    in_a_bag = ids.numel() / max(1, offsets.numel())
    moved = (ids.numel() * width + call.result.numel()) * call.result.itemsize
    return OperatorCost(moved=moved, waiting=turns * in_a_bag * _BAG_STEP_S)


def _table_gradient(call: _Call) -> OperatorCost:
    """Zeros, then few tokens go into the table in their order."""
    tokens = call.args[1].numel()
    in_order = tokens <= MAX_TOKENS_IN_ORDER
    return OperatorCost(launches=2, waiting=tokens * _TOKEN_STEP_S if in_order else 0.0)


def _scanned(call: _Call) -> OperatorCost:
    """One workgroup scans a row."""
    return OperatorCost(passes=8.0, waiting=call.first.shape[call.args[1]] * _SCAN_STEP_S)


def _summed_up(call: _Call) -> OperatorCost:
    """A single row of sums or products is scanned by several workgroups."""
    if call.first.numel() == call.first.shape[call.args[1]]:
        return OperatorCost(launches=2, passes=8.0)
    return _scanned(call)


_RULES: Mapping[object, Callable[[_Call], OperatorCost]] = {
    **dict.fromkeys((_aten.index_select, _aten.embedding, _aten.gather, _aten.index), _gathered),
    **dict.fromkeys((_aten.clone, _aten.copy_, _aten._to_copy), _copied),
    **dict.fromkeys(
        (_aten.sum, _aten.mean, _aten.amax, _aten.amin, _aten.max, _aten.var_mean, _aten.argmax),
        _reduced,
    ),
    **dict.fromkeys((_aten.sort, _aten.argsort), _sorted),
    _aten._fused_rms_norm: _normalised,
    **dict.fromkeys((_aten.cumsum, _aten.cumprod), _summed_up),
    **dict.fromkeys((_aten.cummax, _aten.cummin), _scanned),
    _aten.linalg_inv_ex: _columns(launches=10, step=1.5e-6, matrices_per_unit=8),
    _aten.linalg_cholesky_ex: _columns(launches=9, step=0.45e-6, matrices_per_unit=3),
    _aten.linalg_solve_triangular: _triangular,
    _aten._embedding_bag_forward_only: _bagged,
    _aten._embedding_bag: _bagged,
    _aten.embedding_dense_backward: _table_gradient,
    _aten.topk: _selected,
    _aten._cdist_forward: _distances,
    _aten._ctc_loss: _aligned,
    _aten.convolution: _convolved,
}

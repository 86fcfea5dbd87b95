"""Which operators of PyTorch a session may run on the tensors of a device.

Only sessions of imported tasks may use any that compute, since the functions of suites are host
functions that also call PyTorch. A candidate gets operators that move data. It gets those that
compute only if the suite's own code calls them beside kernels of its own, and may spend no more
time in them than that code does. The reference worker, which runs the suite's own code, gets all.
"""

from __future__ import annotations

from enum import StrEnum

from kernel_gym.tasks.task import Task

MAX_READ_BYTES = 4096
"""Most bytes that the host may read from the device in one call."""


class Operators(StrEnum):
    """Which operators a session may run."""

    NONE = "none"
    USUAL = "usual"
    """Those of `operators_of_candidate`: a candidate of an imported task."""
    ALL = "all"
    """Every operator: the reference worker."""


def operators_for(task: Task, resident: bool) -> Operators:
    """Returns which operators a session may run: in tasks of our own none.

    Args:
        task: The task.
        resident: Whether the session runs the suite's own code.
    """
    if not task.problem.recorded:
        return Operators.NONE
    return Operators.ALL if resident else Operators.USUAL


USUAL = frozenset(
    f"aten::{name}"
    for name in """
    _softmax _log_softmax _to_copy _unsafe_view abs add add_ addcmul addmm all amax amin any arange
    argmax argmin argsort baddbmm bernoulli bitwise_and bitwise_or bitwise_not bmm cat ceil clamp
    clamp_ clamp_max clamp_min clone constant_pad_nd copy_ cos cumsum cumprod div div_ embedding eq
    erf exp exp2 eye fill_ flip floor floor_divide fmod full full_like gather ge gt index
    index_select isfinite isinf isnan le linspace log log2 logical_and logical_not logical_or
    logical_xor lt masked_fill masked_fill_ max maximum mean min minimum mm mul mul_ ne neg
    new_full new_ones new_zeros nonzero normal_ one_hot ones ones_like permute pow rand rand_like
    randint randn randn_like randperm reciprocal relu remainder repeat repeat_interleave roll round
    rsqrt rsub scalar_tensor scatter scatter_ scatter_add scatter_add_ select_scatter sigmoid sign
    silu sin slice_scatter softplus sort sqrt square stack std sub sub_ sum tanh topk tril triu
    trunc unique_consecutive var where zero_ zeros zeros_like uniform_ index_put_ bitwise_left_shift
    bitwise_right_shift __lshift__ __rshift__ __and__ __or__ detach lift_fresh_copy mv dot
    logsumexp prod nansum lerp addcdiv bincount searchsorted bucketize scatter_reduce std_mean
    var_mean any all logical_and_ masked_select count_nonzero aminmax outer tril_indices index_add
    linalg_vector_norm native_layer_norm gelu sum_to_size is_same_size convolution
    _log_softmax_backward_data _softmax_backward_data tanh_backward sigmoid_backward
    threshold_backward gelu_backward silu_backward native_layer_norm_backward
    """.split()
)
"""Operators that are usual beside kernels."""
MOVES = frozenset(
    f"aten::{name}"
    for name in """
    _to_copy _unsafe_view arange cat clone constant_pad_nd copy_ detach eye fill_ flip full
    full_like is_same_size lift_fresh_copy linspace new_full new_ones new_zeros ones ones_like
    permute roll scalar_tensor select_scatter slice_scatter stack zero_ zeros zeros_like
    """.split()
)
"""Those of them that fill, copy and arrange. Every candidate of an imported task may use them: they
cost a pass over their bytes, which no kernel undercuts. `repeat` is none, because PyTorch's kernels
compute with others."""
COMPUTING = USUAL - MOVES


def operators_of_candidate(task: Task) -> frozenset[str]:
    """Returns the names of the operators that a candidate of an imported task may use.

    Where the suite's own code has no kernels, none of its operators are among them: they are the
    work of the task.
    """
    if not task.mode.has_start_kernel:
        return MOVES
    return MOVES | (task.problem.own_operators & COMPUTING)

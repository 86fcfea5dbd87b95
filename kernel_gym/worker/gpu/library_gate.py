"""Removes PyTorch's own GPU kernels from a process, below every dispatch mode.

A candidate runs in this process. It can switch a dispatch mode off, and it can detect the no-op
replay and behave only then. So this module works differently: in the dispatcher's table, it
replaces each operator that computes on a GPU by one that refuses, until the process ends. The
remaining operators allocate, view, fill and copy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Set
from typing import Any, NoReturn

import torch

from kernel_gym.devices.operators import COMPUTING

KEYS = ("CUDA", "SparseCUDA", "SparseCsrCUDA", "QuantizedCUDA", "NestedTensorCUDA")
"""Dispatch keys of GPU kernels; they are the same for AMD's GPUs."""
KEPT = frozenset(
    "empty empty_strided zero_ fill_ copy_ as_strided view _reshape_alias resize_ set_ unfold "
    "record_stream is_set_to".split()
)
"""Operators of `aten` that remain."""
HELPERS = {
    name: frozenset(helpers.split())
    for name, helpers in {
        "argsort": "sort",
        "bernoulli": "bernoulli_",
        "bincount": "max min",
        "convolution": "cudnn_convolution miopen_convolution miopen_depthwise_convolution "
        "_conv_depthwise2d conv_depthwise3d _slow_conv2d_forward slow_conv_dilated2d "
        "slow_conv_dilated3d slow_conv3d_forward slow_conv_transpose2d slow_conv_transpose3d add "
        "addmm baddbmm bmm",
        "count_nonzero": "ne sum",
        "embedding": "index_select",
        "index": "nonzero",
        "index_put_": "_index_put_impl_ nonzero sort",
        "isfinite": "abs ne eq mul",
        "isinf": "abs eq",
        "isnan": "ne",
        "linalg_vector_norm": "abs",
        "logsumexp": "abs amax eq exp log masked_fill sub sum add",
        "masked_select": "sum nonzero",
        "mean": "div sum",
        "mv": "addmv",
        "nansum": "sum",
        "one_hot": "scatter max min",
        "outer": "mul",
        "rand": "uniform",
        "rand_like": "uniform",
        "randint": "random",
        "randn": "normal",
        "randn_like": "normal",
        "randperm": "random sort randint",
        "relu": "clamp_min",
        "repeat": "add",
        "repeat_interleave": "cumsum index_select",
        "rsub": "sub",
        "scatter_reduce": "div eq masked_fill scatter scatter_add",
        "square": "pow",
        "std": "div mean sum",
        "sum_to_size": "sum",
        "topk": "sort gather",
        "unique_consecutive": "_unique2 unique_dim",
        "var": "div mean sum",
    }.items()
}
"""The operators by which an operator computes. Those of the CPU were found by trials; more are
named where a GPU's kernels are known to call them. Each stands for its form in place as well."""


def take_kernels_away(keys: Iterable[str] = KEYS, permitted: Set[str] = frozenset()) -> int:
    """Replaces the kernels of all operators that compute; returns how many.

    Args:
        keys: Names of dispatch keys.
        permitted: Operators that remain, too, by name, such as `aten::cat`.
    """
    kept = KEPT | _with_helpers(permitted)
    libraries: dict[str, Any] = {}
    count = 0
    for key in keys:
        for name in torch._C._dispatch_get_registrations_for_dispatch_key(key):
            namespace, _, operator = name.partition("::")
            if namespace == "aten" and operator.partition(".")[0] in kept:
                continue
            if namespace not in libraries:
                libraries[namespace] = _library(namespace)
            libraries[namespace].impl(operator, key, _refusing(name), False)
            count += 1
    return count


def _with_helpers(permitted: Set[str]) -> frozenset[str]:
    """Returns the names of operators, of their forms in place, and of those that they call."""
    if not permitted:
        return frozenset()
    names = {name.removeprefix("aten::") for name in permitted}
    names |= {helper for name in permitted & COMPUTING for helper in HELPERS.get(name[6:], ())}
    return frozenset(names | {f"{name}_" for name in names} | {"_local_scalar_dense"})


def _library(namespace: str) -> Any:
    """Returns a library of replacements. It has no name and an extra reference, so it stays."""
    library = torch._C._dispatch_library("IMPL", namespace, "", __file__, 0)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
    return library


def _refusing(name: str) -> Callable[..., NoReturn]:
    """Returns what stands for an operator that was taken away."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(f"torch's own kernels are not here ({name}): do the work in your kernel")

    return refuse

"""Takes PyTorch's own GPU kernels away from a process, beneath every dispatch mode.

A candidate runs in this process: it can switch a dispatch mode off, and it can find out that a call
is the no-op replay and behave then. So nothing is watched here and nothing is a replay: in the
table of the dispatcher, each operator that computes on a GPU is replaced by one that refuses, for
the rest of the process. What stays allocates, views, fills and copies.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any, NoReturn

import torch

KEYS = ("CUDA", "SparseCUDA", "SparseCsrCUDA", "QuantizedCUDA", "NestedTensorCUDA")
"""Tables of GPU kernels; those of AMD's GPUs have the same names."""
KEPT = frozenset(
    "empty empty_strided zero_ fill_ copy_ as_strided view _reshape_alias resize_ set_ unfold "
    "record_stream is_set_to".split()
)
"""Operators of `aten` that stay."""


def take_kernels_away(keys: Iterable[str] = KEYS) -> int:
    """Replaces the kernels of all operators that compute; returns how many.

    Args:
        keys: names of dispatch keys.
    """
    libraries: dict[str, Any] = {}
    count = 0
    for key in keys:
        for name in torch._C._dispatch_get_registrations_for_dispatch_key(key):
            namespace, _, operator = name.partition("::")
            if namespace == "aten" and operator.partition(".")[0] in KEPT:
                continue
            if namespace not in libraries:
                libraries[namespace] = _library(namespace)
            libraries[namespace].impl(operator, key, _refuse, False)
            count += 1
    return count


def _library(namespace: str) -> Any:
    """What replaces kernels for as long as it lives: for good, and no name leads to it."""
    library = torch._C._dispatch_library("IMPL", namespace, "", __file__, 0)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
    return library


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError("torch's own kernels are not here: do the work in your kernel")

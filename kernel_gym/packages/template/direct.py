"""Calls without PyTorch's dispatcher, and answers that depend on types and shapes alone.

A part of the package. A model that decodes calls small kernels thousands of times a second, so the
time of each call on the host counts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

PLAIN = (torch.Tensor, torch.nn.Parameter)
MAX_ANSWERS = 4096
"""Answers that a function remembers."""


def possible(tensors: list[torch.Tensor]) -> bool:
    """Whether a call may run without the operator: nobody traces it or needs its gradient."""
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack():
        return False
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return False
    return all(type(tensor) in PLAIN for tensor in tensors)


def remembered(function: Callable[..., str]) -> Callable[..., str]:
    """Remembers the answers of a function that reads no values of tensors."""
    answers: dict[tuple[object, ...], str] = {}

    @functools.wraps(function)
    def ask(*arguments: Any) -> str:
        key = None if torch.compiler.is_compiling() else _key(arguments)
        if key is None:
            return function(*arguments)
        if key not in answers:
            if len(answers) >= MAX_ANSWERS:
                answers.clear()
            answers[key] = function(*arguments)
        return answers[key]

    return ask


def _key(arguments: tuple[Any, ...]) -> tuple[object, ...] | None:
    """Returns types, shapes and numbers; None if an argument is neither a tensor nor a number."""
    key: list[object] = []
    for value in arguments:
        if type(value) in PLAIN and value.layout is torch.strided:
            key += [value.dtype, value.shape, value.is_contiguous(), value.device]
        elif type(value) in (int, float, bool):
            key += [type(value), value]
        else:
            return None
    return tuple(key)

"""Traces PyTorch's recurrent layers by their shapes.

A recurrent layer is one operator in a trace. Without a kernel for fake tensors, PyTorch would run
all operators of each of its steps to learn the shapes of its results: half a minute for six layers
of 512 steps, at each of some fifty sizes. All steps give the same shapes, so one is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode

_OPERATORS = ("lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input")
_BATCH_FIRST = 8
"""The place of the argument `batch_first` of each of them."""


@contextmanager
def one_step_only() -> Iterator[None]:
    """Makes recurrent layers run their first step alone while they are traced as one operator.

    Where the trace goes into an operator, as for derivatives, each step is run and recorded.
    """
    with torch.library._scoped_library("aten", "IMPL") as library:
        for name in _OPERATORS:
            packet, overload = name.split(".")
            operator = getattr(getattr(torch.ops.aten, packet), overload)
            library.impl(name, _first_step_of(operator), "AutogradCPU")
        yield


def _first_step_of(operator: torch._ops.OpOverload) -> Callable[..., object]:
    def run(x: torch.Tensor, *args: object) -> object:
        if get_proxy_mode() is not None or not isinstance(x, FakeTensor):
            return operator.decompose(x, *args)
        time = 1 if args[_BATCH_FIRST - 1] else 0
        out, *states = operator.decompose(x.narrow(time, 0, 1), *args)
        shape = [*out.shape]
        shape[time] = x.shape[time]
        return out.new_empty(shape), *states

    return run

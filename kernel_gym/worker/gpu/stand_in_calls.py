"""Replacements for the calls whose C++ binding takes a CUDA device guard before any dispatch.

A CPU build of PyTorch has no such guard. So these few calls are answered in Python, by the same
operators that other calls reach through the dispatcher.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from kernel_gym.worker.gpu import stand_in_tensor as device
from kernel_gym.worker.gpu.stand_in_tensor import DeviceTensor, Runtime

_Tensor = torch.Tensor


class GuardlessMode(TorchFunctionMode):
    """Answers the guarded calls and runs every other one unchanged."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self.runtime = runtime

    def __torch_function__(self, func, types, args=(), kwargs=None):
        """Runs one call of the torch API."""
        kwargs = kwargs or {}
        answer = _ANSWERS.get(func)
        if answer is not None:
            result = answer(self.runtime, func, args, kwargs)
            if result is not NotImplemented:
                return result
        return func(*args, **kwargs)


def _contiguous(runtime: Runtime, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if not isinstance(args[0], DeviceTensor):
        return NotImplemented
    tensor = args[0]
    if tensor.is_contiguous():
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)


def _to(runtime: Runtime, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Implements `to` and `cuda` where the target is the device."""
    source, rest = args[0], [*args[1:], *kwargs.values()]
    wanted = [d for d in rest if isinstance(d, str | torch.device)]
    on_device = func is _Tensor.cuda or any(torch.device(d).type == "cuda" for d in wanted)
    like = next((t for t in rest if isinstance(t, torch.Tensor)), None)
    on_device |= isinstance(like, DeviceTensor)
    if not on_device:
        return NotImplemented
    dtype = next(
        (d for d in rest if isinstance(d, torch.dtype)), like.dtype if like is not None else None
    )
    if isinstance(source, DeviceTensor) and dtype in (None, source.dtype):
        return source
    options = {"dtype": dtype or source.dtype, "device": torch.device("cuda", 0)}
    return device.run_operator(torch.ops.aten._to_copy.default, (source,), options, runtime)


def _copy(runtime: Runtime, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if not any(isinstance(a, DeviceTensor) for a in args):
        return NotImplemented
    return device.run_operator(torch.ops.aten.copy_.default, args[:2], {}, runtime)


def _get_item(runtime: Runtime, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return device.slice_tensor(*args) if isinstance(args[0], DeviceTensor) else NotImplemented


def _set_item(runtime: Runtime, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if not isinstance(args[0], DeviceTensor):
        return NotImplemented
    target, value = device.slice_tensor(args[0], args[1]), args[2]
    if isinstance(value, torch.Tensor):
        return _copy(runtime, func, (target, value), {})
    target.fill_(value)
    return None


def _make(runtime: Runtime, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Implements `torch.tensor` and `torch.as_tensor`: makes the tensor on the host, uploads it."""
    where = kwargs.get("device")
    if where is None or torch.device(where).type != "cuda":
        return NotImplemented
    made = func(*args, **{k: v for k, v in kwargs.items() if k != "device"})
    return _to(runtime, _Tensor.cuda, (made,), {})


def _read(runtime: Runtime, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Refuses calls that would copy values to the host."""
    if not isinstance(args[0], DeviceTensor):
        return NotImplemented
    return device.refuse_read(func.__name__, runtime)


_ANSWERS: dict[Any, Callable[..., Any]] = {
    _Tensor.contiguous: _contiguous,
    _Tensor.to: _to,
    _Tensor.cuda: _to,
    _Tensor.copy_: _copy,
    _Tensor.__getitem__: _get_item,
    _Tensor.__setitem__: _set_item,
    torch.tensor: _make,
    torch.as_tensor: _make,
    **dict.fromkeys(
        (
            _Tensor.__float__,
            _Tensor.__int__,
            _Tensor.__index__,
            _Tensor.__bool__,
            _Tensor.tolist,
            _Tensor.numpy,
            _Tensor.__array__,
            _Tensor.item,
        ),
        _read,
    ),
}

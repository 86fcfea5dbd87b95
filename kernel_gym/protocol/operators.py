"""Arguments and results of PyTorch's operators as JSON values, in plans and in their launcher."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from kernel_gym.protocol.fields import ELEMENT_TYPES, TensorOnDevice, device_tensor
from kernel_gym.protocol.request import BadRequestError
from kernel_gym.protocol.values import number, text

MAX_ARGUMENTS = 4096
"""Most values of one request, nested ones included."""
_FLOATS = {text: float(text) for text in ("inf", "-inf", "nan")}
_FORMATS = {
    str(one).removeprefix("torch."): one
    for one in (torch.contiguous_format, torch.preserve_format, torch.channels_last)
}


def number_to_json(value: float | int | bool | complex) -> object:
    """A number as JSON: infinite and complex ones as objects."""
    if isinstance(value, complex):
        return {"complex": [number_to_json(value.real), number_to_json(value.imag)]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def write(value: object, tensor: Callable[[torch.Tensor], object]) -> object:
    """Returns the JSON value of an argument.

    Args:
        value: A tensor, a number, a dtype, or a list of such values.
        tensor: Describes a tensor.

    Raises:
        TypeError: It is something else.
    """
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float | complex):
        return number_to_json(value)
    if isinstance(value, list | tuple):
        return {"list": [write(item, tensor) for item in value]}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": value.type}
    if isinstance(value, torch.memory_format):
        return {"format": str(value).removeprefix("torch.")}
    if isinstance(value, torch.layout):
        return None
    raise TypeError(f"a {type(value).__name__} is no argument that the device takes")


def result_form(out: object, tensors: Sequence[torch.Tensor]) -> object:
    """Returns the form of what an operator returned, as JSON.

    Args:
        out: Tensors, None, or lists of such.
        tensors: The tensors among its arguments: one that is returned is named by its number.

    Returns:
        `{"same": number}` for such a tensor, shape, strides and dtype of a new one, `{"list": ...}`
        of several, and None. A new tensor is dense, with the order of axes of the one returned.

    Raises:
        TypeError: It returned something else.
    """
    if isinstance(out, torch.Tensor):
        same = [number for number, tensor in enumerate(tensors) if tensor is out]
        if same:
            return {"same": same[0]}
        strides = torch.empty_like(out, device="meta").stride()
        dtype = str(out.dtype).removeprefix("torch.")
        return {"shape": list(out.shape), "strides": list(strides), "dtype": dtype}
    if isinstance(out, list | tuple):
        return {"list": [result_form(item, tensors) for item in out]}
    if out is not None:
        raise TypeError(f"it returns a {type(out).__name__}, which has no place in a plan")
    return None


def read(value: object, tensor: Callable[[TensorOnDevice], torch.Tensor], depth: int = 0) -> object:
    """Returns the argument of a JSON value.

    Args:
        value: What `write` has made, or a hostile process.
        tensor: Returns the tensor that is described.
        depth: How deep the value is nested.

    Raises:
        BadRequestError: It has another form.
    """
    if value is None or isinstance(value, bool | str | int | float):
        return value
    if not isinstance(value, dict) or depth > 4:
        raise BadRequestError("an argument of an operator is malformed")
    if "address" in value:
        return tensor(device_tensor(value, "an argument"))
    (kind, inner), *more = value.items() or [("", None)]
    if more:
        raise BadRequestError("an argument of an operator is malformed")
    if kind in ("list", "complex", "host") and isinstance(inner, list):
        if len(inner) > MAX_ARGUMENTS or (kind != "list" and len(inner) != 2):
            raise BadRequestError("an argument of an operator is malformed")
        return _several(kind, [read(item, tensor, depth + 1) for item in inner])
    return _plain(kind, inner)


def _several(kind: str, values: list[object]) -> object:
    if kind == "complex":
        real, imaginary = (number(part, "a part of a complex number") for part in values)
        return complex(real, imaginary)
    if kind == "host":
        dtype = text(values[1], "the dtype of a tensor of the host")
        return torch.tensor(values[0], dtype=ELEMENT_TYPES.get(dtype))
    return values


def _plain(kind: str, inner: object) -> object:
    if kind == "device":
        return torch.device("cpu")  # the device computes on its memory as on a CPU's
    known = {"float": _FLOATS, "dtype": ELEMENT_TYPES, "format": _FORMATS}.get(kind, {})
    if not isinstance(inner, str) or inner not in known:
        raise BadRequestError(f"an argument of an operator is of an unknown kind {kind[:40]!r}")
    return known[inner]

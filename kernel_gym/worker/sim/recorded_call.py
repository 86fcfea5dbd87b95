"""Makes the calls of a problem of recorded calls, in the worker of a candidate or a reference.

What is returned here is no more trusted than anything else that a worker says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import torch

from kernel_gym.sandbox.failures import BuildError
from kernel_gym.triton_versions import accept_annotated_globals


class Caller:
    """Calls functions of a module with arguments that are filled into templates.

    Args:
        scope: The names of the module.
        templates: Templates as JSON.
    """

    def __init__(self, scope: Mapping[str, Any], templates: Sequence[Mapping[str, Any]]) -> None:
        self._scope, self._templates = scope, templates

    def __call__(self, number: int, *values: Any) -> list[torch.Tensor]:
        """Makes one call.

        Args:
            number: The template.
            values: Its tensors, then the sizes of its axes, seeds, and gradients of its outputs.

        Returns:
            The tensors that it returned, those that it changed, and gradients of its inputs.
        """
        template = self._templates[number]
        call, names = template["call"], [*template["axes"], *template["seeds"]]
        forms = call["tensors"]
        tensors = list(values[: len(forms)])
        dims = dict(zip(names, values[len(forms) :], strict=False))
        gradients = values[len(forms) + len(names) :]
        for index, (form, tensor) in enumerate(zip(forms, tensors, strict=True)):
            if form["device"] == "cpu":
                tensors[index] = tensor.cpu()
            elif form["gradient"] and call["backward"]:
                tensor.requires_grad_(True)
        args = [self._value(tree, tensors, dims) for tree in call["args"]]
        kwargs = {k: self._value(tree, tensors, dims) for k, tree in call["kwargs"].items()}
        with torch.enable_grad() if call["backward"] else torch.no_grad():
            result = self._function(call["function"], template["grid"], dims)(*args, **kwargs)
        outputs = [] if template["grid"] is not None else _flat(result)
        taken = {
            t.data_ptr() for form, t in zip(forms, tensors, strict=True) if not form["mutated"]
        }
        outputs = [output.clone() if output.data_ptr() in taken else output for output in outputs]
        changed = [t for form, t in zip(forms, tensors, strict=True) if form["mutated"]]
        results = [*outputs, *changed]
        if call["backward"]:
            results += _gradients(outputs, gradients, forms, tensors)
        return [_dense(output.detach()) for output in results]

    def _function(self, name: str, grid: Sequence[str] | None, dims: Mapping[str, int]) -> Any:
        first, _, rest = name.partition(".")
        function = self._scope[first]
        if rest:
            function = getattr(function, rest)
        return function if grid is None else function[tuple(_size(size, dims) for size in grid)]

    def _value(self, tree: Any, tensors: Sequence[Any], dims: Mapping[str, int]) -> Any:
        ((kind, value),) = tree.items()
        if kind == "tensor":
            return tensors[value]
        if kind == "number":
            return float(value) if isinstance(value, str) else value
        if kind == "size":
            return _size(value, dims)
        if kind in ("list", "tuple"):
            items = [self._value(item, tensors, dims) for item in value]
            return items if kind == "list" else tuple(items)
        if kind == "dict":
            return {key: self._value(item, tensors, dims) for key, item in value.items()}
        if kind == "dtype":
            return getattr(torch, value)
        if kind == "device":
            return torch.device(value)
        if kind == "name":
            return self._scope[value]
        if kind == "triton":
            return _triton_type(value)
        return value


def caller(scope: dict[str, Any], text: str) -> Caller:
    """Returns what calls the functions of a module.

    Raises:
        BuildError: A function is missing.
    """
    described = json.loads(text)
    for name in described["functions"]:
        function = scope.get(name)
        built = isinstance(function, ModuleType)  # an extension: what it lacks, its calls show
        if not (built or callable(function) or hasattr(function, "__getitem__")):
            needed = ", ".join(described["functions"])
            raise BuildError(f"the module defines no function {name!r}; it must define {needed}")
    import triton
    import triton.language as tl

    for name, module in (("torch", torch), ("triton", triton), ("tl", tl)):
        scope.setdefault(name, module)  # some implementations rely on the imports of their tests
    accept_annotated_globals()
    return Caller(scope, described["templates"])


def _size(expression: str, dims: Mapping[str, int]) -> int:
    product = 1
    for factor in expression.split("*"):
        product *= int(factor) if factor.isdigit() else dims[factor]
    return product


def _flat(result: object) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result if result.is_cuda else result.cuda()]
    if isinstance(result, list | tuple):
        return [tensor for value in result for tensor in _flat(value)]
    if isinstance(result, dict):
        return [tensor for value in result.values() for tensor in _flat(value)]
    if isinstance(result, bool | int | float):
        return [torch.tensor(result, device="cuda")]
    return []


def _gradients(
    outputs: Sequence[torch.Tensor],
    given: Sequence[torch.Tensor],
    forms: Sequence[Mapping[str, object]],
    tensors: Sequence[torch.Tensor],
) -> list[torch.Tensor]:
    floating = [tensor for tensor in outputs if tensor.is_floating_point()]
    pairs = [
        (tensor, g) for tensor, g in zip(floating, given, strict=False) if tensor.requires_grad
    ]
    wanted = [t for form, t in zip(forms, tensors, strict=True) if form["gradient"]]
    if not pairs or not wanted:
        return []
    ends, starts = zip(*pairs, strict=True)
    results = torch.autograd.grad(ends, wanted, starts, allow_unused=True)
    return [tensor for tensor in results if tensor is not None]


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a contiguous tensor. Complex numbers become pairs of real ones."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def _triton_type(name: str) -> object:
    import triton.language as tl

    short = {"fp": "float", "bf": "bfloat", "int": "int", "uint": "uint"}
    for prefix, long in short.items():
        if name.startswith(prefix) and name[len(prefix) :].isdigit():
            return getattr(tl, long + name[len(prefix) :])
    return getattr(tl, name)

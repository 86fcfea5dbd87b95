"""Traces a model's forward pass: which operators of PyTorch run in which module."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import nn
from torch._ops import OpOverload
from torch.nn.modules import module as hooks
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_gym.packages.models.pretrained import ModelOutput, PretrainedModel
from kernel_gym.packages.models.quantised import widen

Key = TypeVar("Key")
Item = TypeVar("Item")


@dataclass
class TracedModule:
    """One module in a trace.

    Attributes:
        path: Its path in the model. A function that is a module, such as the rotary embedding, has
            the path of its caller and its own name.
        module: The module.
        operators: Operators that ran in it and in modules below it.
        arguments: Positional arguments of its first call.
        keywords: Keyword arguments of its first call.
        returned: The type of the logits or the first output; None but for the whole model.
        children: Modules that it called.
    """

    path: str
    module: nn.Module
    operators: set[str] = field(default_factory=set)
    arguments: tuple[object, ...] = ()
    keywords: dict[str, object] = field(default_factory=dict)
    returned: torch.dtype | None = None
    children: list[TracedModule] = field(default_factory=list)


class _Operators(TorchDispatchMode):
    """Adds the name of each operator to all modules that are running."""

    def __init__(self, running: list[TracedModule]) -> None:
        super().__init__()
        self.running = running

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        name = func._schema.name.split("::")[-1].rstrip("_")
        for traced in self.running:
            traced.operators.add(name)
        return func(*args, **(kwargs or {}))


def trace(model: PretrainedModel, inputs: Mapping[str, torch.Tensor]) -> list[TracedModule]:
    """Runs a model once without gradients, and returns the modules that ran, parents first.

    It runs in the model's type, so that arguments of modules have the types that they have later:
    some models compute parts in fp32. Where PyTorch for CPUs lacks an operator for 16 bits, the
    model runs in fp32, and afterwards the model and the arguments have the model's type again.
    """
    try:
        return _trace(model, inputs)
    except RuntimeError:
        return _trace_wide(model, inputs)


def _trace_wide(model: PretrainedModel, inputs: Mapping[str, torch.Tensor]) -> list[TracedModule]:
    dtypes = {name: t.dtype for name, t in (*model.named_parameters(), *model.named_buffers())}
    dtype = model.dtype
    try:
        traced = _trace(widen(model, torch.float32), _cast(dict(inputs), torch.float32))
    finally:
        widen(model, dtype)
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            tensor.data = tensor.data.to(dtypes[name])
    for one in traced:
        one.arguments = tuple(_cast(dict(enumerate(one.arguments)), dtype).values())
        one.keywords = _cast(one.keywords, dtype)
        one.returned = None
    return traced


def _cast(values: Mapping[Key, Item], dtype: torch.dtype) -> dict[Key, Item | torch.Tensor]:
    return {
        key: v.to(dtype) if isinstance(v, torch.Tensor) and v.is_floating_point() else v
        for key, v in values.items()
    }


def _trace(model: PretrainedModel, inputs: Mapping[str, torch.Tensor]) -> list[TracedModule]:
    paths = {id(module): path for path, module in model.named_modules()}
    known: dict[tuple[int, str], TracedModule] = {}
    running: list[TracedModule] = []

    def before(module: nn.Module, arguments: tuple[object, ...]) -> None:
        caller = running[-1].path if running else ""
        name = paths.get(id(module))
        path = name if name is not None else f"{caller}.{function_name(module)}"
        key = (id(module), path)
        if key not in known:
            known[key] = TracedModule(path, module)
            if running:
                running[-1].children.append(known[key])
        running.append(known[key])

    def keep(module: nn.Module, arguments: tuple[object, ...], keywords: dict[str, object]) -> None:
        traced = running[-1]
        if not traced.arguments and not traced.keywords:
            traced.arguments, traced.keywords = arguments, dict(keywords)

    def after(module: nn.Module, arguments: object, result: object) -> None:
        running.pop()

    handles = [
        hooks.register_module_forward_pre_hook(before),
        hooks.register_module_forward_hook(after, always_call=True),
    ]
    own: dict[int, nn.Module] = {id(m): m for m in functions_of(model)}
    watched = [*model.modules(), *own.values()]
    handles += [m.register_forward_pre_hook(keep, with_kwargs=True) for m in watched]
    try:
        with torch.no_grad(), _Operators(running):
            result = model(**inputs)
    finally:
        for handle in handles:
            handle.remove()
    traced = list(known.values())
    traced[0].returned = first_of(result).dtype
    return traced


def first_of(result: ModelOutput) -> torch.Tensor:
    """Returns a model's logits, or the last hidden state of a model without."""
    logits = getattr(result, "logits", None)
    return result[0] if logits is None else result.logits


def extend_functions(model: PretrainedModel, names: Mapping[str, str]) -> None:
    """Makes functions that a model's modules call visible to `kernels.kernelize`.

    transformers decorates them itself if it supports the version of `kernels` that is installed.

    Args:
        model: The model.
        names: Names of functions in the files of models, each with its name in mappings of kernels.
    """
    from kernels import use_kernel_forward_from_hub

    for module in model.modules():
        forward = inspect.unwrap(type(module).forward)
        code = getattr(forward, "__code__", None)
        space = getattr(forward, "__globals__", {})
        for name in names.keys() & set(code.co_names if code else ()):
            if inspect.isfunction(function := space.get(name)):
                space[name] = use_kernel_forward_from_hub(names[name])(function)
            if isinstance(space.get(name), nn.Module):
                module.__dict__.setdefault("_kernel_funcs", {})[name] = space[name]


def functions_of(model: PretrainedModel) -> list[nn.Module]:
    """Returns the functions of a model that `kernels` has made modules, each once."""
    attached = (getattr(module, "_kernel_funcs", {}) for module in model.modules())
    return list({id(f): f for functions in attached for f in functions.values()}.values())


def function_name(module: nn.Module) -> str:
    """Returns the name of a function that is a module, or of a module's class."""
    return str(getattr(type(module), "kernel_layer_name", type(module).__name__))


def matches(
    traced: list[TracedModule], signatures: tuple[frozenset[str], ...]
) -> list[tuple[TracedModule, frozenset[str]]]:
    """Returns the lowest modules that run all operators of a signature, each with that one."""
    results = []
    for one in traced:
        for signature in signatures:
            if signature <= one.operators and not any(
                signature <= child.operators for child in one.children
            ):
                results.append((one, signature))
                break
    return results


def by_class(traced: list[TracedModule]) -> dict[type, list[TracedModule]]:
    """Returns traced modules by their class."""
    groups: dict[type, list[TracedModule]] = defaultdict(list)
    for one in traced:
        groups[type(one.module)].append(one)
    return groups

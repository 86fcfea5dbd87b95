"""Tries whether a layer of a package computes what a module of a model computes."""

from __future__ import annotations

import copy
import inspect
from collections import Counter
from types import ModuleType

import torch
from torch import nn

from kernel_gym.packages.models.operations import Operation
from kernel_gym.packages.models.trace import TracedModule

PROBE_TOLERANCE = 0.03
"""The largest difference of a layer and the module that it replaces, over the largest value. Both
round to 16 bits, in another order; another formula differs by far more."""
Result = torch.Tensor | tuple[torch.Tensor, ...]
OTHER_TYPE = "the type"
"""Begins a reason that says nothing of values, so that those of other layers say more."""
PROBE_SCALES = (1.0, 1e-3)
"""Scales of inputs: a small one shows another epsilon."""


def alike(one: TracedModule, other: TracedModule) -> bool:
    """Returns whether two modules of a class have the same parameters, settings and input types."""

    def facts(traced: TracedModule) -> tuple[object, ...]:
        module = traced.module
        simple = (bool, int, float, str, type(None))
        settings = {k: v for k, v in vars(module).items() if isinstance(v, simple)}
        settings.pop("layer_idx", None)
        shapes = [(name, tuple(p.shape), p.dtype) for name, p in module.named_parameters()]
        values = [*enumerate(traced.arguments), *traced.keywords.items()]
        kinds = [(name, v.dtype, v.ndim) for name, v in values if isinstance(v, torch.Tensor)]
        return sorted(settings.items(), key=lambda item: item[0]), shapes, kinds

    return facts(one) == facts(other)


def choose(traced: TracedModule, operation: Operation, kernel: ModuleType) -> tuple[str, str]:
    """Returns the layer that computes what a module does, or why there is none."""
    if operation.activation is not None and (wrong := _activation(traced.module, operation)):
        return "", wrong
    reasons: dict[str, list[str]] = {}
    for layer in operation.layers:
        if not (reason := differs(traced, getattr(kernel.layers, layer), kernel)):
            return layer, ""
        reasons.setdefault(reason, []).append(layer)
    values = [reason for reason in reasons if OTHER_TYPE not in reason]
    return "", "; ".join(f"{', '.join(reasons[one])}: {one}" for one in values or reasons)


def _activation(module: nn.Module, operation: Operation) -> str:
    """Returns why a gated MLP has not the activation of the operation; empty if it has."""
    assert operation.activation is not None
    names = ("act_fn", "activation_fn", "act", "activation")
    known = (getattr(module, name, None) for name in names)
    own = next((one for one in known if callable(one)), None)
    if own is None:
        return "it is no gated MLP: it has no activation of its own"
    points = torch.linspace(-6, 6, 97, dtype=torch.float64)
    if torch.allclose(own(points), operation.activation(points), rtol=1e-6, atol=1e-6):
        return ""
    return f"its activation is {type(own).__name__}, the package computes another"


@torch.no_grad()
def differs(traced: TracedModule, layer: type[nn.Module], kernel: ModuleType) -> str:
    """Returns why a layer does not compute what a module does on drawn values, or nothing.

    A layer that calls the module's own code computes nothing itself.

    Args:
        traced: The module.
        layer: The layer.
        kernel: The package, which counts calls of modules' own code.
    """
    module = traced.module
    expected = inspect.signature(type(module).forward).parameters
    if len(expected) != len(inspect.signature(layer.forward).parameters):
        return f"it takes {len(expected) - 1} arguments"
    generator = torch.Generator().manual_seed(0)
    for scale in PROBE_SCALES:
        twin = copy.deepcopy(module)
        for parameter in twin.parameters():
            drawn = torch.randn(parameter.shape, generator=generator)
            width = parameter.shape[-1] ** -0.5 if parameter.ndim > 1 else 1.0
            parameter.copy_(drawn * width)
        arguments, keywords = _drawn(traced, scale, generator)
        before = Counter(kernel.inputs.REFUSED)
        try:
            right = type(module).forward(twin, *arguments, **keywords)
            ours = layer.forward(twin, *arguments, **keywords)
        except Exception as error:
            return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:160]}"
        if refused := kernel.inputs.REFUSED - before:
            return next(iter(refused))
        if wrong := _apart(right, ours):
            return f"it computes something else: {wrong}"
    return ""


def _drawn(
    traced: TracedModule, scale: float, generator: torch.Generator
) -> tuple[list[object], dict[str, object]]:
    """Returns arguments like those of a module's first call, with other values.

    Tables of a rotary embedding, which are the arguments `cos` and `sin`, keep their values.
    """
    names = [*inspect.signature(type(traced.module).forward).parameters][1:]

    def draw(name: str, value: object) -> object:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        if name in ("cos", "sin"):
            return value
        return (scale * torch.randn(value.shape, generator=generator)).to(value.dtype)

    arguments = [draw(n, v) for n, v in zip(names, traced.arguments, strict=False)]
    return arguments, {name: draw(name, value) for name, value in traced.keywords.items()}


def _apart(right: Result, ours: Result) -> str:
    """Returns how far two results are apart, if it is too much."""
    pairs = zip(*((r if isinstance(r, tuple) else (r,)) for r in (right, ours)), strict=False)
    for expected, value in pairs:
        if expected.shape != value.shape:
            return f"the shape {list(value.shape)} for {list(expected.shape)}"
        largest = expected.float().abs().max().item()
        distance = (expected.float() - value.float()).abs().max().item()
        if not distance <= PROBE_TOLERANCE * largest:
            return f"it differs by {distance:.2g} of {largest:.2g}"
        if expected.dtype != value.dtype:
            return f"{OTHER_TYPE} {value.dtype} for {expected.dtype}"
    return ""

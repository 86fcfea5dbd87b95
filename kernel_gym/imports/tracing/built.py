"""A user's module with its inputs at some sizes, as one function of named tensors."""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

from kernel_gym.imports.tracing.on_cpu import OnCpu
from kernel_gym.imports.tracing.sources import Opened, Sources
from kernel_gym.sandbox.failures import BuildError

_TAKEN = frozenset({"self", "torch", "aten", "math", "inputs"})
"""Names that the written code uses itself."""


@dataclass
class Built:
    """The function that was constructed, and its arguments.

    Attributes:
        function: The module or function.
        arguments: Its arguments: positional ones and keywords, with tensors and other values.
        values: All tensors by name: inputs, parameters, buffers and other attributes of modules.
        kinds: By name: "input", "parameter" or "buffer".
        places: The position of an input among the leaves of the arguments; for other values all
            pairs of an owner and the name of its attribute.
        mode: The mode of fake tensors, or None for real ones.
        graph: The traced construction, or None for real tensors.
        doc: The documentation of the module or function.
    """

    function: Callable[..., object]
    arguments: tuple[tuple[object, ...], dict[str, object]]
    mode: FakeTensorMode | None
    graph: GraphModule | None = None
    values: dict[str, torch.Tensor] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    places: dict[str, Any] = field(default_factory=dict)
    doc: str = ""
    init: object = None
    """The arguments that the class was constructed with: positional ones, or keywords."""

    def add(self, name: str, kind: str, value: torch.Tensor, place: object) -> None:
        """Adds a tensor under an identifier that is like its name."""
        name = re.sub(r"\W", "_", name)
        name = f"arg_{name}" if not name.isidentifier() or keyword.iskeyword(name) else name
        while name in self.values or name in _TAKEN:
            name += "_"
        self.values[name], self.kinds[name], self.places[name] = value, kind, place

    def outputs(self, values: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Runs the forward pass on other values. Inputs that it writes to are outputs as well."""
        flat, spec = tree_flatten(self.arguments)
        versions = {}
        with ExitStack() as stack:
            for name, place in self.places.items():
                if self.kinds[name] == "input":
                    flat[place] = values[name]
                    versions[name] = _version(values[name])
                    continue
                for owner, attribute in place:
                    stack.enter_context(_attribute(owner, attribute, values[name]))
            stack.enter_context(OnCpu())
            args, kwargs = tree_unflatten(flat, spec)
            result = self.function(*args, **kwargs)
        outputs = _tensors(result)
        written = [values[n] for n, before in versions.items() if _version(values[n]) != before]
        known = {id(out) for out in outputs}
        outputs += [tensor for tensor in written if id(tensor) not in known]
        if not outputs:
            raise BuildError("it returns no tensor and writes to no input: there is nothing to do")
        return outputs


def _version(tensor: torch.Tensor) -> int:
    return tensor._version


def _tensors(result: object) -> list[torch.Tensor]:
    """Returns the tensors of a result.

    Raises:
        BuildError: Something else is in it.
    """
    leaves = [leaf for leaf in tree_flatten(result)[0] if leaf is not None]
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            kind = type(leaf).__name__
            raise BuildError(f"it returns a {kind}, expected tensors: return tensors only")
    return leaves


@contextmanager
def _attribute(owner: Any, name: str, value: torch.Tensor) -> Iterator[None]:
    """Replaces a parameter, buffer or attribute for a while."""
    for table in (owner._parameters, owner._buffers, vars(owner)):
        if name in table:
            before = table[name]
            table[name] = value
            try:
                yield
            finally:
                table[name] = before
            return


def build(sources: Sources, sizes: dict[str, int], train: bool, fake: bool) -> Built:
    """Executes the user's files and constructs the module and its inputs.

    Args:
        sources: The files.
        sizes: Sizes by name.
        train: Whether a module is in training mode, which is PyTorch's default.
        fake: Whether tensors hold no values. Then the construction is traced.
    """
    torch.manual_seed(0)
    if not fake:
        with torch.no_grad(), OnCpu(draws=True):
            return _collected(_construct(sources.open(sizes), train), None)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    made: list[Built] = []

    def construct() -> list[torch.Tensor]:
        built = _collected(_construct(sources.open(sizes), train), mode)
        made.append(built)
        return [built.values[n] for n, kind in built.kinds.items() if kind != "parameter"]

    with torch.no_grad(), mode, OnCpu(draws=True):
        graph = make_fx(construct)()
    made[0].graph = graph
    return made[0]


def _construct(opened: Opened, train: bool) -> _Made:
    """Returns the callable, its arguments, and those that its class was constructed with."""
    target, init = opened.target, None
    if inspect.isclass(target):
        if not issubclass(target, torch.nn.Module):
            raise BuildError(f"{target.__name__} is a class, expected a torch.nn.Module")
        module, init = _instance(target, opened)
        function: Callable[..., object] = module.train(train)
    else:
        function = target
    args, kwargs = _arguments(opened)
    return function, args, kwargs, init


_Made = tuple[Callable[..., object], tuple[object, ...], dict[str, object], object]


def _instance(target: type[torch.nn.Module], opened: Opened) -> tuple[torch.nn.Module, object]:
    if opened.init is not None:
        given = opened.init(**_fitting(opened.init, opened.sizes))
        return (target(**given) if isinstance(given, dict) else target(*given)), given
    needed = inspect.signature(target).parameters.values()
    known, sizes = {}, opened.sizes
    for parameter in needed:
        if parameter.name in sizes:
            known[parameter.name] = sizes[parameter.name]
        elif parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            raise BuildError(
                f"{target.__name__} needs the argument {parameter.name!r}: name a size like it, "
                "give it a default, or give --init FILE:FUNCTION that returns the arguments"
            )
    return target(**known), known


def _arguments(opened: Opened) -> tuple[tuple[object, ...], dict[str, object]]:
    if opened.inputs is None:
        return tuple(_drawn(shape, opened.sizes) for shape in opened.shapes), {}
    values = opened.inputs(**_fitting(opened.inputs, opened.sizes))
    if isinstance(values, dict):
        return (), values
    return (values,) if isinstance(values, torch.Tensor) else tuple(values), {}


def _fitting(function: Callable[..., object], sizes: dict[str, int]) -> dict[str, int]:
    """Returns the sizes that a function takes."""
    return {name: sizes[name] for name in inspect.signature(function).parameters if name in sizes}


def _drawn(stated: dict[str, Any], sizes: dict[str, int]) -> torch.Tensor:
    shape = [size if isinstance(size, int) else sizes[size] for size in stated["shape"]]
    dtype = getattr(torch, stated["dtype"])
    if dtype is torch.bool:
        return torch.randint(0, 2, shape).bool()
    if not dtype.is_floating_point:
        return torch.randint(0, stated["count"], shape, dtype=dtype)
    return torch.randn(shape).to(dtype)


def _collected(constructed: _Made, mode: FakeTensorMode | None) -> Built:
    """Finds all tensors of a module and of its arguments, and names them."""
    function, args, kwargs, init = constructed
    module = isinstance(function, torch.nn.Module)
    args, kwargs = tree_map_only(torch.Tensor, lambda t: t.detach(), (args, kwargs))
    called = function.forward if isinstance(function, torch.nn.Module) else function
    bound = inspect.signature(called).bind(*args, **kwargs)
    arguments = (bound.args, bound.kwargs)
    built = Built(function, arguments, mode, init=init)
    built.doc = (type(function) if module else function).__doc__ or ""
    for name, position in _input_names(function, bound):
        built.add(name, "input", tree_flatten(arguments)[0][position], position)
    if isinstance(function, torch.nn.Module):
        for path, module in function.named_modules():
            _add_attributes(built, path, module)
    return built


def _add_attributes(built: Built, path: str, module: torch.nn.Module) -> None:
    tables: dict[str, Mapping[str, torch.Tensor | None]]
    tables = {"parameter": module._parameters, "buffer": module._buffers}
    plain = {k: v for k, v in vars(module).items() if isinstance(v, torch.Tensor)}
    for kind, table in (*tables.items(), ("buffer", plain)):
        for name, value in table.items():
            if value is None:
                continue
            same = [n for n, known in built.values.items() if known is value]
            if same:  # tied weights
                built.places[same[0]].append((module, name))
                continue
            full = f"{path}.{name}" if path else name
            built.add(full, kind, value, [(module, name)])


def _input_names(function: object, bound: inspect.BoundArguments) -> Iterator[tuple[str, int]]:
    """Yields the name and the position, among all leaves, of each tensor in the arguments."""
    names: list[tuple[str, object]] = []
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            names += [(f"{name}_{i}", one) for i, one in enumerate(value)]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            names += list(value.items())
        else:
            names.append((name, value))
    position = 0
    for name, value in names:
        leaves = tree_flatten(value)[0]
        for number, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor):
                yield (name if len(leaves) == 1 else f"{name}_{number}"), position
            position += 1

"""Wraps the functions of a suite, and describes each call of them as JSON.

A description has the arguments as a tree. Its leaves are numbers of tensors, numbers that may be
sizes, numbers of seeds, and constants. Tensors are described by shape, strides, dtype and the class
of their values.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, ModuleType
from typing import Any, TypedDict

import torch

from kernel_gym.imports.upstream.classes import (
    DescribedTensor,
    DescribedValues,
    as_they_are,
    class_of,
    is_linked,
    wider,
    without_nan,
)

MAX_CALLS = 48
MAX_TENSORS = 64
MAX_ELEMENTS = 1 << 26
"""Most elements of a tensor that is looked at."""
MAX_WIDENED_ELEMENTS = 1 << 20
"""Most elements of a further call of the same sizes whose values are looked at."""
MAX_VARIANTS = 7
"""Most further sets of integers of one call that are kept."""
MAX_VARIED_ELEMENTS = 1 << 20
"""Most characters of all these sets."""


class NotDescribedError(Exception):
    """A call has an argument that cannot be made again from a description."""


class DescribedCall(TypedDict, total=False):
    """A call as JSON. The last two entries are known when the call is over."""

    function: str
    grid: list[int] | None
    args: list[object]
    kwargs: dict[str, object]
    tensors: list[DescribedTensor]
    variants: list[dict[str, DescribedValues | None]]
    """The integers of further calls, by the number of their tensor."""
    backward: bool
    """Whether a gradient was computed."""


class CallRecorder:
    """Records calls of functions at the outermost level: not those that they make themselves."""

    def __init__(self) -> None:
        self.calls: list[DescribedCall] = []
        self.refused: list[str] = []
        """Why calls could not be described, once for each reason."""
        self._depth = 0
        self._seen: dict[str, DescribedCall] = {}
        self.known_only = False
        """Whether calls of sizes that were not seen before are passed over."""
        self._widened = self._varied = 0
        self._names: dict[int, str] = {}

    @property
    def linked(self) -> bool:
        """Whether a recorded call has integers that belong together."""
        return any(is_linked(form) for call in self.calls for form in call["tensors"])

    def wrap(self, scope: dict[str, object], names: Sequence[str]) -> None:
        """Replaces functions of a module by recording ones."""
        self._names |= {
            id(value): name
            for name, value in scope.items()
            if callable(value) and not name.startswith("__")
        }
        for name in names:
            value = scope.get(name)
            if value is None or isinstance(value, _Kernel) or _is_inlined(name, scope):
                continue
            if hasattr(value, "run") and hasattr(value, "__getitem__"):
                scope[name] = _Kernel(self, name, value)
            elif isinstance(value, type):
                if hasattr(value, "apply"):
                    value.apply = staticmethod(self._wrapped(f"{name}.apply", value.apply))
            elif isinstance(value, ModuleType):
                self._wrap_extension(name, value)
            elif callable(value):
                scope[name] = self._wrapped(name, value)

    def _wrap_extension(self, name: str, module: ModuleType) -> None:
        """Replaces the functions of a module that `load_inline` has built."""
        for inner, value in list(vars(module).items()):
            if isinstance(value, BuiltinFunctionType):
                setattr(module, inner, self._wrapped(f"{name}.{inner}", value))

    def _wrapped(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        def recording(*args: object, **kwargs: object) -> object:
            return self.call(name, function, args, kwargs)

        with contextlib.suppress(AttributeError):
            functools.update_wrapper(recording, function)
        return recording

    def call(
        self,
        name: str,
        function: Callable[..., object],
        args: Sequence[object],
        kwargs: Mapping[str, object],
        grid: list[int] | None = None,
    ) -> object:
        """Calls a function, and describes the call."""
        if self._depth or (len(self.calls) >= MAX_CALLS and not self.known_only):
            return function(*args, **kwargs)
        described: DescribedCall | None = None
        before: list[torch.Tensor] = []
        tensors: list[torch.Tensor] = []
        try:
            described, tensors = self._describe(name, args, kwargs, grid)
            before = [tensor.detach().clone() for tensor in tensors]
        except NotDescribedError as error:
            self._refuse(f"{name}: {error}")
        self._depth += 1
        try:
            result = function(*args, **kwargs)
        finally:
            self._depth -= 1
        if described is not None:
            self._add(described, tensors, before, result)
        return result

    def _refuse(self, reason: str) -> None:
        if reason not in self.refused and len(self.refused) < MAX_CALLS:
            self.refused.append(reason[:200])

    def _describe(
        self,
        name: str,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        grid: list[int] | None,
    ) -> tuple[DescribedCall | None, list[torch.Tensor]]:
        tensors: list[torch.Tensor] = []
        trees = [self._tree(value, tensors) for value in args]
        named = {key: self._tree(value, tensors) for key, value in kwargs.items()}
        if len(tensors) > MAX_TENSORS:
            raise NotDescribedError(f"{len(tensors)} tensors")
        described: DescribedCall = {
            "function": name,
            "grid": grid,
            "args": trees,
            "kwargs": named,
            "tensors": [_form(tensor, tensors[:i]) for i, tensor in enumerate(tensors)],
        }
        key = json.dumps(described, sort_keys=True)
        if key in self._seen:
            self._widen(self._seen[key], tensors)
            return None, []
        if self.known_only:
            return None, []
        self._seen[key] = described
        return described, tensors

    def _widen(self, known: DescribedCall, tensors: list[torch.Tensor]) -> None:
        """Looks at the values of a call that differs in nothing else.

        The widest range of real numbers counts. Integers that belong together are kept together.
        """
        self._widened += 1
        most = MAX_CALLS * (1 + self.known_only)
        if self._widened > most or sum(t.numel() for t in tensors) > MAX_WIDENED_ELEMENTS:
            return
        forms = known["tensors"]
        if any("values" not in form for form in forms):  # a call that is not over, or that failed
            return
        for form, tensor in zip(forms, tensors, strict=True):
            if tensor.is_floating_point():
                form["values"] = wider(form["values"], class_of(tensor))
        self._vary(known, tensors)

    def _vary(self, known: DescribedCall, tensors: list[torch.Tensor]) -> None:
        """Keeps the integers of a further call that the first call has as they are."""
        forms = known["tensors"]
        linked = [k for k, form in enumerate(forms) if is_linked(form)]
        values = {str(k): as_they_are(tensors[k]) for k in linked}
        sets = [{str(k): forms[k]["values"] for k in linked}, *known["variants"]]
        size = len(json.dumps(values))
        if None in values.values() or values in sets or len(sets) > MAX_VARIANTS:
            return
        if self._varied + size <= MAX_VARIED_ELEMENTS:
            self._varied += size
            known["variants"].append(values)

    def _add(
        self,
        described: DescribedCall,
        tensors: list[torch.Tensor],
        before: list[torch.Tensor],
        result: object,
    ) -> None:
        forms = described["tensors"]
        for form, tensor, old in zip(forms, tensors, before, strict=True):
            form["mutated"] = not _same(tensor.detach(), old)
            form["values"] = class_of(old)
        changed = [t for form, t in zip(forms, tensors, strict=True) if form["mutated"]]
        if any(_holds_nan(t) for t in [*_outputs(result), *changed]):
            for form in forms:
                form["values"] = without_nan(form["values"])
        described["variants"] = []
        described["backward"] = False
        for output in _outputs(result):
            if output.requires_grad and output.grad_fn is not None:
                output.register_hook(functools.partial(_mark, described))
        self.calls.append(described)

    def _tree(self, value: object, tensors: list[torch.Tensor]) -> object:
        if isinstance(value, torch.Tensor):
            return {"tensor": self._number(value, tensors)}
        if value is None or isinstance(value, bool | str):
            return {"constant": value}
        if isinstance(value, _Seed):
            return {"seed": value.number}
        if isinstance(value, int | float):
            return {"number": value if abs(value) < float("inf") else str(value)}
        if isinstance(value, list | torch.Size | tuple):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self._tree(one, tensors) for one in value]}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"dict": {key: self._tree(one, tensors) for key, one in value.items()}}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": value.type}
        return self._named(value)

    def _named(self, value: object) -> dict[str, object]:
        """Describes an object that the implementation or Triton names."""
        inner = getattr(value, "wrapped", value)
        if id(inner) in self._names:
            return {"name": self._names[id(inner)]}
        if type(value).__module__.startswith("triton.language") and hasattr(value, "name"):
            return {"triton": str(value)}
        raise NotDescribedError(f"an argument is a {type(value).__name__}")

    def _number(self, tensor: torch.Tensor, tensors: list[torch.Tensor]) -> int:
        for index, other in enumerate(tensors):
            if other is tensor:
                return index
        if tensor.numel() > MAX_ELEMENTS:
            raise NotDescribedError(f"a tensor of {tensor.numel()} elements")
        if tensor.layout is not torch.strided or tensor.is_complex():
            raise NotDescribedError(f"a tensor of {tensor.dtype} and {tensor.layout}")
        tensors.append(tensor)
        return len(tensors) - 1


@dataclass(frozen=True)
class _Seed:
    """A seed of random numbers. The judge draws it for each call."""

    number: int


class _Kernel:
    """A `@triton.jit` kernel whose launches are recorded with their grid."""

    def __init__(self, recorder: CallRecorder, name: str, kernel: Any) -> None:
        self._recorder, self._name, self.wrapped = recorder, name, kernel

    def __getitem__(self, grid: object) -> object:
        def launch(*args: object, **kwargs: object) -> object:
            if callable(grid):
                names = getattr(self.wrapped, "arg_names", ())
                sizes = grid(dict(zip(names, args, strict=False)) | kwargs)
            else:
                sizes = grid
            plain = [int(size) for size in (sizes if isinstance(sizes, tuple | list) else (sizes,))]

            def run(*_: object, **__: object) -> object:
                return self.wrapped[grid](*args, **kwargs)

            return self._recorder.call(self._name, run, *self._with_seeds(args, kwargs), plain)

        return launch

    def _with_seeds(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[list[object], dict[str, object]]:
        """Marks the seeds among the arguments of a launch. They are no constants of the kernel."""
        function = self.wrapped
        while not hasattr(function, "params") and hasattr(function, "fn"):
            function = function.fn
        params = getattr(function, "params", ())
        seeds = [p.name for p in params if "seed" in p.name.lower() and not p.is_constexpr]
        numbers = {name: number for number, name in enumerate(seeds)}

        def marked(name: str, value: object) -> object:
            return _Seed(numbers[name]) if name in numbers and type(value) is int else value

        names = [p.name for p in params][: len(args)]
        first = [marked(name, value) for name, value in zip(names, args, strict=False)]
        return [*first, *args[len(names) :]], {k: marked(k, v) for k, v in kwargs.items()}

    def __getattr__(self, name: str) -> object:
        return getattr(self.wrapped, name)

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self.wrapped(*args, **kwargs)


def _is_inlined(name: str, scope: dict[str, object]) -> bool:
    """Whether another kernel calls a `@triton.jit` function, which then has to stay what it is."""
    if not hasattr(type(scope[name]), "run"):  # stubs of modules have every name themselves
        return False
    for other, value in scope.items():
        if not hasattr(type(value), "run") and not isinstance(value, _Kernel):
            continue
        function = value.wrapped if isinstance(value, _Kernel) else value
        while hasattr(function, "fn"):  # an autotuner has a kernel, which has a function
            function = function.fn
        if other != name and name in getattr(getattr(function, "__code__", None), "co_names", ()):
            return True
    return False


def _form(tensor: torch.Tensor, earlier: list[torch.Tensor]) -> DescribedTensor:
    start = tensor.untyped_storage().data_ptr()
    shared = [i for i, other in enumerate(earlier) if other.untyped_storage().data_ptr() == start]
    return {
        "shape": list(tensor.shape),
        "strides": list(tensor.stride()),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "device": tensor.device.type,
        "gradient": bool(tensor.requires_grad),
        "shares": shared[0] if shared and tensor.numel() else None,
    }


def _same(now: torch.Tensor, before: torch.Tensor) -> bool:
    if now.shape != before.shape or now.dtype != before.dtype:
        return False
    one, other = (t.contiguous().reshape(-1).view(torch.uint8) for t in (now, before))
    return torch.equal(one, other) if now.numel() else True


def _holds_nan(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and bool(torch.isnan(tensor.detach().float()).any())


def _outputs(result: object) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, list | tuple):
        return [output for value in result for output in _outputs(value)]
    return []


def _mark(described: DescribedCall, gradient: torch.Tensor) -> None:
    described["backward"] = True

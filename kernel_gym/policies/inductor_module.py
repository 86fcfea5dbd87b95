"""Writes the kernels and the host code of a compiled reference as the module of a candidate."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    from kernel_gym.tasks.problem import Problem

HEAD = '''"""TorchInductor's kernels for the reference of {name}."""

import math

import torch
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.triton_helpers import libdevice
from torch._inductor.runtime.triton_helpers import math as tl_math


def _view(tensor, size, stride, offset=0):
    return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)
'''
MAX_AUTOTUNE = "max-autotune"
"""The mode of `torch.compile` in which the compiler times more configurations."""
HELPER = "_triton_helper_fn"
"""Begins the names of functions that a kernel has beside it."""
SKIPPED = {"assert_size_stride", "assert_alignment", "get_raw_stream", "clear", "set_device"}
"""Functions of the host code that only check, or that choose a device."""
ALLOWED = {"size", "stride", "max", "min", "abs", "int", "float", "math"}
FORMS: dict[str, Callable[[float], float]] = {
    "scalar": lambda value: value,
    "root": lambda value: abs(value) ** 0.5,
    "inverse": lambda value: 1 / value if value else 0.0,
    "complement": lambda value: 1 - value,
}
"""Functions of a float scalar of which compiled code has multiples. Host code computes them."""
_NUMBER = re.compile(r"(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)")


class NoCandidateError(Exception):
    """The compiled graph is no candidate; the message says why."""


@dataclass
class Compiled:
    """A compiled reference.

    Attributes:
        host: The body of its host code.
        arguments: An expression of the reference's parameters for each input of the host code.
        kernels: Inductor's kernels by name.
    """

    host: list[ast.stmt]
    arguments: list[str]
    kernels: Mapping[str, CachingAutotuner]


def written(problem: Problem, compiled: Compiled, floats: Sequence[str]) -> str:
    """Returns the module of a compiled reference, in which float scalars are numbers.

    Args:
        problem: Its problem.
        compiled: The compiled reference.
        floats: The float scalars of the problem. Each kernel gets their `FORMS`.
    """
    kernels = (_kernel(name, kernel, floats) for name, kernel in compiled.kernels.items())
    host = HostCode(problem, compiled, floats).text()
    return "\n\n".join([HEAD.format(name=problem.name), *kernels, host]) + "\n"


def with_scalars(texts: Sequence[str], values: Sequence[Mapping[str, float]]) -> str:
    """Returns a text in which scalars stand for the numbers that change with them.

    Such a number is a multiple of one of `FORMS`.

    Args:
        texts: One text for each choice of the scalars.
        values: These choices.

    Raises:
        NoCandidateError: The texts differ in another way.
    """
    first, *others = ([*_NUMBER.split(text)] for text in texts)
    merged = list(first)
    for other in others:
        if len(other) != len(first) or first[::2] != other[::2]:
            raise NoCandidateError("the graph depends on a scalar otherwise than by value")
        for place in range(1, len(first), 2):
            if first[place] != other[place]:
                merged[place] = _multiple(float(first[place]), float(other[place]), *values)
    return "".join(merged)


def _multiple(first: float, second: float, *values: Mapping[str, float]) -> str:
    before, after = values
    for name, value in before.items():
        for form, function in FORMS.items():
            factor = first / function(value)
            if math.isclose(factor, second / function(after[name]), rel_tol=1e-12):
                return f"{form}_{name}" if factor == 1 else f"({form}_{name} * {factor!r})"
    raise NoCandidateError("the graph depends on a scalar otherwise than by a factor")


def _forms(floats: Sequence[str]) -> list[str]:
    """The parameters that each kernel gets for the float scalars."""
    return [f"{form}_{name}" for name in floats for form in FORMS]


def _kernel(name: str, kernel: CachingAutotuner, floats: Sequence[str]) -> str:
    """Returns a kernel and the function that launches it as Inductor does."""
    from torch._inductor.runtime.triton_heuristics import GridExpr, config_to_dict

    config = kernel.launchers[0].config
    grid, options = GridExpr.from_meta(kernel.inductor_meta, config), config_to_dict(config)
    scalars = _forms(floats)
    names = [*scalars, *(arg for arg in kernel.fn.arg_names if arg not in options)]
    parameters = [*names, *kernel.inductor_meta.get("extra_launcher_args", ())]
    given = [f"{arg}={arg}" for arg in names]
    given += [f"{key}={value!r}" for key, value in options.items()]
    text = re.sub(
        r"^def \w+\(", lambda head: head[0] + "".join(f"{s}, " for s in scalars), kernel.fn.src
    )
    text = text.replace(HELPER, f"{name}_helper")
    for arg, kind in kernel.triton_meta["signature"].items():
        if kind in ("i32", "i64"):  # Triton makes an argument of 1 a constant, without a type
            text = text.replace(f"({arg}).to(", f"(tl.full([], 0, tl.int64) + {arg}).to(")
    prefix = "".join(f"    {line}\n" for line in grid.prefix)
    return (
        f"{_helpers(name, kernel)}@triton.jit\n{text.rstrip()}\n\n\n"
        f"def run_{name}({', '.join(parameters)}):\n{prefix}"
        f"    grid = ({grid.x_grid}, {grid.y_grid}, {grid.z_grid})\n"
        f"    {name}[grid]({', '.join(given)})\n"
    )


def _helpers(name: str, kernel: CachingAutotuner) -> str:
    """Returns the functions that a kernel has beside it, such as the operator of a scan."""
    return "".join(
        f"@triton.jit\n{function.src.rstrip()}\n\n\n"
        for key, function in kernel.fn.fn.__globals__.items()
        if key.startswith(HELPER)
    ).replace(HELPER, f"{name}_helper")


class HostCode(ast.NodeTransformer):
    """Rewrites the host code of a compiled reference as the entry of a candidate.

    Args:
        problem: The problem.
        compiled: Its compiled reference.
        floats: The float scalars of which each kernel gets the `FORMS` first.
    """

    def __init__(self, problem: Problem, compiled: Compiled, floats: Sequence[str] = ()) -> None:
        self._problem = problem
        self._compiled = compiled
        self._floats = floats
        self._inputs: dict[str, str] = {}
        self._scalars = {arg.name for arg in problem.args if not hasattr(arg, "dtype")}

    def text(self) -> str:
        """Returns the function as text.

        Raises:
            NoCandidateError: It calls what a launch plan cannot hold.
        """
        module = ast.Module(self._compiled.host, [])
        body = ast.unparse(ast.fix_missing_locations(self.visit(module))).splitlines()
        names = [arg.name for arg in self._problem.args]
        written = {output.place for output in self._problem.outputs}
        lines = [
            f"{arg.name} = {arg.name}.contiguous()"
            for arg in self._problem.args
            if arg.name not in written and hasattr(arg, "dtype")
        ]
        for key in self._floats:
            lines.append(f"scalar_{key}, root_{key} = {key}, abs({key}) ** 0.5")
            lines.append(
                f"inverse_{key}, complement_{key} = 1 / {key} if {key} else 0.0, 1 - {key}"
            )
        head = f"def {self._problem.entry}({', '.join(names)}):"
        return "\n".join([head, *(f"    {line}" for line in [*lines, *body])])

    def visit_With(self, node: ast.With) -> list[ast.stmt]:
        """Leaves the statements within a guard of the device."""
        return [each for each in map(self.visit, node.body) if each is not None]

    def visit_Delete(self, node: ast.Delete) -> None:
        """Leaves out what frees memory: names end with the call."""

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | None:
        """Takes inputs from the parameters, and leaves out streams."""
        if isinstance(node.value, ast.Name) and node.value.id == "args":
            names = re.findall(r"\w+", ast.unparse(node.targets[0]))
            self._inputs = dict(zip(names, self._compiled.arguments, strict=True))
            text = f"({', '.join(names)},) = ({', '.join(self._compiled.arguments)},)"
            return ast.parse(text).body[0]
        if isinstance(node.value, ast.Call) and _called(node.value) in SKIPPED:
            return None
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | None:
        """Leaves out checks."""
        if isinstance(node.value, ast.Call) and _called(node.value) in SKIPPED:
            return None
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        """Returns what the problem states: graphs leave out inputs that are written in place."""
        self.generic_visit(node)
        assert isinstance(node.value, ast.Tuple)
        made = [ast.unparse(value) for value in node.value.elts]
        outputs = self._problem.outputs
        if len(made) != sum(not output.place for output in outputs):
            raise NoCandidateError(f"the graph returns {len(made)} tensors")
        values = [output.place or made.pop(0) for output in outputs]
        return ast.parse(f"return {', '.join(values)}").body[0]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Writes calls of kernels and of memory; refuses all others."""
        name = _called(node)
        words = [ast.unparse(self.visit(arg)) for arg in node.args]
        owner = ast.unparse(node.func).removesuffix(f".{name}")
        if name == "run" and owner in self._compiled.kernels:
            text = f"run_{owner}({', '.join([*_forms(self._floats), *words])})"
        elif name == "empty_strided_cuda":
            size, stride, dtype = words
            text = f"torch.empty_strided({size}, {stride}, dtype={dtype}, device='cuda')"
        elif name == "reinterpret_tensor":
            text = f"_view({', '.join(words)})"
        elif name == "copy_if_misaligned":
            text = words[0]
        elif name == "item" and self._inputs.get(owner) in self._scalars:
            text = owner  # PyTorch's compiler passes a float as a tensor
        elif owner in ALLOWED or name in ALLOWED:
            return self.generic_visit(node)  # type: ignore[return-value]
        else:
            raise NoCandidateError(f"the graph calls {ast.unparse(node.func)}")
        return ast.parse(text, mode="eval").body


def _called(node: ast.Call) -> str:
    """Returns the last part of the name of a called function."""
    return ast.unparse(node.func).rpartition(".")[2]

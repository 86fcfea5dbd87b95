"""The facts of a problem that a package's operator is written from.

Operators are opaque to `torch.compile`, which asks the fake implementation for shapes and breaks no
graph. The gradient runs the reference again, as an operator of its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernel_gym.packages.evidence import PackageError
from kernel_gym.tasks import Check, Problem, ScalarArg, TensorArg


@dataclass(frozen=True)
class OutputFacts:
    """One output: the sizes of its shape, as integer expressions, and its dtype by name.

    `unique` says whether there is one right answer, which tests can compare with.
    """

    shape: str
    dtype: str
    unique: bool


FUSED = frozenset({"rms_norm"})
"""Operations that models write as several operators of PyTorch, and their tasks as one."""


@dataclass(frozen=True)
class OperatorFacts:
    """The values of the template of an operator.

    Attributes:
        entry: The name of the function.
        space: The name space of the operator in PyTorch.
        summary: One line on what it computes.
        language: "triton" or "hip".
        parameters: The parameters with types, as text.
        names: The parameters, as text.
        tensors: The tensor arguments.
        floats: The floating-point arguments, each with its dtype by name.
        types: The same of all tensor arguments.
        axes_counts: How many axes each tensor argument has; None where its task says it in words.
        shapes: The sizes of each tensor argument, as integer expressions of the arguments; None
            where its task states them in words, or no argument states one of them.
        scalars: The scalar arguments.
        kinds: "tensor", "int" or "float" of each argument.
        real: The tensor arguments that may have a gradient.
        is_real: Whether each argument may have a gradient.
        graded: Numbers of the outputs that may have one; empty without a gradient.
        returned: The type of what is returned, as text.
        outputs: The outputs.
        axes: Axes that arguments state, each with an expression.
        sizes: Sizes that shapes of outputs need, each with an expression.
        c_sizes: Sizes that a HIP launcher takes after the outputs.
        fused: Whether plain PyTorch of the task is one call, where models make several.
    """

    entry: str
    space: str
    summary: str
    language: str
    parameters: str
    names: str
    tensors: tuple[str, ...]
    floats: tuple[tuple[str, str], ...]
    types: tuple[tuple[str, str], ...]
    axes_counts: list[int | None]
    shapes: tuple[str | None, ...]
    scalars: tuple[str, ...]
    kinds: tuple[str, ...]
    real: tuple[str, ...]
    is_real: tuple[bool, ...]
    graded: list[int]
    returned: str
    outputs: tuple[OutputFacts, ...]
    axes: tuple[tuple[str, str], ...]
    sizes: tuple[tuple[str, str], ...]
    c_sizes: tuple[str, ...]
    fused: bool


def operator_facts(problem: Problem, language: str) -> OperatorFacts:
    """Returns the facts of a problem's operator.

    Args:
        problem: The problem.
        language: "triton" or "hip".

    Raises:
        PackageError: The operation writes to its inputs, or arguments do not state all sizes.
    """
    tensors = tuple(arg for arg in problem.args if isinstance(arg, TensorArg))
    if written := [arg.name for arg in tensors if arg.in_place]:
        raise PackageError(
            f"{problem.name}: it writes to {', '.join(written)}, expected an operation that "
            "returns new tensors"
        )
    stated = _stated(problem)
    c_sizes = tuple(problem.c_sizes(next(iter(problem.train.values()))[0]))
    shapes = {output.name: _like_an_input(problem, output.shape) for output in problem.outputs}
    needed = {n for o in problem.outputs if not shapes[o.name] for n in _names(o.shape)}
    if language == "hip":
        needed |= set(c_sizes)
    if missing := sorted(needed - stated.keys()):
        raise PackageError(f"{problem.name}: no argument states the sizes {', '.join(missing)}")
    is_real = tuple(isinstance(a, TensorArg) and _may_have_gradient(a) for a in problem.args)
    real = tuple(arg.name for arg, yes in zip(problem.args, is_real, strict=True) if yes)
    graded = [i for i, output in enumerate(problem.outputs) if output.dtype.is_floating_point]
    count = len(problem.outputs)
    return OperatorFacts(
        entry=problem.entry,
        space=f"gpu_kernel_{problem.name}",
        summary=problem.summary.replace('"', "'").replace("\\", ""),
        language=language,
        parameters=", ".join(f"{arg.name}: {_type(arg)}" for arg in problem.args),
        names=", ".join(arg.name for arg in problem.args),
        tensors=tuple(arg.name for arg in tensors),
        floats=tuple((a.name, str(a.dtype)) for a in tensors if a.dtype.is_floating_point),
        types=tuple((arg.name, str(arg.dtype)) for arg in tensors),
        axes_counts=[axes_of(arg) for arg in tensors],
        shapes=tuple(_shape(arg, stated) for arg in tensors),
        scalars=tuple(arg.name for arg in problem.args if isinstance(arg, ScalarArg)),
        kinds=tuple(_type(arg).lower() for arg in problem.args),
        real=real,
        is_real=is_real,
        graded=graded if real else [],
        returned="Tensor" if count == 1 else f"tuple[{', '.join(['Tensor'] * count)}]",
        outputs=tuple(
            OutputFacts(
                shapes[output.name] or ", ".join(map(_integer, _split(output.shape))),
                str(output.dtype),
                output.check is not Check.CUSTOM,
            )
            for output in problem.outputs
        ),
        axes=tuple((a.name, stated[a.name]) for a in problem.axes if a.name in stated),
        sizes=tuple((n, stated[n]) for n in sorted(needed) if stated[n] != n),
        c_sizes=c_sizes,
        fused=problem.name in FUSED,
    )


def axes_of(tensor: TensorArg) -> int | None:
    """Returns how many axes a tensor argument has; None where its task says it in words."""
    sizes = _split(tensor.shape)
    return len(sizes) if sizes or not tensor.shape.strip() else None


def _shape(tensor: TensorArg, stated: Mapping[str, str]) -> str | None:
    """Returns the sizes of a tensor argument; None if one of them is not stated."""
    if axes_of(tensor) is None or set(_names(tensor.shape)) - stated.keys():
        return None
    return "".join(f"{_with(_parsed(size), stated)}, " for size in _split(tensor.shape))


def _parsed(size: str) -> ast.expr:
    return ast.parse(size, mode="eval").body


def _like_an_input(problem: Problem, shape: str) -> str:
    """Returns the sizes of an input with the same text, or an empty text."""
    same = (a.name for a in problem.args if isinstance(a, TensorArg) and a.shape == shape)
    name = next(same, "")
    return f"*{name}.shape" if name else ""


def _stated(problem: Problem) -> dict[str, str]:
    """Returns an expression for each size that arguments state, by a shape or a value.

    A size of a shape with one unknown name is solved for it: with `kv_heads` known, `kv_heads *
    group` states `group`.
    """
    known = {a.name: a.name for a in problem.args if isinstance(a, ScalarArg) and a.type is int}
    sizes = [
        (_parsed(size), f"{arg.name}.shape[{place}]")
        for arg in problem.args
        if isinstance(arg, TensorArg)
        for place, size in enumerate(_split(arg.shape))
    ]
    for _ in problem.axes:
        for size, value in sizes:
            unknown = [name for name in _names(ast.unparse(size)) if name not in known]
            if len(unknown) == 1 and (solved := _solved(size, unknown[0], value, known)):
                known[unknown[0]] = solved
    return known


def _solved(size: ast.expr, unknown: str, value: str, known: Mapping[str, str]) -> str:
    """Returns what an unknown name in a size is, if the size has a value; empty if not solved."""
    if isinstance(size, ast.Name):
        return value
    if not isinstance(size, ast.BinOp):
        return ""
    on_left = unknown in _names(ast.unparse(size.left))
    side, rest = (size.left, size.right) if on_left else (size.right, size.left)
    other = f"({_with(rest, known)})"
    match size.op:
        case ast.Mult():
            inner = f"({value} // {other})"
        case ast.Add():
            inner = f"({value} - {other})"
        case ast.Sub() if on_left:
            inner = f"({value} + {other})"
        case ast.Div() if on_left:
            inner = f"({value} * {other})"
        case _:
            return ""
    return _solved(side, unknown, inner, known)


def _with(size: ast.expr, known: Mapping[str, str]) -> str:
    """Returns a size with its names replaced by what they are, as an integer expression."""
    text = _integer(ast.unparse(size))
    return re.sub(r"[A-Za-z_]\w*", lambda match: known[match.group()], text)


def _may_have_gradient(arg: TensorArg) -> bool:
    return arg.dtype.is_floating_point and arg.dtype.itemsize > 1


def _type(arg: TensorArg | ScalarArg) -> str:
    return "Tensor" if isinstance(arg, TensorArg) else arg.type.__name__


def _split(shape: str) -> list[str]:
    """Returns the sizes of a shape's text; none for a shape that is stated in words."""
    try:
        parsed = ast.parse(f"[{shape}]", mode="eval").body
    except SyntaxError:
        return []
    assert isinstance(parsed, ast.List)
    return [ast.unparse(size) for size in parsed.elts]


def _names(shape: str) -> Iterator[str]:
    for size in _split(shape):
        for node in ast.walk(_parsed(size)):
            if isinstance(node, ast.Name) and node.id != "ceil":
                yield node.id


def _integer(size: str) -> str:
    """Returns a size of a shape's text as an integer expression of Python."""
    return ast.unparse(_WholeNumbers().visit(ast.parse(size, mode="eval")).body)


class _WholeNumbers(ast.NodeTransformer):
    """Divisions are exact or rounded up by `ceil`; both become divisions of integers."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Div):
            node.op = ast.FloorDiv()
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        (inner,) = node.args
        if not (isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div)):
            return self.visit(inner)
        above, below = (ast.unparse(self.visit(part)) for part in (inner.left, inner.right))
        return ast.parse(f"-(-({above}) // ({below}))", mode="eval").body

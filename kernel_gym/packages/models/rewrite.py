"""Rewrites a decoder layer so that a residual sum and the norm after it are one call."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable

from torch import nn

ADD = "_add_and_normalise"
Forward = Callable[..., object]
"""A forward method: takes a module and its arguments."""


def fused_forward(
    layer: type[nn.Module], step: Callable[..., object]
) -> tuple[Forward, tuple[str, ...]]:
    """Returns a forward method in which a sum and its norm are one call, and the norms' names.

    The method has to read, with any names for x and residual, as in Llama:

        x = residual + x
        residual = x
        x = self.norm(x)

    Args:
        layer: The class of the decoder layers.
        step: Takes a norm, x and residual; returns the normalised sum and the sum.

    Raises:
        LookupError: The method does not read so, or has no source.
    """
    try:
        source = textwrap.dedent(inspect.getsource(layer.forward))
    except (OSError, TypeError):
        raise LookupError("its forward method has no source") from None
    tree = ast.parse(source)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.decorator_list, function.returns = [], None
    for argument in (*function.args.args, *function.args.kwonlyargs):
        argument.annotation = None
    for extra in (function.args.vararg, function.args.kwarg):
        if extra is not None:
            extra.annotation = None
    names = _fuse(function.body)
    if not names:
        raise LookupError("its forward method has no residual sum that a norm follows")
    if any(isinstance(node, ast.Name) and node.id == "super" for node in ast.walk(tree)):
        raise LookupError("its forward method calls super()")
    space = dict(vars(sys.modules[layer.__module__])) | {ADD: step}
    exec(compile(ast.fix_missing_locations(tree), f"<fused {layer.__name__}>", "exec"), space)
    return space[function.name], names


def _fuse(body: list[ast.stmt]) -> tuple[str, ...]:
    """Fuses all places in a list of statements, in place; returns the norms' names."""
    names = []
    for at in range(len(body) - 2):
        if at + 2 < len(body) and (match := _match(*body[at : at + 3])):
            x, residual, norm = match
            text = f"{x}, {residual} = {ADD}(self.{norm}, {x}, {residual})"
            body[at : at + 3] = ast.parse(text).body
            names.append(norm)
    return tuple(names)


def _match(add: ast.stmt, keep: ast.stmt, norm: ast.stmt) -> tuple[str, str, str] | None:
    """Returns the names of x, residual and the norm, if three statements are the pattern."""
    texts = [ast.unparse(statement) for statement in (add, keep, norm)]
    if not (isinstance(add, ast.Assign) and isinstance(add.targets[0], ast.Name)):
        return None
    if not (isinstance(keep, ast.Assign) and isinstance(keep.targets[0], ast.Name)):
        return None
    x, residual = add.targets[0].id, keep.targets[0].id
    sums = (f"{x} = {residual} + {x}", f"{x} = {x} + {residual}")
    if texts[0] not in sums or texts[1] != f"{residual} = {x}":
        return None
    before, after = f"{x} = self.", f"({x})"
    name = texts[2].removeprefix(before).removesuffix(after)
    return (
        (x, residual, name)
        if texts[2] == f"{before}{name}{after}" and name.isidentifier()
        else None
    )

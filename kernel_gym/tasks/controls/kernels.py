"""Negative controls as submissions: start kernels changed into kernels that must never pass.

The controls in `answers.py` are answers. These are kernels, and go through all stages of an
evaluation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

from kernel_gym.tasks.problem import Problem

_ALLOCATORS = {"empty": "zeros", "empty_like": "zeros_like"}
_DECORATORS = {"triton": "jit", "flydsl": "kernel", "tilelang": "prim_func"}
"""The last name of the decorator of a kernel, by language."""
_KERNEL = re.compile(r"__global__[^;{]*\{")


def no_op(problem: Problem, language: str) -> str:
    """Returns the start kernel with empty GPU kernels. Launches happen but write nothing."""
    source = _source(problem, language)
    return _empty_hip(source) if language == "hip" else ast.unparse(_emptied(source, language))


def zeros(problem: Problem, language: str) -> str:
    """Returns the `no_op` control with outputs that the host allocates as zeros."""
    tree = _emptied(_source(problem, language), language)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _ALLOCATORS:
            node.attr = _ALLOCATORS[node.attr]
    return ast.unparse(tree)


def stale(problem: Problem, language: str) -> str:
    """Returns the start kernel with a cache: it returns its first answer for equal sizes."""
    entry = problem.entry
    return f"""{_source(problem, language)}

_computed, _kept = {entry}, {{}}


def {entry}(*args):
    key = tuple(getattr(arg, "shape", arg) for arg in args)
    if key not in _kept:
        _kept[key] = _computed(*args)
    return _kept[key]
"""


_IN_PYTHON = {"no-op launch": no_op, "zeros": zeros, "stale output": stale}
KERNELS: Mapping[str, Mapping[str, Callable[[Problem, str], str]]] = {
    "hip": {"no-op launch": no_op},
    **dict.fromkeys(_DECORATORS, _IN_PYTHON),
}
"""By language: the functions that make the submissions, by name of the control."""


def _source(problem: Problem, language: str) -> str:
    text = problem.kernel(language)
    if text is None:
        raise ValueError(f"{problem.name}: it has no kernel in {language!r}")
    return text


def _emptied(source: str, language: str) -> ast.Module:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _is_kernel(node, _DECORATORS[language]):
            node.body = _body_without_work(node)
    return tree


def _body_without_work(kernel: ast.FunctionDef) -> list[ast.stmt]:
    """Returns a body that does nothing, in the kernel's grid if the body states it.

    A body in TileLang does, as `with T.Kernel(...)`, in which something must be.
    """
    for at, statement in enumerate(kernel.body):
        if isinstance(statement, ast.With) and (language := _language_of(statement)):
            statement.body = ast.parse(f"{language}.evaluate(0)").body
            return kernel.body[: at + 1]
    return [ast.Pass()]


def _language_of(statement: ast.With) -> str:
    """Returns the name of TileLang's language module if it makes a grid; empty otherwise."""
    called = ast.unparse(statement.items[0].context_expr).partition("(")[0]
    module, _, name = called.rpartition(".")
    return module if name == "Kernel" else ""


def _is_kernel(function: ast.FunctionDef, decorator: str) -> bool:
    return any(decorator in ast.unparse(d).split(".") for d in function.decorator_list)


def _empty_hip(source: str) -> str:
    """Empties the body of each `__global__` function, by counting braces."""
    parts, rest = [], source
    while match := _KERNEL.search(rest):
        parts.append(rest[: match.end()] + "}")
        depth, end = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(rest[end], 0)
            end += 1
        rest = rest[end:]
    return "".join([*parts, rest])

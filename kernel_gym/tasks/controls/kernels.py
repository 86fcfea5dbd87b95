"""Negative controls as submissions: a start kernel turned into one that must never pass.

Where `controls.py` spoils results, these go through build, run and every stage of an evaluation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

from kernel_gym.tasks.problem import Problem

_ALLOCATORS = {"empty": "zeros", "empty_like": "zeros_like"}
_KERNEL = re.compile(r"__global__[^;{]*\{")


def no_op(problem: Problem, language: str) -> str:
    """The start kernel with every GPU kernel emptied: it launches, and nothing happens."""
    source = _source(problem, language)
    return _empty_hip(source) if language == "hip" else ast.unparse(_emptied(source))


def zeros(problem: Problem, language: str) -> str:
    """As `no_op`, over outputs that the host allocates as zeros."""
    tree = _emptied(_source(problem, language))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _ALLOCATORS:
            node.attr = _ALLOCATORS[node.attr]
    return ast.unparse(tree)


def stale(problem: Problem, language: str) -> str:
    """The start kernel, which hands out its first answer again whenever the sizes are the same."""
    entry = problem.entry
    return f"""{_source(problem, language)}

_computed, _kept = {entry}, {{}}


def {entry}(*args):
    key = tuple(getattr(arg, "shape", arg) for arg in args)
    if key not in _kept:
        _kept[key] = _computed(*args)
    return _kept[key]
"""


KERNELS: Mapping[str, Mapping[str, Callable[[Problem, str], str]]] = {
    "triton": {"no-op launch": no_op, "zeros": zeros, "stale output": stale},
    "hip": {"no-op launch": no_op},
}
"""By language, the submissions by the name of the control that they play."""


def _source(problem: Problem, language: str) -> str:
    text = problem.kernel(language)
    if text is None:
        raise ValueError(f"{problem.name}: it has no kernel in {language!r}")
    return text


def _emptied(source: str) -> ast.Module:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _is_kernel(node):
            node.body = [ast.Pass()]
    return tree


def _is_kernel(function: ast.FunctionDef) -> bool:
    return any("jit" in ast.unparse(d).split(".") for d in function.decorator_list)


def _empty_hip(source: str) -> str:
    """Empties the body of each `__global__` function, by counting braces."""
    parts, rest = [], source
    while found := _KERNEL.search(rest):
        parts.append(rest[: found.end()] + "}")
        depth, end = 1, found.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(rest[end], 0)
            end += 1
        rest = rest[end:]
    return "".join([*parts, rest])

"""Takes named kernels out of a candidate's text and puts them into a pristine text, by AST.

Nothing else of the candidate is taken, so it cannot change tests, timing or references that are in
the same file. No code runs.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence

from kernel_gym.imports.readers.halves import is_kernel


def splice(pristine: str, candidate: str, kernels: Sequence[str]) -> str:
    """Returns the pristine text with kernels of a candidate, and its new kernels as helpers.

    A named kernel that the candidate does not define is left out, so that the result does not load.
    A candidate that does not parse is returned unchanged: the build reports it.

    Args:
        pristine: The suite's own text, which parses.
        candidate: Untrusted text.
        kernels: The names of functions to take.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(candidate)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return candidate
    own = ast.parse(pristine)
    known = {node.name for node in own.body if isinstance(node, ast.FunctionDef)}
    offered = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    helpers = [n for name, n in offered.items() if name not in known and is_kernel(n)]
    lines = pristine.splitlines(keepends=True)
    for node in sorted(own.body, key=lambda n: -n.lineno):
        if isinstance(node, ast.FunctionDef) and node.name in kernels:
            taken = offered.get(node.name)
            text = [_text(candidate, taken)] if taken is not None else []
            lines[_first(node) - 1 : node.end_lineno] = text
    at = min((_first(n) for n in own.body if isinstance(n, ast.FunctionDef)), default=1) - 1
    lines[at:at] = [_text(candidate, node) + "\n" for node in helpers]
    return "".join(lines)


def kernels_alone(pristine: str, kernels: Sequence[str]) -> str:
    """Returns a module with the named functions of a text, as a candidate writes them."""
    wanted = [n for n in ast.parse(pristine).body if getattr(n, "name", "") in kernels]
    texts = [_text(pristine, node) for node in wanted if isinstance(node, ast.FunctionDef)]
    return "\n\n".join(["import triton\nimport triton.language as tl\n", *texts])


def _first(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _text(source: str, node: ast.FunctionDef) -> str:
    lines = source.splitlines(keepends=True)[_first(node) - 1 : node.end_lineno]
    return "".join(lines).rstrip("\n") + "\n"

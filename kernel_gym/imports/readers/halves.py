"""Files with an implementation and its tests, with a line of 146 `#` between them.

TritonBench, GEAK-eval and KernelBenchX have this form. Files are parsed here and never executed.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass

from kernel_gym.imports.readers.base import CheckoutError

SEPARATOR = "#" * 146


@dataclass(frozen=True)
class Halves:
    """A file with both halves.

    Attributes:
        implementation: The text before the separator.
        tests: The text behind it.
        line: The number of lines before the tests, separator included.
    """

    implementation: str
    tests: str
    line: int


def split_halves(name: str, text: str) -> Halves:
    """Splits a file at its only separator.

    Raises:
        CheckoutError: There is not exactly one, or a half is no Python.
    """
    lines = text.splitlines(keepends=True)
    at = [i for i, line in enumerate(lines) if line.strip() == SEPARATOR]
    if len(at) != 1:
        raise CheckoutError(f"{name}: found {len(at)} separators of 146 '#', expected one")
    parts = "".join(lines[: at[0]]), "".join(lines[at[0] + 1 :])
    for part in parts:
        parsed(name, part)
    return Halves(*parts, at[0] + 1)


def parsed(name: str, text: str) -> ast.Module:
    """Parses Python of a suite without running it.

    Raises:
        CheckoutError: It does not parse.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise CheckoutError(f"{name}: does not parse: {error}") from error


def defined_names(tree: ast.Module) -> list[str]:
    """Returns the functions, classes and aliases that a module defines at its top level."""
    names: dict[str, None] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] = None
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute | ast.Call):
            names |= {t.id: None for t in node.targets if isinstance(t, ast.Name)}
    return list(names)


def read_names(tree: ast.AST) -> set[str]:
    """Returns the names that a text reads, and the attributes that it gets."""
    nodes = list(ast.walk(tree))
    names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return names | {n.attr for n in nodes if isinstance(n, ast.Attribute)}


def tested_names(implementation: ast.Module, tests: ast.Module) -> list[str]:
    """Returns the names that the implementation defines and the tests use."""
    used = read_names(tests)
    return [name for name in defined_names(implementation) if name in used]


def redefined_names(implementation: ast.Module, tests: ast.Module) -> list[str]:
    """Returns the tested names that the tests define again: these test themselves."""
    again = {n.name for n in tests.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    return [name for name in tested_names(implementation, tests) if name in again]


def launchers_of(tests: ast.Module, kernels: Collection[str]) -> list[str]:
    """Returns the functions of a test half that launch kernels and are no tests or benchmarks."""
    functions = (node for node in tests.body if isinstance(node, ast.FunctionDef))
    return [
        function.name
        for function in functions
        if not re.match("test|main|.*bench", function.name) and set(kernels) & read_names(function)
    ]


def with_functions(halves: Halves, names: Collection[str]) -> str:
    """Returns the implementation with functions of the test half and all that they need of it."""
    if not names:
        return halves.implementation
    body = ast.parse(halves.tests).body
    wanted, taken = set(names), set[int]()
    while True:
        more = [i for i, n in enumerate(body) if i not in taken and wanted & set(_defined_by(n))]
        if not more:
            break
        taken |= set(more)
        wanted |= {name for i in more for name in read_names(body[i])}
    texts = [ast.unparse(body[i]) for i in sorted(taken)]
    return "\n\n".join([halves.implementation.rstrip(), *texts]) + "\n"


def _defined_by(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(name.asname or name.name).partition(".")[0] for name in node.names]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []


def autotuned_names(tree: ast.Module) -> list[str]:
    """Returns the kernels whose meta-parameters a search chooses, which decide on the grid."""
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return [
        function.name
        for function in functions
        if any("autotune" in ast.dump(decorator) for decorator in function.decorator_list)
    ]


def kernels_of(tree: ast.Module) -> list[str]:
    """Returns the functions at the top level of a module that Triton compiles."""
    return [
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and is_kernel(node)
    ]


def is_kernel(node: ast.AST) -> bool:
    """Whether a definition is a function that Triton compiles."""
    return isinstance(node, ast.FunctionDef) and any(
        "jit" in ast.dump(decorator) for decorator in node.decorator_list
    )

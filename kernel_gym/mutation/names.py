"""Which names of a Python module can be replaced by others everywhere without a change of meaning.

A name that is bound by assignments, functions and classes alone, outside of class bodies, and that
no string mentions, may have another text throughout the module: scopes stay what they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping


def parse(source: str) -> ast.Module | None:
    """The tree; None for what does not parse or is nested too deeply."""
    from kernel_gym.judge.screen import parse as parse_quietly

    try:
        return parse_quietly(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def unparse(tree: ast.Module) -> str | None:
    """The text; None for what is nested too deeply."""
    try:
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    except RecursionError:
        return None


def free_names(tree: ast.Module, entry: str) -> list[str]:
    """Names that can be replaced, sorted; never the entry."""
    bound = {name for node in ast.walk(tree) for name in _bound(node)}
    fixed = {name for node in ast.walk(tree) for name in _fixed(node)}
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return sorted(
        name
        for name in bound - fixed - {entry}
        if not name.startswith("__") and not any(name in text for text in texts)
    )


def all_names(tree: ast.Module) -> set[str]:
    """Every identifier in the module, so that a new one can differ from all of them."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names.union(*([*_bound(n), *_fixed(n)] for n in ast.walk(tree)))


def top_level_names(tree: ast.Module) -> set[str]:
    """What the module's own statements bind, imports included."""
    found: set[str] = set()
    for statement in tree.body:
        found |= binds(statement)
    return found


def binds(statement: ast.stmt) -> set[str]:
    """What a statement binds in its own scope."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names = {name for node in ast.walk(statement) for name in _bound(node)}
    for node in ast.walk(statement):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        if isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names


def rename(tree: ast.Module, names: Mapping[str, str]) -> ast.Module:
    """Replaces names everywhere, in place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.name = names.get(node.name, node.name)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            node.names = [names.get(name, name) for name in node.names]
    return tree


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name


def _fixed(node: ast.AST) -> Iterator[str]:
    """Names whose text matters elsewhere: parameters, imports, attributes of classes."""
    if isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]
        yield node.name
    elif isinstance(node, ast.keyword) and node.arg:
        yield node.arg
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
    elif isinstance(node, ast.ClassDef):
        for statement in node.body:
            yield from binds(statement)

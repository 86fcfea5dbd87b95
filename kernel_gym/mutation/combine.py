"""Two exploits of one task in one source."""

from __future__ import annotations

import ast
import random

from kernel_gym.mutation.names import free_names, parse, rename, top_level_names, unparse
from kernel_gym.mutation.python import fresh_names

_FORMS = (
    """
def {entry}(*args, **options):
    try:
        return {first}(*args, **options)
    except Exception:
        return {second}(*args, **options)
""",
    """
{turns} = [{first}, {second}]
def {entry}(*args, **options):
    {turns}.reverse()
    return {turns}[-1](*args, **options)
""",
)
"""The second where the first gives up, or both by turns."""


def combine(first: str, second: str, entry: str, draw: random.Random) -> str | None:
    """One source whose entry uses both.

    Args:
        first: a source.
        second: another of the same task.
        entry: of both.
        draw: what is drawn from.

    Returns:
        The source; None when their names cannot be told apart.
    """
    one, two = parse(first), parse(second)
    if one is None or two is None or not (_has(one, entry) and _has(two, entry)):
        return None
    shared = (top_level_names(one) & top_level_names(two)) - {entry}
    shared -= {name for name, _ in _imports(one) & _imports(two)}
    if not shared <= set(free_names(two, entry)):
        return None
    words = ["first", "second", "turns", *sorted(shared)]
    names = dict(zip(words, fresh_names(one, draw, len(words)), strict=True))
    rename(two, {name: names[name] for name in shared})
    for tree, name in ((one, names["first"]), (two, names["second"])):
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == entry:
                node.name = name
    form = draw.choice(_FORMS).format(entry=entry, **{word: names[word] for word in words[:3]})
    body = [*_future(one), *_future(two), *_rest(one), *_rest(two), *ast.parse(form).body]
    return unparse(ast.Module(body, []))


def _has(tree: ast.Module, entry: str) -> bool:
    return any(isinstance(n, ast.FunctionDef) and n.name == entry for n in tree.body)


def _imports(tree: ast.Module) -> set[tuple[str, str]]:
    """What the module imports: the name that it gives, and what is behind it."""
    nodes = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    return {
        ((a.asname or a.name).partition(".")[0], f"{getattr(node, 'module', '')}:{a.name}")
        for node in nodes
        for a in node.names
    }


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _future(tree: ast.Module) -> list[ast.stmt]:
    return [node for node in tree.body if _is_future(node)]


def _rest(tree: ast.Module) -> list[ast.stmt]:
    return [node for node in tree.body if not _is_future(node)]

"""Operators on Python sources, Triton kernels included: same meaning, other text."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from kernel_gym.mutation.names import all_names, binds, free_names, parse, rename, unparse

Function = ast.FunctionDef | ast.AsyncFunctionDef


def rename_names(source: str, entry: str, draw: random.Random) -> str | None:
    """Gives names of functions, classes and variables other texts."""
    tree = parse(source)
    names = free_names(tree, entry) if tree else []
    if tree is None or not names:
        return None
    chosen = draw.sample(names, draw.randint(1, len(names)))
    return unparse(
        rename(tree, dict(zip(chosen, fresh_names(tree, draw, len(chosen)), strict=True)))
    )


def reorder(source: str, entry: str, draw: random.Random) -> str | None:
    """Swaps neighbouring statements of the module that do not need each other's order."""
    tree = parse(source)
    if tree is None:
        return None
    changed = False
    for _ in range(2 * len(tree.body)):
        pairs = [i for i, pair in enumerate(pairwise(tree.body)) if _independent(*pair)]
        if not pairs:
            break
        i = draw.choice(pairs)
        tree.body[i], tree.body[i + 1] = tree.body[i + 1], tree.body[i]
        changed = True
    return unparse(tree) if changed else None


def wrap_entry(source: str, entry: str, draw: random.Random) -> str | None:
    """Puts a function, a lambda, a closure or an object before the entry."""
    tree = parse(source)
    body = tree.body if tree else []
    own = [n for n in body if isinstance(n, ast.FunctionDef) and n.name == entry]
    if tree is None or len(own) != 1:
        return None
    inner, other = fresh_names(tree, draw, 2)
    own[0].name = inner
    form = draw.choice(_WRAPPERS).format(entry=entry, inner=inner, other=other)
    tree.body += ast.parse(form).body
    return unparse(tree)


_WRAPPERS = (
    "def {entry}(*args, **options):\n    return {inner}(*args, **options)",
    "{entry} = lambda *args, **options: {inner}(*args, **options)",
    "def {other}(function):\n"
    "    def call(*args, **options):\n"
    "        return function(*args, **options)\n"
    "    return call\n"
    "{entry} = {other}({inner})",
    "class {other}:\n"
    "    def __init__(self, function):\n"
    "        self.function = function\n"
    "    def __call__(self, *args, **options):\n"
    "        return self.function(*args, **options)\n"
    "{entry} = {other}({inner})",
)


def respell(source: str, entry: str, draw: random.Random) -> str | None:
    """Writes numbers and texts of the host's code as expressions with the same value."""
    tree = parse(source)
    if tree is None:
        return None
    constants = list(_host_constants(tree))
    if not constants:
        return None
    chosen = draw.sample(constants, draw.randint(1, len(constants)))
    table = {id(node): _spelling(node.value, draw) for node in chosen}
    return unparse(_Replaced(table).visit(tree))


def outline(source: str, entry: str, draw: random.Random) -> str | None:
    """Moves a returned expression of a host function into a function called there and then."""
    tree = parse(source)
    returns = list(_host_returns(tree)) if tree else []
    if tree is None or not returns:
        return None
    chosen = draw.choice(returns)
    assert chosen.value is not None
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    chosen.value = ast.Call(ast.Lambda(empty, chosen.value), [], [])
    return unparse(tree)


def inline(source: str, entry: str, draw: random.Random) -> str | None:
    """Puts the expression of a function of one line into the place of its calls."""
    tree = parse(source)
    if tree is None:
        return None
    small = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef) and _is_small(f, tree)}
    inlined = _Inlined(small)
    tree = inlined.visit(tree)
    return unparse(tree) if inlined.count else None


PYTHON: Mapping[str, Callable[[str, str, random.Random], str | None]] = {
    "rename": rename_names,
    "reorder": reorder,
    "wrap": wrap_entry,
    "respell": respell,
    "outline": outline,
    "inline": inline,
}


def fresh_names(tree: ast.Module, draw: random.Random, count: int) -> list[str]:
    """Names that the module does not have."""
    known = all_names(tree)
    found: list[str] = []
    while len(found) < count:
        name = f"n{draw.getrandbits(40):010x}"
        if name not in known:
            known.add(name)
            found.append(name)
    return found


def _independent(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether two neighbours can be swapped: definitions, and values that call nothing."""
    if not (_is_quiet(first) and _is_quiet(second)):
        return False
    return not (
        binds(first) & (_read_now(second) | binds(second)) or binds(second) & _read_now(first)
    )


def _is_quiet(statement: ast.stmt) -> bool:
    """Whether running it does nothing but bind names."""
    if isinstance(statement, ast.FunctionDef):
        return not any(isinstance(d, ast.Call) for d in statement.decorator_list)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant):
        return False
    return all(isinstance(target, ast.Name) for target in statement.targets)


def _read_now(statement: ast.stmt) -> set[str]:
    """Names that are read when the statement runs: not those of a function's body."""
    nodes: list[ast.AST] = [statement]
    if isinstance(statement, ast.FunctionDef):
        nodes = [*statement.decorator_list, statement.args]
        nodes += [statement.returns] if statement.returns else []
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def _is_kernel(function: Function) -> bool:
    """Whether a compiler reads it: anything decorated may be a kernel."""
    return bool(function.decorator_list)


def _host_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Everything that Python itself runs: no kernels, decorators, annotations or class bodies."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function) and _is_kernel(child):
            continue
        if isinstance(child, ast.ClassDef | ast.arg | ast.JoinedStr | ast.AnnAssign | ast.Match):
            continue
        yield child
        yield from _host_nodes(child)


def _host_constants(tree: ast.Module) -> Iterator[ast.Constant]:
    docs = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in _host_nodes(tree):
        if isinstance(node, ast.Constant) and id(node) not in docs:
            is_number = type(node.value) is int and abs(node.value) < 1 << 62
            if is_number or (isinstance(node.value, str) and len(node.value) > 1):
                yield node


def _spelling(value: object, draw: random.Random) -> ast.expr:
    if isinstance(value, str):
        cut = draw.randint(1, len(value) - 1)
        return ast.BinOp(ast.Constant(value[:cut]), ast.Add(), ast.Constant(value[cut:]))
    assert isinstance(value, int)
    part = draw.randint(0, max(1, abs(value)))
    return ast.BinOp(ast.Constant(value + part), ast.Sub(), ast.Constant(part))


class _Replaced(ast.NodeTransformer):
    def __init__(self, table: Mapping[int, ast.expr]) -> None:
        self._table = table

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return self._table.get(id(node), node)


def _host_returns(tree: ast.Module) -> Iterator[ast.Return]:
    for node in _host_nodes(tree):
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        if not any(isinstance(n, _BOUND_TO_THEIR_SCOPE) for n in ast.walk(node.value)):
            yield node


_BOUND_TO_THEIR_SCOPE = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)


def _is_small(function: ast.FunctionDef, tree: ast.Module) -> bool:
    """One returned expression of its parameters and of names that are bound nowhere else."""
    args = function.args
    plain = not (args.posonlyargs or args.kwonlyargs or args.vararg or args.kwarg or args.defaults)
    if not plain or _is_kernel(function) or len(function.body) != 1:
        return False
    (only,) = function.body
    if not isinstance(only, ast.Return) or only.value is None:
        return False
    if any(isinstance(n, _SCOPES) for n in ast.walk(only.value)):
        return False
    own = {a.arg for a in args.args}
    read = {n.id for n in ast.walk(only.value) if isinstance(n, ast.Name)} - own
    functions = (f for f in ast.walk(tree) if isinstance(f, Function | ast.Lambda))
    local = {name for f in functions for name in _locals(f)}
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == function.name]
    return not read & local and bool(calls)


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (ast.Lambda, *_COMPREHENSIONS, ast.NamedExpr, ast.Await)


def _locals(function: ast.AST) -> set[str]:
    found = {n.arg for n in ast.walk(function) if isinstance(n, ast.arg)}
    body = getattr(function, "body", [])
    for statement in body if isinstance(body, list) else []:
        found |= binds(statement)
    return found


class _Inlined(ast.NodeTransformer):
    """Calls with plain names and constants, outside of kernels."""

    def __init__(self, small: Mapping[str, ast.FunctionDef]) -> None:
        self._small, self.count = small, 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node if _is_kernel(node) else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = self._small.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if function is None or node.keywords or len(node.args) != len(function.args.args):
            return node
        if not all(isinstance(arg, ast.Name | ast.Constant) for arg in node.args):
            return node
        self.count += 1
        names = [a.arg for a in function.args.args]
        (only,) = function.body
        assert isinstance(only, ast.Return)
        copy = ast.parse(ast.unparse(only.value or ast.Constant(None)), mode="eval").body
        return _Substituted(dict(zip(names, node.args, strict=True))).visit(copy)


class _Substituted(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._values.get(node.id, node)

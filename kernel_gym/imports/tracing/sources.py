"""A user's files as modules in which the sizes can be changed."""

from __future__ import annotations

import ast
import importlib
import linecache
import os
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kernel_gym.sandbox.failures import BuildError

_USER = "user_files"


class Sources:
    """The files of a user, and what to trace in them.

    Args:
        files: Texts by path, relative to one folder.
        target: `file:name` of a module class or a function.
        inputs: `file:name` of the function that makes the inputs, or None if `shapes` states them.
        init: `file:name` of the function that returns the arguments of the class, or None.
        shapes: Inputs by name, dtype and shape; sizes in it may be names.
        literals: Sizes that are literals in a file: path, line, column and name of each.
    """

    def __init__(
        self,
        files: dict[str, str],
        target: str,
        inputs: str | None = None,
        init: str | None = None,
        shapes: Sequence[dict[str, object]] = (),
        literals: Sequence[tuple[str, int, int, str]] = (),
    ) -> None:
        self.target, self.inputs, self.init, self.shapes = target, inputs, init, shapes
        self._files = files
        self._literals = {(path, line, column): name for path, line, column, name in literals}
        self._folder = Path(os.environ["TMPDIR"]) / _USER
        for path, text in files.items():
            place = self._folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        self._known = set(sys.modules)
        for file in {name.split(":")[0] for name in (target, inputs, init) if name}:
            sys.path.insert(0, str((self._folder / file).parent))
        sys.path.insert(0, str(self._folder))

    def open(self, sizes: dict[str, int]) -> Opened:
        """Executes the files with other sizes."""
        for name in set(sys.modules) - self._known:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if file.startswith(str(self._folder)):
                del sys.modules[name]
        return Opened(self, sizes)

    def execute(self, path: str, sizes: dict[str, int]) -> types.ModuleType:
        """Executes one file."""
        if path not in self._files:
            raise BuildError(f"{path}: found no such file, expected one of {sorted(self._files)}")
        place = str(self._folder / path)
        tree = _Resized(path, sizes, self._literals).visit(ast.parse(self._files[path], place))
        module = types.ModuleType(Path(path).stem)
        module.__file__ = place
        sys.modules[module.__name__] = module
        linecache.checkcache(place)
        importlib.invalidate_caches()
        code = compile(ast.fix_missing_locations(tree), place, "exec", dont_inherit=True)
        exec(code, module.__dict__)
        return module


class Opened:
    """The files of a user after their execution with some sizes."""

    def __init__(self, sources: Sources, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self.shapes = sources.shapes
        self._sources = sources
        self._modules: dict[str, types.ModuleType] = {}
        self.target = self._find(sources.target)
        self.inputs = self._find(sources.inputs) if sources.inputs else None
        self.init = self._find(sources.init) if sources.init else None

    def _find(self, name: str) -> Callable[..., Any]:
        path, _, attribute = name.partition(":")
        if path not in self._modules:
            self._modules[path] = self._sources.execute(path, self.sizes)
        value = getattr(self._modules[path], attribute, None)
        if value is None:
            defined = [n for n, v in vars(self._modules[path]).items() if callable(v)]
            raise BuildError(f"{path} defines no {attribute!r}; it defines {', '.join(defined)}")
        if not callable(value):
            raise BuildError(f"{name} is a {type(value).__name__}, expected a class or function")
        return value


class _Resized(ast.NodeTransformer):
    """Replaces integers of a module by other sizes."""

    def __init__(
        self, path: str, sizes: dict[str, int], literals: dict[tuple[str, int, int], str]
    ) -> None:
        self._path, self._sizes, self._literals = path, sizes, literals

    def visit_Module(self, node: ast.Module) -> ast.Module:
        for statement in node.body:
            if isinstance(statement, ast.Assign):
                self._resize(statement)
        self.generic_visit(node)
        return node

    def _resize(self, statement: ast.Assign) -> None:
        """Replaces the values of `a = 1`, `a = b = 1` and `a, b = 1, 2`."""
        target = statement.targets[0]
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            pairs = zip(target.elts, statement.value.elts, strict=False)
            statement.value.elts = [self._resized(*pair) for pair in pairs]
        else:
            statement.value = self._resized(target, statement.value)

    def _resized(self, target: ast.expr, value: ast.expr) -> ast.expr:
        plain = not any(isinstance(n, ast.Name | ast.Call | ast.Tuple) for n in ast.walk(value))
        if plain and isinstance(target, ast.Name) and target.id in self._sizes:
            return ast.copy_location(ast.Constant(self._sizes[target.id]), value)
        return value

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        name = self._literals.get((self._path, node.lineno, node.col_offset))
        if name is None or type(node.value) is not int or name not in self._sizes:
            return node
        return ast.copy_location(ast.Constant(self._sizes[name]), node)

"""TorchInductor's modules in a form that a small policy can write.

Names follow from the graph, as in the templates: a kernel's parameters have the names of what the
entry passes, and sizes are `rows` and `cols`. Statements without effect go, such as copies of
names, and the entry launches the kernels itself. Arithmetic and launches stay TorchInductor's.
"""

from __future__ import annotations

import ast
import copy
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from kernel_gym.policies.inductor_module import NoCandidateError
from kernel_gym.tasks.problem import Problem, TensorArg

_TEMPORARY = re.compile(r"\b(_?)tmp(\d+)(?!\d)")
_BUFFER = re.compile(r"buf\d+")
_PLAIN = (
    ast.Name,
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.Tuple,
    ast.Subscript,
    ast.operator,
    ast.unaryop,
    ast.expr_context,
)
"""Nodes of a value that may be computed wherever it is read."""
_SIZE = re.compile(r"(\w+)\.size\(\)(?:\[(\d+)\])?")

Values = dict[str, ast.expr]


def shortened(source: str, problem: Problem) -> str:
    """Returns a module that computes the same in fewer tokens.

    Args:
        source: A module of :func:`kernel_gym.policies.inductor_module.written`.
        problem: Its problem. The first argument is a tensor.

    Raises:
        NoCandidateError: The entry has other statements than assignments and launches, calls what
            the module does not define, or launches a kernel twice.
    """
    module = ast.parse(source)
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    entry = _Entry(problem, functions)
    texts = [entry.text()]
    needed = set(_words(texts[0]))
    for name, function in reversed(functions.items()):  # what is called is defined before
        if function.name in needed and name != problem.entry:
            texts.insert(0, _kernel_text(function))
            needed |= set(_words(texts[0]))
    imports = (n for n in module.body if isinstance(n, ast.Import | ast.ImportFrom))
    lines = [ast.unparse(node) for node in imports if _imported(node) in needed]
    return "\n\n\n".join(["\n".join(lines), *texts]) + "\n"


def _words(text: str) -> Iterator[str]:
    return (match[0] for match in re.finditer(r"\w+", text))


def _imported(node: ast.Import | ast.ImportFrom) -> str:
    return node.names[0].asname or node.names[0].name


class _Entry:
    """The entry of a module, and what it passes to the kernels, which are renamed for it."""

    def __init__(self, problem: Problem, functions: Mapping[str, ast.FunctionDef]) -> None:
        self._functions = functions
        self._node = functions[problem.entry]
        self._axes = {
            arg.name: [axis.strip() for axis in arg.shape.split(",")]
            for arg in problem.args
            if isinstance(arg, TensorArg)
        }
        self._first = problem.args[0].name
        self._values = Values()
        self._launched: set[str] = set()
        self._buffers = itertools.count()

    def text(self) -> str:
        """Returns the entry as text. Kernels that it launches get their names."""
        made = copy.copy(self._node)
        sizes = f"{', '.join(self._axes[self._first])} = {self._first}.shape"
        made.body = [*ast.parse(sizes).body, *self._lines(self._node.body)]
        return ast.unparse(ast.fix_missing_locations(made))

    def _lines(self, body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for node in body:
            if isinstance(node, ast.Return) and node.value:
                yield ast.Return(self._resolved(node.value))
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                yield from self._call(node.value)
            elif isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
                yield from self._assignment(target.id, node.value)
            elif isinstance(node, ast.Assign) and isinstance(values := node.value, ast.Tuple):
                assert isinstance(target, ast.Tuple)
                for name, value in zip(target.elts, values.elts, strict=True):
                    yield from self._assignment(ast.unparse(name), value)
            else:
                raise NoCandidateError(f"the entry has the statement {ast.unparse(node)!r}")

    def _assignment(self, name: str, written: ast.expr) -> Iterator[ast.stmt]:
        """Keeps what is plain as a value of the name; writes a statement for what is not."""
        value = self._resolved(written)
        plain = all(isinstance(node, _PLAIN) for node in ast.walk(value))
        if plain or _SIZE.fullmatch(ast.unparse(value)):
            self._values[name] = value
            return
        short = f"u{next(self._buffers)}" if _BUFFER.fullmatch(name) else name
        if short != name:
            self._values[name] = ast.Name(short, ast.Load())
        yield ast.Assign([ast.Name(short, ast.Store())], value)

    def _resolved(self, node: ast.expr) -> ast.expr:
        return _Resolve(self._values, self._axes, self._first).visit(copy.deepcopy(node))

    def _call(self, call: ast.Call) -> Iterator[ast.stmt]:
        """Writes a launch in place of the call of a function that launches."""
        if isinstance(call.func, ast.Subscript):
            yield ast.Expr(self._launch(call))
            return
        launcher = self._function(ast.unparse(call.func))
        names = (arg.arg for arg in launcher.args.args)
        self._values |= dict(zip(names, map(self._resolved, call.args), strict=True))
        yield from self._lines(launcher.body)

    def _function(self, name: str) -> ast.FunctionDef:
        if name not in self._functions:
            raise NoCandidateError(f"the entry calls {name!r}, which the module does not define")
        return self._functions[name]

    def _launch(self, call: ast.Call) -> ast.Call:
        """Returns a launch, and names the kernel's parameters by what it passes."""
        assert isinstance(call.func, ast.Subscript)
        name = ast.unparse(call.func.value)
        if name in self._launched:
            raise NoCandidateError("the entry launches a kernel twice")
        short = f"kernel{len(self._launched)}"
        self._launched.add(name)
        kernel = self._function(name)
        given = {str(word.arg): self._resolved(word.value) for word in call.keywords}
        renamed: dict[str, str] = {}
        passed: list[ast.expr] = []
        for argument in list(kernel.args.args):
            if argument.annotation is not None:  # of tl.constexpr
                continue
            value, parameter = given.pop(argument.arg), argument.arg
            if isinstance(value, ast.Name):
                parameter = f"{value.id}_ptr" if "ptr" in argument.arg else value.id
            if parameter in renamed.values():
                kernel.args.args.remove(argument)
            else:
                passed.append(value)
            renamed[argument.arg] = argument.arg = parameter
        kernel.name = short
        for node in ast.walk(kernel):
            if isinstance(node, ast.Name):
                node.id = renamed.get(node.id, node.id)
        grid = _RoundedUp().visit(self._resolved(call.func.slice))
        assert isinstance(grid, ast.Tuple)
        while len(grid.elts) > 1 and ast.unparse(grid.elts[-1]) == "1":
            grid.elts.pop()
        options = [ast.keyword(key, value) for key, value in given.items()]
        return ast.Call(ast.Subscript(ast.Name(short), grid), passed, options)


class _Resolve(ast.NodeTransformer):
    """Replaces names by their values, and sizes by their axes."""

    def __init__(self, values: Values, axes: Mapping[str, list[str]], first: str) -> None:
        self._values, self._axes, self._known = values, axes, axes[first]

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replaces a name."""
        return copy.deepcopy(self._values.get(node.id, node))

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Replaces `x.size()[1]` by the name of the axis."""
        self.generic_visit(node)
        match = _SIZE.fullmatch(ast.unparse(node))
        if match and match[1] in self._axes:
            axis = self._axes[match[1]][int(match[2])]
            if axis in self._known:
                return ast.Name(axis, ast.Load())
        return node


class _RoundedUp(ast.NodeTransformer):
    """Writes quotients that are rounded up as in Triton."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """Writes `-(n // -512)` as a call of `triton.cdiv`."""
        self.generic_visit(node)
        match node:
            case ast.UnaryOp(
                ast.USub(), ast.BinOp(value, ast.FloorDiv(), ast.UnaryOp(ast.USub(), divisor))
            ):
                function = ast.Attribute(ast.Name("triton", ast.Load()), "cdiv", ast.Load())
                return ast.Call(function, [value, divisor], [])
        return node


def _kernel_text(kernel: ast.FunctionDef) -> str:
    """Returns a kernel without copies of names and unread values; temporaries count from 0."""
    while _Copies.removed_from(kernel) or _unread_removed_from(kernel):
        pass
    numbers: dict[str, str] = {}

    def short(match: re.Match[str]) -> str:
        letter = "a" if match[1] else "t"
        return letter + numbers.setdefault(match[2], str(len(numbers)))

    return _TEMPORARY.sub(short, ast.unparse(ast.fix_missing_locations(kernel)))


def _assignments(kernel: ast.FunctionDef) -> dict[str, list[ast.expr | None]]:
    """Returns what each name gets; None for what is no plain assignment."""
    parameters = [argument.arg for argument in kernel.args.args]
    values: dict[str, list[ast.expr | None]] = {name: [None] for name in parameters}
    plain: set[ast.expr] = set()
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
            values.setdefault(target.id, []).append(node.value)
            plain.add(target)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in plain:
            values.setdefault(node.id, []).append(None)
    return values


class _Copies(ast.NodeTransformer):
    """Replaces names that are always copies of one other name, and removes their assignments."""

    def __init__(self, copies: Mapping[str, str]) -> None:
        self._copies = copies

    @classmethod
    def removed_from(cls, kernel: ast.FunctionDef) -> bool:
        """Removes copies, of names or of casts to the dtype that a value has."""
        given = _assignments(kernel)
        copies: dict[str, str] = {}
        for name, values in given.items():
            texts = {ast.unparse(value) if value else "" for value in values}
            text = texts.pop() if len(texts) == 1 else ""
            origin, _, cast = text.partition(".")
            if origin not in given or origin in copies:
                continue
            same = [ast.unparse(value) if value else "" for value in given[origin]]
            if not cast or all(other.endswith(f").{cast}") for other in same):
                copies[name] = origin
        cls(copies).visit(kernel)
        return bool(copies)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | None:
        """Removes the assignment of a copy."""
        if isinstance(node.targets[0], ast.Name) and node.targets[0].id in self._copies:
            return None
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """Replaces a copy."""
        node.id = self._copies.get(node.id, node.id)
        return node


def _unread_removed_from(kernel: ast.FunctionDef) -> bool:
    """Removes assignments of names that nothing reads, and assertions, which are compiled away."""
    read = Counter(
        node.id
        for node in ast.walk(kernel)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )
    removed = False
    for node in ast.walk(kernel):
        if isinstance(node, ast.FunctionDef | ast.For | ast.While | ast.If):
            kept = [line for line in node.body if not _has_no_effect(line, read)]
            removed |= len(kept) < len(node.body)
            node.body = kept
    return removed


def _has_no_effect(line: ast.stmt, read: Mapping[str, int]) -> bool:
    match line:
        case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)):
            return name not in read
        case ast.Expr(ast.Call(ast.Attribute(attr="device_assert"))):
            return True
    return False

"""A user's request for a problem: files, names in them, and how its inputs are made."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kernel_gym.errors import InputError
from kernel_gym.imports.traced.graph import DTYPES
from kernel_gym.tasks.inside import read_inside

_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
MAX_SIZE = 1 << 40
MAX_FILES, MAX_BYTES = 400, 4 << 20
DEFAULT_SIZES = {"batch": 8, "seq": 512, "heads": 8, "tokens": 512, "rows": 512}
"""Sizes of axes that are only named; the others are 1024."""


class RequestError(InputError, ValueError):
    """The request cannot be read. The message says what was found and what is expected."""


@dataclass(frozen=True)
class Shape:
    """A stated input. `count` is the number of legal values of an integer."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    count: int = 2

    def to_json(self) -> dict[str, object]:
        """Returns JSON-able data."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "count": self.count,
        }


@dataclass(frozen=True)
class TracingRequest:
    """The code to trace.

    Attributes:
        files: Texts by path relative to one folder.
        target: `file:name` of a module class or function.
        inputs: `file:name` of the function that makes the inputs; None if `shapes` is given.
        init: `file:name` of the function that returns the arguments of the class, or None.
        shapes: The inputs, if no function makes them.
        sizes: Sizes that the user gives, by name.
        fixed: Sizes that must not vary.
        points: Sizes to use on GPUs; without any, sizes near those of the code are chosen.
        called: The function of a candidate with the target's parameters; a class has `ModelNew`.
        widths: Whether integers in the classes of the target's file, such as numbers of channels,
            are sizes. Networks with fixed channels have no small twin otherwise.
    """

    files: Mapping[str, str]
    target: str
    inputs: str | None = None
    init: str | None = None
    shapes: Sequence[Shape] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    points: Sequence[Mapping[str, int]] = ()
    called: str = ""
    widths: bool = False

    @property
    def text(self) -> str:
        """The file with the target."""
        return self.files[self.target.split(":")[0]]


def read_files(names: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Reads the files of names such as `folder/model.py:Block`, and all Python files beside them.

    Returns:
        The texts by path relative to the folder of the first file, and the names relative to it.

    Raises:
        RequestError: A name has another form, or a file cannot be read or parsed.
    """
    pairs = [_parted(name) for name in names]
    folder = pairs[0][0].resolve().parent
    files: dict[str, str] = {}
    for path, _ in pairs:
        files[_relative(path, folder)] = _read(path)
    size = sum(map(len, files.values()))
    for path in sorted(folder.rglob("*.py")):
        if len(files) >= MAX_FILES or size >= MAX_BYTES:
            break
        if any(part.startswith(".") or part == "site-packages" for part in path.parts[1:]):
            continue
        name = str(path.relative_to(folder))
        if name in files:
            continue
        with suppress(OSError):  # too long, or a link that leads out of the folder
            data = read_inside(folder, path, MAX_BYTES - size)
            files[name] = data.decode("utf-8", errors="replace")
            size += len(data)
    return files, [f"{_relative(path, folder)}:{attribute}" for path, attribute in pairs]


def _parted(name: str) -> tuple[Path, str]:
    path, colon, attribute = name.rpartition(":")
    if not colon or not attribute.isidentifier() or not path.endswith(".py"):
        raise RequestError(f"{name!r}: expected FILE.py:NAME, such as my_model.py:Block")
    return Path(path), attribute


def _relative(path: Path, folder: Path) -> str:
    try:
        return str(path.resolve().relative_to(folder))
    except ValueError:
        raise RequestError(f"{path}: expected a file in {folder} or below it") from None


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
        ast.parse(text)
    except OSError as error:
        raise RequestError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise RequestError(f"{path}: found no UTF-8, expected a Python file") from None
    except SyntaxError as error:
        raise RequestError(f"{path}, line {error.lineno}: {error.msg}") from None
    return text


_INPUT = re.compile(r"\s*([A-Za-z_]\w*)\s*:\s*([a-z0-9_]+)\s*(?:<\s*(\d+)\s*)?\[([^\]]*)\]\s*")


def parse_shapes(text: str) -> list[Shape]:
    """Parses inputs such as `x: float16[batch, 4096]; index: int64 < 1000 [batch]`.

    Raises:
        RequestError: The text has another form.
    """
    shapes = []
    for part in filter(str.strip, text.split(";")):
        match = _INPUT.fullmatch(part)
        if match is None:
            raise RequestError(f'--shapes {part.strip()!r}: expected "name: dtype[size, size]"')
        name, dtype, count, sizes = match.groups()
        if dtype not in DTYPES:
            known = ", ".join(sorted(DTYPES))
            raise RequestError(f"--shapes {name}: found dtype {dtype!r}, expected one of {known}")
        shape = tuple(_size(one.strip(), name) for one in sizes.split(",") if one.strip())
        shapes.append(Shape(name, dtype, shape, int(count or 2)))
    if not shapes:
        raise RequestError('--shapes: found nothing, expected "name: dtype[size, size]"')
    return shapes


def _size(text: str, name: str) -> int | str:
    if text.isdigit() and int(text) > 0:
        return int(text)
    if text.isidentifier():
        return text
    raise RequestError(f"--shapes {name}: found the size {text!r}, expected a number or a name")


def parse_sizes(text: str) -> dict[str, int]:
    """Parses sizes such as `batch=4 seq=512`.

    Raises:
        RequestError: The text has another form.
    """
    sizes = {}
    for part in text.replace(",", " ").split():
        name, _, value = part.partition("=")
        if not name.isidentifier() or not value.isdigit() or not int(value):
            raise RequestError(f"--sizes {part!r}: expected name=number")
        sizes[name] = int(value)
    return sizes


@dataclass(frozen=True)
class FoundSizes:
    """Integers that may be sizes: their values by name, and where literals without names stand."""

    values: Mapping[str, int]
    literals: tuple[tuple[str, int, int, str], ...] = ()


def find_sizes(request: TracingRequest) -> FoundSizes:
    """Finds integers that may be sizes, in the syntax tree alone.

    These are integers of the modules that hold target and generators, parameters of the generator
    with integer defaults, names in stated shapes, and, if the generator has literals as sizes,
    these as well.
    """
    values: dict[str, int] = {}
    literals: list[tuple[str, int, int, str]] = []
    places = {name.split(":")[0] for name in (request.target, request.inputs, request.init) if name}
    for path in sorted(places):
        tree = ast.parse(request.files[path])
        values |= _module_integers(tree)
        for line, column, name, value in _tuple_literals(tree):
            literals.append((path, line, column, name))
            values[name] = value
    for line, column, value in _width_literals(request) if request.widths else ():
        literals.append((request.target.split(":")[0], line, column, f"width_{value}"))
        values[f"width_{value}"] = value
    for generator in filter(None, (request.inputs, request.init)):
        path, name = generator.split(":")
        function = _function(ast.parse(request.files[path]), name)
        if function is None:
            continue
        values |= _defaults(function)
        if generator == request.inputs:
            positions = list(_size_literals(function))
            for number, (line, column, value) in enumerate(positions):
                literals.append((path, line, column, f"size_{number}"))
                values[f"size_{number}"] = value
    named = [size for shape in request.shapes for size in shape.shape if isinstance(size, str)]
    values |= {size: DEFAULT_SIZES.get(size, 1024) for size in named if size not in values}
    return FoundSizes(values | dict(request.sizes), tuple(literals))


def _module_integers(tree: ast.Module) -> dict[str, int]:
    integers = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        for one, text in pairs:
            number = _integer(text)
            if isinstance(one, ast.Name) and number is not None:
                integers[one.id] = number
    return integers


def _tuple_literals(tree: ast.Module) -> Iterator[tuple[int, int, str, int]]:
    """Yields line, column, name and value of integers in tuples such as `shape = (64, 128)`.

    Lists such as `[64] * 3` are taken as well.
    """
    for node in tree.body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        target, value = node.targets[0], node.value
        value = value.left if isinstance(value, ast.BinOp) else value
        if not isinstance(value, ast.Tuple | ast.List):
            continue
        for number, one in enumerate(value.elts):
            if isinstance(one, ast.Constant) and type(one.value) is int and one.value > 1:
                yield one.lineno, one.col_offset, f"{target.id}_{number}", one.value


def _integer(node: ast.expr) -> int | None:
    """Returns the value of an integer or of a product or sum of integers, such as `2048 * 2`."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if not isinstance(node, ast.BinOp) or type(node.op) not in _ARITHMETIC:
        return None
    left, right = _integer(node.left), _integer(node.right)
    if left is None or right is None:
        return None
    value = _ARITHMETIC[type(node.op)](left, right)
    return value if abs(value) <= MAX_SIZE else None


def _function(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    functions = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name)
    return next(functions, None)


def _defaults(function: ast.FunctionDef) -> dict[str, int]:
    arguments = [*function.args.posonlyargs, *function.args.args]
    pairs = list(zip(reversed(arguments), reversed(function.args.defaults), strict=False))
    pairs += [
        (a, d)
        for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
        if d is not None
    ]
    return {
        argument.arg: default.value
        for argument, default in pairs
        if isinstance(default, ast.Constant) and type(default.value) is int
    }


MIN_WIDTH = 16
"""Smaller integers in classes are kernel sizes, strides and numbers of layers."""
MAX_WIDTHS = 12


def has_widths(request: TracingRequest) -> bool:
    """Whether classes of the target's file have integers that may be numbers of channels."""
    return bool(_width_literals(request))


def _width_literals(request: TracingRequest) -> list[tuple[int, int, int]]:
    """Returns line, column and value of large integers in classes; none if they are many."""
    classes = (node for node in ast.parse(request.text).body if isinstance(node, ast.ClassDef))
    widths = [
        (node.lineno, node.col_offset, node.value)
        for definition in classes
        for node in ast.walk(definition)
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value >= MIN_WIDTH
    ]
    return widths if len({value for *_, value in widths}) <= MAX_WIDTHS else []


_CREATORS = frozenset("rand randn randint zeros ones empty full randperm arange".split())


def _size_literals(function: ast.FunctionDef) -> Iterator[tuple[int, int, int]]:
    """Yields line, column and value of integers above one in calls that create tensors."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if called not in _CREATORS:
            continue
        for inner in (n for argument in node.args for n in ast.walk(argument)):
            if isinstance(inner, ast.Constant) and type(inner.value) is int and inner.value > 1:
                yield inner.lineno, inner.col_offset, inner.value


def snake(text: str) -> str:
    """Returns a name in lower case with underscores, such as `gated_mlp` for `GatedMLP`."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text)
    return re.sub(r"\W+", "_", parts).lower().strip("_")

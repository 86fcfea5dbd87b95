"""Writes the `problem.py` of a traced problem."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernel_gym.imports.traced.code import Code
from kernel_gym.imports.traced.template import NodeTemplate

Points = Sequence[Mapping[str, int]]


@dataclass(frozen=True)
class AxisText:
    """An axis: its name, range and multiple."""

    name: str
    low: int
    high: int
    multiple: int


@dataclass(frozen=True)
class Draft:
    """All parts of a problem's file."""

    name: str
    summary: str
    doc: str
    category: str
    level: int
    source: str
    arguments: Sequence[NodeTemplate]
    parameters: Sequence[str]
    """The names of arguments that are parameters or buffers."""
    outputs: Sequence[tuple[str, str, str, str]]
    """Name, dtype, check and shape of each output."""
    axes: Sequence[AxisText]
    train: Mapping[str, Points]
    production: Mapping[str, Points]
    adversarial: Points
    distributions: Sequence[str]
    construction: Code
    draws: Mapping[str, str]
    """The expression that draws each argument."""
    forward: Code
    results: Sequence[str]
    """The expressions of the outputs."""


def file_text(draft: Draft) -> str:
    """Returns the text of `problem.py`."""
    names = [axis.name for axis in draft.axes]
    parts = [
        f'"""{_sentence(draft.summary)}"""\n',
        _IMPORTS,
        f"class {class_name(draft.name)}(TracedProblem):",
        _indented(_docstring(draft.doc or draft.summary)),
        "",
        _indented(_attributes(draft, names)),
        "",
        _indented(_inputs(draft)),
        "",
        _indented(_reference(draft)),
        "",
        "",
        f"PROBLEM = {class_name(draft.name)}()",
    ]
    return "\n".join(parts) + "\n"


_IMPORTS = """\
from __future__ import annotations

import torch

from kernel_gym.tasks.problem import Axis, Check, Output, TensorArg, Value, points
from kernel_gym.imports.traced import values
from kernel_gym.imports.traced.problem import TracedProblem
from kernel_gym.tasks.workload import Workload

aten = torch.ops.aten

"""


def class_name(name: str) -> str:
    """Returns the name of the class of a problem."""
    return "".join(part.capitalize() for part in name.split("_"))


def _sentence(text: str) -> str:
    text = " ".join(text.split()).replace("\\", "/").replace('"""', "'''").rstrip('". ')
    return f"{text}."


def _docstring(text: str) -> str:
    text = textwrap.dedent(text).strip().replace("\\", "\\\\").replace('"""', "'''")
    text = text if not text.endswith('"') else f"{text} "
    return f'"""{text}"""' if "\n" not in text else f'"""{text}\n"""'


def _attributes(draft: Draft, names: list[str]) -> str:
    lines = [
        f"name = {draft.name!r}",
        f"summary = {_sentence(draft.summary)[:-1]!r}",
        f"category = {draft.category!r}",
        f"level = {draft.level}",
        'tags = ("traced",)',
        f"source = {draft.source!r}",
        "",
        "args = (",
        *(
            f"    TensorArg({a.name!r}, torch.{a.dtype}, shape={', '.join(a.shape or ())!r}),"
            for a in draft.arguments
        ),
        ")",
        *_parameters(draft.parameters),
        "outputs = (",
        *(
            f"    Output({name!r}, torch.{dtype}, Check.{check}, shape={shape!r}),"
            for name, dtype, check, shape in draft.outputs
        ),
        ")",
        "axes = (",
        *(f"    Axis({a.name!r}, {a.low}, {a.high}, {a.multiple})," for a in draft.axes),
        ")",
        f"train = {_points(names, draft.train)}",
        f"production = {_points(names, draft.production)}",
        f"adversarial = ({', '.join(repr(dict(p)) for p in draft.adversarial)},)",
        f"distributions = {tuple(draft.distributions)!r}",
        "strided = False",
    ]
    return "\n".join(lines)


def _parameters(names: Sequence[str]) -> list[str]:
    return ["parameters = frozenset(", f"    {list(names)!r}", ")"] if names else []


def _points(names: list[str], table: Mapping[str, Points]) -> str:
    rows = {
        scale: [tuple(point[name] for name in names) for point in points]
        for scale, points in table.items()
    }
    lines = [f"{' '.join(names)!r},", *(f"{scale}={rows[scale]!r}," for scale in ("full", "sim"))]
    return "\n".join(["points(", *(f"    {line}" for line in lines), ")"])


def _inputs(draft: Draft) -> str:
    sizes = sorted(draft.construction.sizes)
    lines = [f"{name} = workload.dims[{name!r}]" for name in sizes]
    lines += ["distribution = workload.distribution"] if _uses_distribution(draft) else []
    lines += draft.construction.lines
    lines += ["return {", *(f"    {k!r}: {v}," for k, v in draft.draws.items()), "}"]
    return "\n".join(
        [
            "def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:",
            '    """Draws the inputs and parameters."""',
            *(f"    {line}" for line in lines),
        ]
    )


def _uses_distribution(draft: Draft) -> bool:
    return any("distribution" in t for t in (*draft.construction.lines, *draft.draws.values()))


def _reference(draft: Draft) -> str:
    names = [str(argument.name) for argument in draft.arguments]
    lines = [*sizes_of_shapes(draft.forward.sizes, draft.arguments), *draft.forward.lines]
    returned = ", ".join(draft.results)
    return "\n".join(
        [
            "def reference(",
            "    self,",
            *(f"    {name}: torch.Tensor," for name in names),
            ") -> tuple[torch.Tensor, ...]:",
            '    """The operators that the original runs."""',
            "    aten = torch.ops.aten",
            *(f"    {line}" for line in lines),
            f"    return ({returned},)",
        ]
    )


class NotInShapes(ValueError):
    """A size that the code needs is in no shape of an argument."""

    def __init__(self, size: str) -> None:
        super().__init__(f"the size {size!r} is in no shape of an input")
        self.size = size


def sizes_of_shapes(sizes: set[str], arguments: Sequence[NodeTemplate]) -> list[str]:
    """Returns lines that read sizes from the shapes of arguments.

    Raises:
        NotInShapes: A size is in no shape, alone or as a multiple.
    """
    return [f"{size} = {_from_shape(size, arguments)}" for size in sorted(sizes)]


def _from_shape(size: str, arguments: Sequence[NodeTemplate]) -> str:
    for argument in arguments:
        for place, text in enumerate(argument.shape or ()):
            if text == size:
                return f"{argument.name}.size({place})"
    for argument in arguments:
        for place, text in enumerate(argument.shape or ()):
            name, times, factor = text.partition(" * ")
            if name == size and times and factor.isdigit():
                return f"{argument.name}.size({place}) // {factor}"
            name, plus, offset = text.partition(" + ")
            if name == size and plus and offset.isdigit():
                return f"{argument.name}.size({place}) - {offset}"
    raise NotInShapes(size)


def _indented(text: str) -> str:
    return textwrap.indent(text, "    ", lambda line: bool(line.strip()))

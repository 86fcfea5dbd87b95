"""Code around a definition's reference: the file that is traced, and the adapter of candidates."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from kernel_gym.imports.readers.base import UnsupportedTask
from kernel_gym.imports.readers.definitions import Definition, WorkloadRow
from kernel_gym.imports.readers.drawing import drawing
from kernel_gym.imports.readers.recorded_inputs import drawing_like, recorded_tensor
from kernel_gym.imports.traced.file import sizes_of_shapes
from kernel_gym.imports.traced.template import NodeTemplate
from kernel_gym.tasks.problem import TensorArg

ENTRY = "run"
"""The function that a candidate defines."""
REFERENCE = "reference.py"
TRACED = "problem.py"
_KEPT = "_kernel_gym_run"


def tracing_files(checkout: Path, definition: Definition, row: WorkloadRow) -> dict[str, str]:
    """Returns the files to trace: the reference, and one with the axes as integers.

    Args:
        checkout: Holds the recorded inputs.
        definition: What to trace.
        row: The workload whose sizes and scalars are taken.

    Raises:
        UnsupportedTask: An input has a dtype that kernels here do not take.
        CheckoutError: A recorded input cannot be read.
    """
    sizes = definition.sizes(row.axes)
    plain = [name for name in sizes if name not in definition.expressions]
    tensors = definition.tensors
    given = [name if name in tensors else repr(scalar(row, name)) for name in definition.inputs]
    lines = [
        "import torch",
        f"import {REFERENCE.removesuffix('.py')} as _reference",
        "",
        *(f"{name} = {sizes[name]}" for name in plain),
        "",
        "",
        f"def {ENTRY}({', '.join(tensors)}):",
        f"    {(definition.description or definition.name).strip()!r}",
        f"    return _reference.run({', '.join(given)})",
        "",
        "",
        "def make_inputs():",
        *(f"    {line}" for line in _expression_lines(definition)),
        *(f"    {line}" for line in _input_lines(checkout, definition, row, sizes)),
        "",
    ]
    return {REFERENCE: definition.reference, TRACED: "\n".join(lines)}


def scalar(row: WorkloadRow, name: str) -> float | int | bool:
    """Returns the value of a scalar input.

    Raises:
        UnsupportedTask: The workload states no number.
    """
    source = row.inputs.get(name)
    value = source.value if source is not None else None
    if isinstance(value, str) or value is None:
        raise UnsupportedTask(f"the scalar input {name} has no number in workload {row.uuid[:40]}")
    return value


def _expression_lines(definition: Definition) -> list[str]:
    """Returns lines that compute axes from others; a quotient is an integer at stated sizes."""
    return [
        f"{name} = {ast.unparse(tree).replace(' / ', ' // ')}"
        for name, tree in definition.expressions.items()
    ]


def _input_lines(
    checkout: Path, definition: Definition, row: WorkloadRow, sizes: Mapping[str, int]
) -> list[str]:
    custom = definition.custom_inputs_entrypoint
    lines = []
    if custom:
        axes = ", ".join(f"{name!r}: {name}" for name in sizes)
        given = ", ".join(
            f"{name!r}: {one.value!r}" for name, one in row.inputs.items() if one.type == "scalar"
        )
        call = f"{{{axes}, {given}}}, torch.device('cpu')"
        lines.append(f"made = _reference.{custom}({call})")
    lines.append("return {")
    for name, spec in definition.tensors.items():
        source, shape = row.inputs.get(name), spec.shape or ()
        if custom and (source is None or source.type == "custom"):
            text = f"made[{name!r}]"
        elif source is not None and source.type == "safetensors":
            text = drawing_like(recorded_tensor(checkout, source), spec, shape, sizes)
        else:
            text = drawing(name, spec, shape)
        lines.append(f"    {name!r}: {text},")
    return [*lines, "}"]


def adapted(
    source: str,
    definition: Definition,
    row: WorkloadRow,
    arguments: Sequence[TensorArg],
    axes: Collection[str],
) -> str:
    """Returns a candidate's source with a `run` that has the arguments of the task.

    A candidate may take the scalars of the definition as well, and may write its outputs to
    tensors that it gets last (destination passing). Both are seen from its parameters.

    Args:
        source: Untrusted text.
        definition: The operator.
        row: The workload whose scalars, and sizes that cannot vary, are given.
        arguments: The tensors that the task gives.
        axes: The sizes of the task that vary.
    """
    used = [argument.name for argument in arguments]
    parameters = parameters_of(source)
    tensors, outputs = list(definition.tensors), list(definition.outputs)
    if parameters is None or parameters == [name for name in tensors if name in used]:
        return source
    inputs = list(definition.inputs)
    last = len(parameters) - len(outputs)
    passing = last in (len(inputs), len(tensors)) and (
        len(parameters) != len(inputs) or parameters[-1] in outputs
    )
    if not passing:
        last = len(parameters)
    if last not in (len(inputs), len(tensors)):
        return source  # its call fails with the interpreter's own message
    names = inputs if last == len(inputs) else tensors
    given = [name if name in tensors else repr(scalar(row, name)) for name in names]
    lines = _size_lines(definition, row, arguments, axes)
    lines += [_empty(definition, n, used) for n in names if n in tensors and n not in used]
    if passing:
        lines += [_empty(definition, name, used) for name in outputs]
        lines.append(f"{_KEPT}({', '.join([*given, *outputs])})")
        lines.append(f"return {', '.join(outputs)}")
    else:
        lines.append(f"return {_KEPT}({', '.join(given)})")
    body = "\n".join(f"    {line}" for line in lines)
    ordered = ", ".join(name for name in tensors if name in used)
    return f"{source}\n\n{_KEPT} = run\n\n\ndef run({ordered}):\n    import torch\n{body}\n"


def parameters_of(source: str) -> list[str] | None:
    """Returns the parameters of a candidate's `run`, or None if it defines none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    functions = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    run = functions.get(ENTRY)
    for node in body:  # `run = kernel`
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            run = functions.get(node.value.id, run) if ENTRY in names else run
    if run is None:
        return None
    return [argument.arg for argument in (*run.args.posonlyargs, *run.args.args)]


def _size_lines(
    definition: Definition,
    row: WorkloadRow,
    arguments: Sequence[TensorArg],
    axes: Collection[str],
) -> list[str]:
    """Returns lines that define all axes: from the shapes of tensors if they vary."""
    sizes = definition.sizes(row.axes)
    fixed = [n for n in sizes if n not in axes and n not in definition.expressions]
    nodes = [
        NodeTemplate("argument", a.name, [], {}, tuple(a.shape.split(", ")), None)
        for a in arguments
    ]
    return [
        *(f"{name} = {sizes[name]}" for name in fixed),
        *sizes_of_shapes(set(axes), nodes),
        *_expression_lines(definition),
    ]


def _empty(definition: Definition, name: str, used: Collection[str]) -> str:
    spec = definition.outputs.get(name) or definition.inputs[name]
    shape = ", ".join(spec.shape or ())
    device = next(iter(sorted(used)))
    size = f"({shape},)" if shape else "()"
    return f"{name} = torch.empty({size}, dtype=torch.{spec.dtype}, device={device}.device)"

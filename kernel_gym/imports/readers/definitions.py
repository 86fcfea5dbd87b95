"""Operators stated as data: `definition.json` and the rows of its workloads.

SOL-ExecBench and flashinfer-bench share this form (FlashInfer Trace). A definition names its axes,
its inputs and outputs by axes, and holds the text of a reference function `run`. It is parsed here
and never executed.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from kernel_gym.imports.readers.base import CheckoutError, read_text
from kernel_gym.imports.readers.expressions import (
    ExpressionError,
    evaluated,
    names_in,
    parsed_expression,
)
from kernel_gym.imports.readers.halves import parsed
from kernel_gym.imports.traced.graph import identifier

MAX_WORKLOADS = 4096
Name = Annotated[str, AfterValidator(identifier)]


class AxisSpec(BaseModel):
    """An axis: a constant, a size that each workload states, or an expression of other axes."""

    model_config = ConfigDict(frozen=True)

    type: Literal["const", "var", "expr"]
    value: int | None = Field(default=None, ge=0)
    expression: str | None = None


class TensorSpec(BaseModel):
    """An input or output; a shape of None is a scalar."""

    model_config = ConfigDict(frozen=True)

    shape: tuple[str, ...] | None
    dtype: str
    description: str | None = None


class InputSource(BaseModel):
    """Where a workload takes an input from."""

    model_config = ConfigDict(frozen=True)

    type: Literal["random", "scalar", "safetensors", "custom"]
    value: float | int | bool | str | None = None
    path: str = ""
    tensor_key: str = ""


class WorkloadRow(BaseModel):
    """One row of the workloads: sizes of the axes, and the source of each input."""

    model_config = ConfigDict(frozen=True)

    uuid: str
    axes: dict[Name, int]
    inputs: dict[Name, InputSource]


class Definition(BaseModel):
    """An operator as data."""

    model_config = ConfigDict(frozen=True)

    name: str
    op_type: str | None = None
    description: str | None = None
    axes: dict[Name, AxisSpec]
    custom_inputs_entrypoint: Name | None = None
    inputs: dict[Name, TensorSpec]
    outputs: dict[Name, TensorSpec]
    reference: str

    @property
    def tensors(self) -> dict[str, TensorSpec]:
        """The inputs that are tensors."""
        return {name: one for name, one in self.inputs.items() if one.shape is not None}

    @property
    def scalars(self) -> list[str]:
        """The inputs that are numbers."""
        return [name for name, one in self.inputs.items() if one.shape is None]

    @cached_property
    def expressions(self) -> dict[str, ast.expr]:
        """The axes that are expressions of others, parsed."""
        return {
            name: parsed_expression(str(axis.expression))
            for name, axis in self.axes.items()
            if axis.type == "expr"
        }

    def sizes(self, stated: Mapping[str, int]) -> dict[str, int]:
        """Returns all axes at the sizes of a workload.

        Raises:
            ExpressionError: An axis has no value, or one that is no size.
        """
        sizes = {}
        for name, axis in self.axes.items():
            if axis.type == "const":
                sizes[name] = int(axis.value or 0)
            elif axis.type == "var":
                if name not in stated:
                    raise ExpressionError(f"axis {name!r}: found no size, expected one in `axes`")
                sizes[name] = stated[name]
        for name, tree in self.expressions.items():
            sizes[name] = evaluated(tree, sizes)
        return sizes


def read_definition(checkout: Path, name: str) -> Definition:
    """Reads a definition.

    Raises:
        CheckoutError: It is missing or malformed. The message names the file and the key.
    """
    try:
        definition = Definition.model_validate_json(read_text(checkout, name))
    except ValidationError as error:
        raise CheckoutError(f"{name}: {_first(error)}") from None
    _check(name, definition)
    return definition


def read_workloads(checkout: Path, name: str, definition: Definition) -> list[WorkloadRow]:
    """Reads the workloads of a definition; a row of a trace holds its workload under `workload`.

    Raises:
        CheckoutError: The file is missing or malformed. The message names the row.
    """
    rows = []
    lines = [line for line in read_text(checkout, name).split("\n") if line.strip()]
    for number, line in enumerate(lines[:MAX_WORKLOADS], 1):
        try:
            value: object = json.loads(line)
            if isinstance(value, dict) and isinstance(value.get("workload"), dict):
                value = value["workload"]
            row = WorkloadRow.model_validate(value)
            definition.sizes(row.axes)
        except ValidationError as error:
            raise CheckoutError(f"{name}: row {number}: {_first(error)}") from None
        except ValueError as error:  # of json, and ExpressionError
            raise CheckoutError(f"{name}: row {number}: {error}") from None
        missing = sorted(definition.inputs.keys() - row.inputs.keys())
        if missing and not definition.custom_inputs_entrypoint:
            raise CheckoutError(f"{name}: row {number}: found no source of the input {missing[0]}")
        rows.append(row)
    if not rows:
        raise CheckoutError(f"{name}: found no workload, expected one JSON object in each line")
    return rows


def _check(name: str, definition: Definition) -> None:
    """Refuses a definition whose parts do not fit together."""
    _check_axes(name, definition)
    for tensor, one in (*definition.inputs.items(), *definition.outputs.items()):
        for size in one.shape or ():
            if not size.isdigit() and size not in definition.axes:
                raise CheckoutError(
                    f"{name}: {tensor}: found the axis {size!r}, expected one of "
                    f"{sorted(definition.axes)}"
                )
    _check_reference(name, definition)


def _check_axes(name: str, definition: Definition) -> None:
    axes = definition.axes
    for axis, spec in axes.items():
        if spec.type == "const" and spec.value is None:
            raise CheckoutError(f"{name}: axis {axis!r}: found no value, expected an integer")
    try:
        trees = definition.expressions
    except ExpressionError as error:
        raise CheckoutError(f"{name}: axes: {error}") from None
    for axis, tree in trees.items():
        if unknown := sorted(u for u in names_in(tree) if u not in axes or u in trees):
            raise CheckoutError(
                f"{name}: axis {axis!r}: found {unknown[0]!r}, expected const and var axes only"
            )


def _check_reference(name: str, definition: Definition) -> None:
    defined = {
        node.name: node
        for node in parsed(f"{name}: reference", definition.reference).body
        if isinstance(node, ast.FunctionDef)
    }
    run = defined.get("run")
    if run is None:
        raise CheckoutError(f"{name}: reference: found no function `run`, expected one")
    given = [argument.arg for argument in (*run.args.posonlyargs, *run.args.args)]
    if given != list(definition.inputs):
        raise CheckoutError(
            f"{name}: reference: found run({', '.join(given)}), expected the inputs "
            f"({', '.join(definition.inputs)})"
        )
    custom = definition.custom_inputs_entrypoint
    if custom and custom not in defined:
        raise CheckoutError(f"{name}: reference: found no function {custom!r}, which makes inputs")


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    return f"key {key!r}: {first['msg']}" if key else str(first["msg"])

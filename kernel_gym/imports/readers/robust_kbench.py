"""Reads robust-kbench's own tasks: a module with its configurations, forward and backward.

Its conversions of KernelBench are not read again. A task is a folder with `func_forward.py` and
`config_forward.json`, and for the backward pass with `func_backward.py` and `config_backward.json`.
"""

from __future__ import annotations

import ast
import itertools
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from kernel_gym.imports.readers.base import (
    CheckoutError,
    ConfinedRunner,
    FoundTask,
    Unsupported,
    read_text,
)
from kernel_gym.imports.readers.halves import parsed
from kernel_gym.imports.readers.traced_reader import ENTRY, TracedReader
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Problem

_TRACED = "problem.py"
MAX_CONFIGURATIONS = 64
Configuration = dict[str, dict[str, object]]
"""The arguments of `get_inputs` under "inputs" and those of the class under "init"."""


class RobustKBenchReader(TracedReader):
    """Reads one language of the tasks."""

    source = "robust-kbench, github.com/SakanaAI/robust-kbench"

    def detect(self, checkout: Path) -> bool:
        """Whether the checkout has its package and tasks."""
        folder = checkout / "robust_kbench"
        return folder.is_dir() and any((checkout / "tasks").glob("*/config_forward.json"))

    def entries(self, checkout: Path) -> Iterator[FoundTask | Unsupported]:
        """Yields a task for the forward pass and one for the backward pass of each folder."""
        for folder in sorted(p for p in (checkout / "tasks").iterdir() if p.is_dir()):
            for way in ("forward", "backward"):
                if not (folder / f"config_{way}.json").is_file():
                    continue
                name = f"{folder.name}/{way}"
                files = [
                    f"tasks/{folder.name}/{part}"
                    for part in (f"func_{way}.py", f"config_{way}.json")
                ]
                try:
                    configurations = _configurations(checkout, *files)
                except CheckoutError as error:
                    yield Unsupported(name, way, str(error))
                    continue
                details = {"way": way, "configurations": configurations}
                yield FoundTask(name, way, self.mode, tuple(files), details)

    def prepare(self, checkout: Path, found: FoundTask, bench: ConfinedRunner) -> dict[str, object]:
        """Traces the module, or the derivatives of its outputs."""
        configurations = found.details["configurations"]
        backward = found.details["way"] == "backward"
        files = {
            "task.py": read_text(checkout, found.files[0]),
            _TRACED: traced_text(configurations, backward),
        }
        return bench.trace(
            files,
            f"{_TRACED}:{'Backward' if backward else 'Model'}",
            f"{_TRACED}:make_inputs",
            f"{_TRACED}:make_init",
            ENTRY,
            [_sizes(configuration) for configuration in configurations],
        )

    def problem(self, checkout: Path, found: FoundTask, data: Mapping[str, object]) -> Problem:
        """Makes the problem; a candidate of a backward pass defines the function alone."""
        if found.details["way"] == "backward":
            data = {**data, "adapter": ""}
        return super().problem(checkout, found, data)


def _configurations(checkout: Path, module: str, config: str) -> list[Configuration]:
    """Returns all configurations that state the same operation: they differ in sizes only.

    Raises:
        CheckoutError: A file is missing or has another form.
    """
    tree = parsed(module, read_text(checkout, module))
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    model, inputs = functions.get("Model"), functions.get("get_inputs")
    if not isinstance(model, ast.ClassDef) or not isinstance(inputs, ast.FunctionDef):
        raise CheckoutError(f"{module}: found no `Model` and `get_inputs`, expected both")
    methods = (n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    taken = {"inputs": _arguments(inputs), "init": _arguments(next(methods, None))}
    try:
        value = json.loads(read_text(checkout, config))
        rows = [
            {**inner, **shared, **outer}
            for kind in ("single", "multi")
            for inner, shared, outer in itertools.product(
                value[f"{kind}_input_configs"],
                value[f"{kind}_shared_configs"],
                value[f"{kind}_init_configs"],
            )
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckoutError(f"{config}: found no lists of configurations: {error}") from None
    stated = [_configuration(config, row, taken) for row in rows[:MAX_CONFIGURATIONS]]
    if not stated:
        raise CheckoutError(f"{config}: found no configuration, expected one in single_*")
    return [one for one in stated if _operation(one) == _operation(stated[0])]


def _arguments(function: ast.FunctionDef | None) -> dict[str, object]:
    """Returns the parameters of a function with their plain defaults, None for the others."""
    if function is None:
        return {}
    names = [arg.arg for arg in function.args.args if arg.arg != "self"]
    defaults = function.args.defaults
    values = [d.value if isinstance(d, ast.Constant) else None for d in defaults]
    first = len(names) - len(values)
    return dict.fromkeys(names) | dict(zip(names[first:], values, strict=True))


def _configuration(
    config: str, row: Mapping[str, object], taken: Mapping[str, Mapping[str, object]]
) -> Configuration:
    known = {key for parameters in taken.values() for key in parameters}
    if unknown := sorted(row.keys() - known):
        raise CheckoutError(f"{config}: found the key {unknown[0]!r}, expected {sorted(known)}")
    return {
        part: {
            key: row.get(key, default)
            for key, default in parameters.items()
            if key in row or default is not None
        }
        for part, parameters in taken.items()
    }


def _sizes(configuration: Configuration) -> dict[str, int]:
    pairs = itertools.chain(*(values.items() for values in configuration.values()))
    return {key: value for key, value in pairs if type(value) is int}


_NO_SIZES = frozenset({"stride", "padding", "kernel_size"})


def _operation(configuration: Configuration) -> list[tuple[str, str, object]]:
    """Returns the values that say what to compute."""
    return [
        (part, key, value)
        for part, values in configuration.items()
        for key, value in values.items()
        if type(value) is not int or key in _NO_SIZES
    ]


def traced_text(configurations: list[Configuration], backward: bool) -> str:
    """Returns a module with the sizes of the largest configuration, around the task's module."""
    largest = max(configurations, key=lambda one: math.prod(_sizes(one).values()))
    sizes = {key: value for key, value in _sizes(largest).items() if key not in _NO_SIZES}
    given = {
        part: "".join(f"{k!r}: {k if k in sizes else repr(v)}, " for k, v in values.items())
        for part, values in largest.items()
    }
    lines = [
        "import torch",
        "from task import Model, get_inputs",
        "",
        *(f"{name} = {value}" for name, value in sizes.items()),
        "",
        "",
        "def make_init():",
        f"    return {{{given['init']}}}",
        "",
        "",
        "def make_inputs():",
        f"    inputs = list(get_inputs(**{{{given['inputs']}}}))",
    ]
    if not backward:
        return "\n".join([*lines, "    return inputs", ""])
    return "\n".join([*lines, _GRADIENT_OF_OUTPUT, _BACKWARD])


_GRADIENT_OF_OUTPUT = """\
    output = Model(**make_init())(*inputs)
    return [torch.randn(tuple(output.shape) or (1,)), *inputs]
"""
_BACKWARD = '''
class Backward(torch.nn.Module):
    """The gradients of all real inputs and of all parameters, in this order."""

    def __init__(self, **given):
        super().__init__()
        self.model = Model(**given)

    def forward(self, grad_output, *inputs):
        with torch.enable_grad():
            given = [x.detach().requires_grad_() if x.is_floating_point() else x for x in inputs]
            held = {n: p.detach().requires_grad_() for n, p in self.model.named_parameters()}
            output = torch.func.functional_call(self.model, held, tuple(given))
            leaves = [x for x in given if x.is_floating_point()] + list(held.values())
            gradient = grad_output.reshape(output.shape)
            grads = torch.autograd.grad(output, leaves, gradient, allow_unused=True)
        return [one for one in grads if one is not None]
'''
TRITON = RobustKBenchReader("robust-kbench", Mode.TORCH2TRITON)
HIP = RobustKBenchReader("robust-kbench-hip", Mode.TORCH2HIP)

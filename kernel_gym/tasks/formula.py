"""Formulas: a second implementation of each problem, independent of the oracle.

`tasks/problems/<name>/formula.py` holds

- `SMALL`: the dimensions of a small legal point.
- `formula(**inputs)`: takes numpy arrays (floating-point ones in fp64) and Python scalars by name,
  and returns a tuple with one array per output. It shares no code with the oracle. It uses numpy,
  scipy and loops.
- `check(found, inputs)`: for outputs with several right values (random numbers, ties). It asserts
  on the oracle's arrays what must be true of any right answer. If it is there, `formula` may be
  missing.
- `BYTES` and `FLOPS`, optional: the cost at `SMALL`, counted by hand. `BYTES` is needed if an
  implementation does not have to read all inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

import numpy as np
import torch

from kernel_gym.tasks.problem import Check, Dims, Problem, Value

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Formula:
    """The contents of a problem's `formula.py`."""

    small: Dims
    compute: Callable[..., Arrays] | None
    check: Callable[[Arrays, Mapping[str, object]], None] | None
    bytes: int | None
    flops: int | None


def load_formula(problem: Problem) -> Formula:
    """Imports the formula of a problem.

    Raises:
        ModuleNotFoundError: The problem has none.
        ValueError: It has neither `formula` nor `check`, or `SMALL` is not a legal point.
    """
    module = import_module(type(problem).__module__.removesuffix(".problem") + ".formula")
    parts = vars(module)
    formula = Formula(
        parts["SMALL"],
        parts.get("formula"),
        parts.get("check"),
        parts.get("BYTES"),
        parts.get("FLOPS"),
    )
    if formula.compute is None and formula.check is None:
        raise ValueError(f"{module.__name__}: found neither `formula` nor `check`, expected one")
    if not problem.legal(formula.small):
        raise ValueError(f"{module.__name__}: SMALL: found {formula.small}, expected a legal point")
    return formula


def widened(inputs: Mapping[str, Value]) -> dict[str, Value]:
    """Returns the inputs with floating-point tensors in fp64. Integers stay integers."""
    return {name: _wide(value) for name, value in inputs.items()}


def compare_with_formula(problem: Problem, inputs: Mapping[str, Value]) -> None:
    """Compares the oracle with the formula on inputs of the size `SMALL`.

    Outputs with the check CUSTOM are compared by `check` only.

    Raises:
        AssertionError: They disagree. The message names the output and the elements.
    """
    formula, wide = load_formula(problem), widened(inputs)
    arrays = {name: _array(value) for name, value in wide.items()}
    answer = tuple(out.numpy() for out in problem.oracle(**wide))
    if formula.check is not None:
        formula.check(answer, arrays)
    if formula.compute is None:
        return
    computed = formula.compute(**arrays)
    for output, left, right in zip(problem.outputs, answer, computed, strict=True):
        if output.check is Check.CUSTOM:
            continue
        atol = 1e-12 * max(1.0, float(np.abs(right).max(initial=0, where=np.isfinite(right))))
        np.testing.assert_allclose(left, right, rtol=1e-9, atol=atol, err_msg=output.name)


def _wide(value: Value) -> Value:
    wide = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if wide else value  # type: ignore[union-attr]


def _array(value: Value) -> object:
    return value.numpy() if isinstance(value, torch.Tensor) else value

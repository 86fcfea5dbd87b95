"""The second opinion on a problem: its operation written again, apart from the oracle.

`tasks/problems/<name>/formula.py` holds

- `SMALL`: the dimensions of a small legal point;
- `formula(**inputs)`: numpy arrays (floating ones widened to fp64) and Python scalars by name, in;
  a tuple of arrays, one an output, out. It shares no code with the oracle: numpy, scipy, loops;
- `check(found, inputs)`, where values are free within bounds (generators, ties): asserts on the
  oracle's arrays what must hold of any right answer. With it `formula` may be missing;
- `BYTES` and `FLOPS`, optionally: the cost at `SMALL`, counted by hand. `BYTES` is needed where
  an implementation need not read all of its inputs.
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
    """What a problem's `formula.py` states."""

    small: Dims
    compute: Callable[..., Arrays] | None
    check: Callable[[Arrays, Mapping[str, object]], None] | None
    bytes: int | None
    flops: int | None


def load_formula(problem: Problem) -> Formula:
    """Imports the formula beside a problem.

    Raises:
        ModuleNotFoundError: the problem has none.
        ValueError: it has neither `formula` nor `check`, or `SMALL` is not a legal point.
    """
    module = import_module(type(problem).__module__.removesuffix(".problem") + ".formula")
    parts = vars(module)
    found = Formula(
        parts["SMALL"],
        parts.get("formula"),
        parts.get("check"),
        parts.get("BYTES"),
        parts.get("FLOPS"),
    )
    if found.compute is None and found.check is None:
        raise ValueError(f"{module.__name__}: found neither `formula` nor `check`, expected one")
    if not problem.legal(found.small):
        raise ValueError(f"{module.__name__}: SMALL: found {found.small}, expected a legal point")
    return found


def widened(inputs: Mapping[str, Value]) -> dict[str, Value]:
    """The inputs with floating tensors in fp64; integers stay integers."""
    return {name: _wide(value) for name, value in inputs.items()}


def compare_with_formula(problem: Problem, inputs: Mapping[str, Value]) -> None:
    """Compares the oracle with the formula on inputs of the size `SMALL`.

    Outputs whose check is CUSTOM are left to `check`.

    Raises:
        AssertionError: they disagree; the message says where.
    """
    formula, wide = load_formula(problem), widened(inputs)
    arrays = {name: _array(value) for name, value in wide.items()}
    ours = tuple(out.numpy() for out in problem.oracle(**wide))
    if formula.check is not None:
        formula.check(ours, arrays)
    if formula.compute is None:
        return
    theirs = formula.compute(**arrays)
    for output, left, right in zip(problem.outputs, ours, theirs, strict=True):
        if output.check is Check.CUSTOM:
            continue
        atol = 1e-12 * max(1.0, float(np.abs(right).max(initial=0, where=np.isfinite(right))))
        np.testing.assert_allclose(left, right, rtol=1e-9, atol=atol, err_msg=output.name)


def _wide(value: Value) -> Value:
    wide = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if wide else value  # type: ignore[union-attr]


def _array(value: Value) -> object:
    return value.numpy() if isinstance(value, torch.Tensor) else value

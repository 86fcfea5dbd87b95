"""Stated workloads of recorded calls, and their form in the data of an import."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from kernel_gym.tasks.problem import Check, Dims, Output
from kernel_gym.tasks.workload import Kind, Split


@dataclass(frozen=True)
class StatedWorkload:
    """A workload and the outputs that the suite's own code returns for it."""

    dims: Dims
    kind: Kind
    split: Split
    outputs: tuple[Output, ...]
    exact: bool
    """Whether the suite's own code runs on fp64 inputs, so that there is an fp64 oracle."""
    operators: tuple[str, ...] = ()
    """Operators of PyTorch that compute and that the suite's own code runs on it, by name."""

    @property
    def key(self) -> str:
        """The canonical text of its dimensions."""
        return dims_key(self.dims)


def stated_to_json(workload: StatedWorkload) -> dict[str, object]:
    """Returns a stated workload as JSON values."""
    return {
        "dims": dict(workload.dims),
        "kind": str(workload.kind),
        "split": str(workload.split),
        "exact": workload.exact,
        "operators": list(workload.operators),
        "outputs": [
            [o.name, str(o.dtype).removeprefix("torch."), str(o.check), o.shape]
            for o in workload.outputs
        ],
    }


def stated_from_json(value: Mapping[str, Any]) -> StatedWorkload:
    """Reads what `stated_to_json` has written."""
    outputs = tuple(
        Output(name, getattr(torch, dtype), Check(check), shape)
        for name, dtype, check, shape in value["outputs"]
    )
    kind, split = Kind(value["kind"]), Split(value["split"])
    operators = tuple(map(str, value["operators"]))
    dims, exact = dict(value["dims"]), bool(value["exact"])
    return StatedWorkload(dims, kind, split, outputs, exact, operators)


def dims_key(dims: Dims) -> str:
    """Returns the canonical text of dimensions."""
    return json.dumps(sorted(dims.items()))

"""Runs operators in fp64, whatever floating-point dtype the code asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_map, tree_map_only

from kernel_gym.tasks.operator_mode import OperatorMode

_NARROW = frozenset({torch.float16, torch.bfloat16, torch.float32})


class InDouble(OperatorMode):
    """Replaces 16- and 32-bit floats by fp64 in arguments and results. 8-bit floats stay."""

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Runs one operator in fp64."""
        args, kwargs = tree_map(_wide_dtype, (args, kwargs or {}))
        out = func(*args, **kwargs)
        return out if func._schema.is_mutable else tree_map_only(torch.Tensor, widened, out)


def _wide_dtype(value: object) -> object:
    return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor in fp64 if it has a wider float than 8 bits."""
    return tensor.double() if tensor.dtype in _NARROW else tensor

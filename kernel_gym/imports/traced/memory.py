"""A bound on the memory of traced operators, which a hostile graph must not fill."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves, tree_map

from kernel_gym.tasks.operator_mode import OperatorMode

MAX_MEMORY_BYTES = 4 << 30
"""Bytes of the tensors that the operators of one problem may hold at a time on the host."""


class TooMuchMemory(Exception):
    """An operator asks for more memory than a problem may hold. The message names it."""


class BoundedMemory(OperatorMode):
    """Refuses an operator on the host whose result would exceed the bound, before it runs.

    Sizes are found on meta tensors. A graph has no operators whose size depends on values alone.

    Args:
        most: Bytes that may be held at a time.
    """

    def __init__(self, most: int = MAX_MEMORY_BYTES) -> None:
        super().__init__()
        self._most, self._held = most, 0
        self._known: dict[object, int] = {}

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Checks the size of an operator's result and runs it."""
        kwargs = kwargs or {}
        if func.is_view or func._schema.is_mutable or not _is_on_host(args, kwargs):
            return func(*args, **kwargs)
        needed = self._needed(func, args, kwargs)
        if self._held + needed > self._most:
            raise TooMuchMemory(
                f"the operator {func} needs {needed:,} bytes beside {self._held:,}, at most "
                f"{self._most:,} are given: use smaller sizes"
            )
        result = func(*args, **kwargs)
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                size = tensor.untyped_storage().nbytes()
                self._held += size
                weakref.finalize(tensor, self._release, size)
        return result

    def _needed(self, func: OpOverload, args: object, kwargs: Mapping[str, object]) -> int:
        """Returns the bytes of a result. Operators are repeated often, with equal shapes."""
        key = (func, *map(_described, tree_leaves((args, kwargs))))
        if key not in self._known:
            self._known[key] = _result_bytes(func, args, kwargs)
        return self._known[key]

    def _release(self, size: int) -> None:
        self._held -= size


class PeakMemory(OperatorMode):
    """Finds the most bytes that the results of operators hold at a time, on meta tensors.

    Attributes:
        peak: The most bytes so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.peak = self._held = 0

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Runs an operator and counts its results."""
        result = func(*args, **(kwargs or {}))
        if func.is_view or func._schema.is_mutable:
            return result
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                size = tensor.untyped_storage().nbytes()
                self._held += size
                weakref.finalize(tensor, self._release, size)
        self.peak = max(self.peak, self._held)
        return result

    def _release(self, size: int) -> None:
        self._held -= size


def _is_on_host(args: object, kwargs: Mapping[str, object]) -> bool:
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    device = kwargs.get("device")
    kinds = {tensor.device.type for tensor in tensors} | (
        {torch.device(device).type} if isinstance(device, str | torch.device) else set()
    )
    return kinds <= {"cpu"}


def _result_bytes(func: OpOverload, args: object, kwargs: Mapping[str, object]) -> int:
    """Returns the bytes of an operator's result, or 0 if they depend on values."""
    given, named = tree_map(_as_meta, (args, dict(kwargs)))
    named.pop("generator", None)
    named.pop("pin_memory", None)
    if any(argument.name == "device" for argument in func._schema.arguments):
        named["device"] = "meta"
    try:
        results = tree_leaves(func(*given, **named))
    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError):
        return 0  # the operator itself says what is wrong
    return sum(
        result.numel() * result.itemsize for result in results if isinstance(result, torch.Tensor)
    )


def _described(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride(), value.dtype
    return type(value), str(value)


def _as_meta(value: object) -> object:
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")

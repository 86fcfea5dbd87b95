"""Sends operators of PyTorch on device tensors to the device, where a task allows them.

The device decides what it runs and charges for it. A worker that leaves this mode is refused every
operator, as in tasks of our own.
"""

from __future__ import annotations

from typing import Any

import torch

from kernel_gym.protocol.fields import TensorOnDevice, device_tensor
from kernel_gym.protocol.operators import number_to_json, read, write
from kernel_gym.tasks.operator_mode import OperatorMode
from kernel_gym.worker.sim.runtime import SimRuntime
from kernel_gym.worker.sim.torch_owner import describe

_aten = torch.ops.aten
_HERE = frozenset(
    {
        _aten.empty,
        _aten.empty_like,
        _aten.empty_strided,
        _aten.new_empty,
        _aten.new_empty_strided,
        _aten.detach,
        _aten.detach_,
        _aten.fill_,
        _aten.zero_,
        _aten.zeros,
        _aten.ones,
        _aten.full,
        _aten.zeros_like,
        _aten.ones_like,
        _aten.full_like,
        _aten.new_zeros,
        _aten.new_ones,
        _aten.new_full,
        _aten.record_stream,
        _aten.is_pinned,
        _aten._has_compatible_shallow_copy_type,
        _aten.lift_fresh,
        _aten.set_,
        _aten.is_same_size,
    }
)
"""Operators that need no data, or that the worker's own device sends on."""


class Forwarding(OperatorMode):
    """Runs operators on device tensors where the tensors are.

    Args:
        runtime: The way to the device.
    """

    def __init__(self, runtime: SimRuntime) -> None:
        super().__init__()
        self._runtime = runtime

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs one operator: here, or on the device."""
        named = kwargs or {}
        tensors = [*_tensors(args), *_tensors(named.values())]
        on_device = any(t.is_cuda for t in tensors)
        wanted = torch.device(named.get("device") or "cpu").type
        if not on_device and (wanted != "cuda" or tensors):
            return self._from_host(func, args, named, wanted)
        if func.is_view or func.overloadpacket in _HERE:
            return func(*args, **named)
        if func.overloadpacket is _aten._local_scalar_dense:
            return self._values(args[0])[0]
        if func.overloadpacket is _aten.copy_:
            return self._copy(func, args, named)
        if func.overloadpacket is _aten._to_copy and named.get("device") and wanted == "cpu":
            source = args[0].to(named["dtype"]) if named.get("dtype") else args[0]
            return self._on_host(source)
        return self._forward(func, args, named, tensors)

    def _from_host(self, func: Any, args: Any, named: dict[str, Any], wanted: str) -> Any:
        """Runs an operator on host tensors; one that moves them converts them on the host."""
        if wanted != "cuda" or func.overloadpacket is not _aten._to_copy:
            return func(*args, **named)
        source = args[0].to(named["dtype"]) if named.get("dtype") else args[0]
        return torch.empty(source.shape, dtype=source.dtype, device="cuda").copy_(source)

    def _copy(self, func: Any, args: Any, named: dict[str, Any]) -> Any:
        target, source = args[:2]
        if not target.is_cuda:
            return target.copy_(self._on_host(source))
        if not source.is_cuda:
            return func(target, source.to(target.dtype).expand(target.shape), *args[2:], **named)
        return self._forward(func, args, named, [target, source])

    def _on_host(self, tensor: torch.Tensor) -> torch.Tensor:
        values = self._values(tensor)
        return torch.tensor(values, dtype=tensor.dtype).reshape(tensor.shape)

    def _values(self, tensor: torch.Tensor) -> list[Any]:
        answer = self._runtime.values(describe(tensor))
        return [read(value, _no_tensor) for value in answer]

    def _forward(
        self, func: Any, args: Any, named: dict[str, Any], tensors: list[torch.Tensor]
    ) -> Any:
        schema = func._schema
        try:
            given = [write(value, _described) for value in args]
            by_name = {key: write(value, _described) for key, value in named.items()}
        except TypeError as error:
            raise NotImplementedError(f"{schema.name}: {error}") from None
        result = self._runtime.operator(schema.name, func._overloadname, given, by_name)
        on_device = [t for t in tensors if t.is_cuda]
        return self._returned(result, on_device, schema.returns)

    def _returned(self, result: Any, tensors: list[torch.Tensor], returns: Any) -> Any:
        if isinstance(result, dict) and "list" in result:
            values = [self._returned(one, tensors, ()) for one in result["list"]]
            return tuple(values) if len(returns) != 1 else values
        if isinstance(result, dict) and "same" in result:
            return tensors[result["same"]]
        if isinstance(result, dict) and "address" in result:
            return self._adopt(device_tensor(result, "a result"))
        return read(result, _no_tensor)

    def _adopt(self, described: TensorOnDevice) -> torch.Tensor:
        """Makes a tensor of memory that the device has allocated for this worker."""
        self._runtime.take_over(described.address, described.extent)
        return torch.empty_strided(
            described.shape, described.strides, dtype=described.dtype, device="cuda"
        )


def _tensors(values: Any) -> list[torch.Tensor]:
    tensors: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
        elif isinstance(value, list | tuple):
            tensors += _tensors(value)
    return tensors


def _described(tensor: torch.Tensor) -> dict[str, Any]:
    if tensor.is_cuda:
        return describe(tensor).to_json()
    values = {"list": [number_to_json(value) for value in tensor.reshape(-1).tolist()]}
    dtype = str(tensor.dtype).removeprefix("torch.")
    return {"host": [values if tensor.dim() else values["list"][0], dtype]}


def _no_tensor(described: TensorOnDevice) -> torch.Tensor:
    raise ValueError("found a tensor among numbers")

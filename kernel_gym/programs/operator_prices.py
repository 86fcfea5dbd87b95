"""The cost of an operator of PyTorch in a user's own program: that by which the judge charges it.

The device describes each new call as JSON, with the forms of its tensors and results. Their values
are not needed, so the tensors here are meta tensors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from torch._ops import OpOverload

from kernel_gym.devices.fused_attention import attention_work, has_fused_attention
from kernel_gym.devices.sim.operators import work_of
from kernel_gym.hardware import DeviceSpec
from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.protocol.operators import read
from kernel_gym.protocol.request import BadRequestError
from kernel_gym.torch_device.library import Charge

_ATTENTION = torch.ops.aten.scaled_dot_product_attention.default
_PARTS = Charge(seconds=-1.0)
"""The cost of a function that is no single kernel: its operators are charged."""


class OperatorPrices:
    """Prices calls on a device. An instance is what `kernel_gym.torch_device.library` asks."""

    def __init__(self, spec: DeviceSpec) -> None:
        """Makes the prices of a device."""
        self._spec = spec

    def __call__(self, text: str) -> Charge:
        """Returns the cost of a call.

        Args:
            text: A JSON object with `operator`, `overload`, `arguments` and `results`. Arguments
                are in the order of the schema, as `kernel_gym.protocol.operators.read` takes them.

        Returns:
            The cost: of one launch for tensors that the protocol does not have, such as quantised
            ones; negative for attention without a fused kernel, which is charged by its parts.
        """
        call = json.loads(text)
        operator = _overload(call["operator"], call["overload"])
        tensors: list[torch.Tensor] = []

        def meta(described: TensorOnDevice) -> torch.Tensor:
            tensors.append(_meta(described))
            return tensors[-1]

        with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
            try:
                values = [read(value, meta) for value in call["arguments"]]
                results = [read(value, _meta) for value in call["results"]]
            except BadRequestError:
                return Charge(seconds=self._spec.shortest_kernel_seconds)
            given, named = _by_kind(operator, values)
            if operator is _ATTENTION:
                return self._attention(given, named)
            out = results[0] if len(results) == 1 else tuple(results)
            work = work_of(self._spec, operator, given, named, out, tensors)
        return Charge(work.seconds, work.moved, work.flops)

    def _attention(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> Charge:
        if not has_fused_attention(*given, **named):
            return _PARTS
        moved, flops = attention_work(*given, **named)
        seconds = self._spec.operator_seconds(moved, flops, given[0].dtype)
        return Charge(seconds, moved, flops)


def _overload(name: str, overload: str) -> OpOverload:
    packet = getattr(torch.ops.aten, name.removeprefix("aten::"))
    operator: OpOverload = getattr(packet, overload or "default")
    return operator


def _meta(tensor: TensorOnDevice) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.strides, dtype=tensor.dtype, device="meta")


def _by_kind(
    operator: OpOverload, values: list[object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Returns the arguments by place and those by name only."""
    arguments = list(zip(operator._schema.arguments, values, strict=True))
    given = tuple(value for argument, value in arguments if not argument.kwarg_only)
    return given, {a.name: value for a, value in arguments if a.kwarg_only}

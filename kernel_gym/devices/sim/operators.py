"""Runs operators of PyTorch in the memory of a simulated GPU, and charges their modelled time.

Only sessions of imported tasks may use them, see `kernel_gym.devices.operators`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from kernel_gym.devices.operators import MOST_READ, USUAL, Operators
from kernel_gym.devices.sim.memory import HOST_COPY_LATENCY, HOST_LINK, DeviceMemoryError
from kernel_gym.devices.sim.orders import Orders
from kernel_gym.devices.sim.requests import RefusedError
from kernel_gym.hardware import DeviceSpec
from kernel_gym.protocol import device as messages
from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.protocol.operators import number_to_json, read
from kernel_gym.protocol.request import Answer

REFUSED = frozenset({"aten::from_file"})
"""Operators that nobody may use: they reach beyond the memory of the device."""

Locate = Callable[[TensorOnDevice, bool], torch.Tensor]
"""Returns the tensor in device memory; the flag says whether it may be written."""


def run_operator(
    name: str, overload: str, args: Sequence[Any], kwargs: Mapping[str, Any], locate: Locate
) -> tuple[Any, list[torch.Tensor], Any, tuple[Any, ...], dict[str, Any]]:
    """Runs an operator on tensors of the device.

    Args:
        name: Such as `aten::add`.
        overload: Such as `Tensor`; `default` for none.
        args: Arguments as JSON.
        kwargs: Named arguments as JSON.
        locate: Finds tensors.

    Returns:
        What it returned, the tensors among its arguments, the operator, and its arguments.

    Raises:
        RefusedError: There is no such operator, or it failed.
    """
    space, _, short = name.partition("::")
    packet = getattr(torch.ops.aten, short, None) if space == "aten" else None
    known = isinstance(packet, torch._ops.OpOverloadPacket) and overload in packet.overloads()
    operator: Any = getattr(packet, overload) if known else None
    if operator is None or name in REFUSED:
        raise RefusedError(f"there is no operator {name}.{overload}")
    written = _written(operator)
    tensors: list[torch.Tensor] = []

    def finder(argument: str) -> Callable[[TensorOnDevice], torch.Tensor]:
        def found(described: TensorOnDevice) -> torch.Tensor:
            tensors.append(locate(described, argument in written))
            return tensors[-1]

        return found

    names = [argument.name for argument in operator._schema.arguments]
    given = tuple(read(value, finder(_name(names, i))) for i, value in enumerate(args))
    named = {
        key: read(value, finder(key))
        for key, value in kwargs.items()
        if key not in ("pin_memory", "layout")
    }
    try:
        with torch.no_grad():
            return operator(*given, **named), tensors, operator, given, named
    except (RuntimeError, TypeError, ValueError, NotImplementedError, IndexError) as error:
        raise RefusedError(f"{name}: {error}") from None


def seconds_of(
    spec: DeviceSpec,
    operator: Any,
    given: tuple[Any, ...],
    named: dict[str, Any],
    out: Any,
    tensors: Sequence[torch.Tensor],
) -> float:
    """Returns the modelled seconds of an operator by its bytes and FLOPs (rule 23)."""
    results = [t for t in tree_leaves(out) if isinstance(t, torch.Tensor)]
    moved = sum(t.numel() * t.itemsize for t in (*tensors, *results))
    counter = flop_registry.get(operator.overloadpacket)
    flops = counter(*given, **named, out_val=out) if counter else 0
    return spec.operator_seconds(moved, flops, results[0].dtype if results else torch.float32)


def describe_result(out: Any, tensors: Sequence[torch.Tensor], place: Callable[..., Any]) -> Any:
    """Returns what an operator returned as JSON.

    Args:
        out: Tensors, numbers, or lists of such.
        tensors: The tensors among its arguments: one that is returned is named by its number.
        place: Copies a new tensor to the device and describes it.
    """
    if isinstance(out, torch.Tensor):
        same = [i for i, tensor in enumerate(tensors) if tensor is out]
        return {"same": same[0]} if same else place(out)
    if isinstance(out, list | tuple):
        return {"list": [describe_result(one, tensors, place) for one in out]}
    return number_to_json(out) if isinstance(out, int | float | complex) else None


class OperatorMemory(Protocol):
    """The part of a simulated GPU that the requests of this module use."""

    operators: Operators
    host_reads: int
    """Bytes that the host has read in this call."""
    in_trial: bool
    """Whether launches count nowhere at the moment."""
    seconds: float
    spec: DeviceSpec
    used: Any
    orders: Orders

    def tensor(self, described: TensorOnDevice, written: bool = False) -> torch.Tensor:
        """Returns a tensor over live memory."""

    def allocate_for_worker(self, size: int) -> Answer:
        """Allocates memory for the worker."""


def answer_operator(
    gpu: OperatorMemory, name: str, overload: str, args: list[Any], kwargs: dict[str, Any]
) -> Answer:
    """Runs an operator of PyTorch on device memory and charges its time (rule 23).

    Raises:
        RefusedError: The session may not run it, or it failed.
    """
    usual = gpu.operators is Operators.USUAL and name in USUAL
    if not usual and gpu.operators is not Operators.ALL:
        raise RefusedError(f"the operator {name} is refused on device tensors")
    out, tensors, *called = run_operator(name, overload, args, kwargs, gpu.tensor)
    operator, given, named = called
    gpu.used.launch_seconds += gpu.spec.launch_seconds
    gpu.seconds += seconds_of(gpu.spec, operator, given, named, out, tensors)
    places: list[TensorOnDevice] = []
    described = describe_result(out, tensors, lambda result: _place(gpu, result, places))

    def repeat() -> None:
        again, given_again, *_ = run_operator(name, overload, args, kwargs, gpu.tensor)
        left = iter(places)
        describe_result(again, given_again, lambda result: _write(gpu, result, next(left)))

    gpu.orders.on_other(repeat)
    return messages.OperatorDone(described)


def answer_values(gpu: OperatorMemory, tensor: TensorOnDevice) -> Answer:
    """Reads a small tensor for the host and charges a transfer.

    Raises:
        RefusedError: The session may not, or the call has read too much.
    """
    gpu.host_reads += tensor.nbytes
    if gpu.operators is Operators.NONE:
        raise RefusedError("reading device memory on the host is refused")
    if gpu.operators is Operators.USUAL and gpu.host_reads > MOST_READ:
        raise RefusedError(f"the host may read {MOST_READ} bytes of the device in one call")
    if gpu.in_trial:
        raise RefusedError("no values are read in a trial of kernels: nothing of it may stay")
    gpu.seconds += HOST_COPY_LATENCY + tensor.nbytes / HOST_LINK
    return messages.TensorValues([number_to_json(v) for v in gpu.tensor(tensor).flatten().tolist()])


def _place(
    gpu: OperatorMemory, result: torch.Tensor, places: list[TensorOnDevice]
) -> dict[str, Any]:
    """Copies the result of an operator to new memory of the worker and describes it."""
    strides = tuple(torch.empty_like(result, device="meta").stride())
    shape = tuple(result.shape)
    extent = TensorOnDevice(0, shape, strides, result.dtype).extent
    answer = gpu.allocate_for_worker(extent)
    if not isinstance(answer, messages.Allocated):
        raise DeviceMemoryError(str(vars(answer)["error"]))
    where = TensorOnDevice(answer.address, shape, strides, result.dtype)
    places.append(where)
    return _write(gpu, result, where)


def _write(gpu: OperatorMemory, result: torch.Tensor, where: TensorOnDevice) -> dict[str, Any]:
    if where.extent:
        gpu.tensor(where, written=True).copy_(result)
    return where.to_json()


def _written(operator: Any) -> set[str]:
    arguments = operator._schema.arguments
    return {a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write}


def _name(names: Sequence[str], index: int) -> str:
    return names[index] if index < len(names) else ""

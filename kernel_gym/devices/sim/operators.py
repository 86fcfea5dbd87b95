"""Runs operators of PyTorch in the memory of a simulated GPU, and charges their modelled time.

Only sessions of imported tasks may use them, see `kernel_gym.devices.operators`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from kernel_gym.devices.operator_costs import OperatorCost, operator_cost
from kernel_gym.devices.operators import MAX_READ_BYTES, MOVES, USUAL, Operators
from kernel_gym.devices.sim.memory import HOST_COPY_LATENCY, HOST_LINK
from kernel_gym.devices.sim.orders import Orders
from kernel_gym.devices.sim.requests import RefusedError
from kernel_gym.hardware import DeviceSpec
from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.protocol.operators import read, result_form
from kernel_gym.tasks.dispatcher import dispatcher_operator, is_word

if TYPE_CHECKING:
    from kernel_gym.devices.sim.facts import CallFacts

_aten = torch.ops.aten
_SORTING = OperatorCost(launches=6, passes=10.0)
_COMPACTING = OperatorCost(launches=3, passes=4.0)
_SEVERAL: Mapping[object, OperatorCost] = {
    **dict.fromkeys((_aten.unique_consecutive, _aten.nonzero, _aten.masked_select), _COMPACTING),
    **dict.fromkeys((_aten._unique2, _aten.unique_dim, _aten.randperm), _SORTING),
    **dict.fromkeys((_aten.index_put, _aten.index_put_, _aten._index_put_impl_), _SORTING),
    **dict.fromkeys((_aten.scatter_reduce, _aten.scatter_reduce_), OperatorCost(passes=9.0)),
    **dict.fromkeys((_aten.median, _aten.kthvalue, _aten.mode), _SORTING),
    _aten.bincount: OperatorCost(launches=4, passes=9.0),
    _aten.searchsorted: OperatorCost(passes=3.0),
    _aten.bucketize: OperatorCost(passes=3.0),
}
"""Operators of several kernels that no reference of the timing model has. Their launches and passes
are set by the kind of their kernels (a sort, a scan and a compaction, atomics) and not measured."""

Locate = Callable[[TensorOnDevice, bool], torch.Tensor]
"""Returns the tensor in device memory; the flag says whether it may be written."""


class OperatorResult(NamedTuple):
    """A call of an operator with its result.

    Attributes:
        out: What it returned.
        tensors: The tensors among its arguments.
        operator: The operator.
        given: Its arguments by place.
        named: Its arguments by name.
    """

    out: object
    tensors: list[torch.Tensor]
    operator: OpOverload
    given: tuple[object, ...]
    named: dict[str, object]


def run_operator(
    name: str, overload: str, args: Sequence[object], kwargs: Mapping[str, object], locate: Locate
) -> OperatorResult:
    """Runs an operator on tensors of the device.

    Args:
        name: Such as `aten::add`.
        overload: Such as `Tensor`; `default` for none.
        args: Arguments as JSON.
        kwargs: Named arguments as JSON.
        locate: Finds tensors.

    Raises:
        RefusedError: There is no such operator, or it failed.
    """
    space, _, short = name.partition("::")
    operator = dispatcher_operator(short, overload, numbers=True) if space == "aten" else None
    if operator is None:
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
    texts = (leaf for leaf in tree_leaves((given, named)) if isinstance(leaf, str))
    if not all(is_word(short, text) for text in texts):
        raise RefusedError(f"{name}: a text is no argument of it")
    try:
        with torch.no_grad():
            return OperatorResult(operator(*given, **named), tensors, operator, given, named)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, IndexError) as error:
        raise RefusedError(f"{name}: {error}") from None


@dataclass(frozen=True)
class OperatorWork:
    """The modelled cost of one call of an operator.

    Attributes:
        seconds: Its time.
        moved: Bytes that its kernels move.
        flops: Floating-point operations by PyTorch's counter.
    """

    seconds: float
    moved: int
    flops: int


def work_of(
    spec: DeviceSpec,
    operator: OpOverload,
    given: tuple[object, ...],
    named: dict[str, object],
    out: object,
    tensors: Sequence[torch.Tensor],
) -> OperatorWork:
    """Returns the modelled cost of an operator (rule 23).

    Its time counts its launches, its FLOPs, its bytes as often as its kernels move them, and its
    steps that wait for each other.

    Args:
        spec: The device.
        operator: The overload.
        given: Its arguments. Of tensors only the form counts.
        named: Its arguments by name.
        out: Its results.
        tensors: The tensors among its arguments.
    """
    results = [t for t in tree_leaves(out) if isinstance(t, torch.Tensor)]
    cost = _cost(operator, given, named, out, spec.compute_units)
    moved = cost.moved
    if moved is None:
        moved = sum(t.numel() * t.itemsize for t in (*tensors, *results))
    moved = int(moved * cost.passes)
    counter = flop_registry.get(operator.overloadpacket)
    flops = counter(*given, **named, out_val=out) if counter else 0
    dtype = results[0].dtype if results else torch.float32
    seconds = spec.operator_seconds(moved, flops, dtype)
    seconds += (cost.launches - 1) * spec.shortest_kernel_seconds + cost.waiting
    return OperatorWork(seconds, moved, flops)


def _cost(
    operator: OpOverload,
    given: tuple[object, ...],
    named: Mapping[str, object],
    out: object,
    compute_units: int,
) -> OperatorCost:
    """Returns the cost of a call. One whose arguments no rule knows costs the most passes."""
    packet = operator.overloadpacket
    if packet in _SEVERAL:
        return _SEVERAL[packet]
    stated = operator._schema.arguments[len(given) :]
    rest = [
        named.get(argument.name, argument.default_value if argument.has_default_value() else None)
        for argument in stated
    ]
    try:
        return operator_cost(packet, (*given, *rest), named, out, compute_units)
    except (AssertionError, AttributeError, IndexError, TypeError):  # such as a tensor of no axes
        return _SORTING


class OperatorMemory(Protocol):
    """The part of a simulated GPU that the requests of this module use."""

    operators: Operators
    permitted: frozenset[str]
    computed: set[str]
    """Operators that have computed in this call."""
    operator_seconds: float
    """Their modelled seconds."""
    host_reads: int
    """Bytes that the host has read in this call."""
    noop: bool
    """Whether kernels do nothing."""
    tuning: bool
    """Whether the call counts nowhere."""
    seconds: float
    spec: DeviceSpec
    used: CallFacts
    orders: Orders

    def tensor(self, described: TensorOnDevice, written: bool = False) -> torch.Tensor:
        """Returns a tensor over live memory."""


def execute_operator(
    gpu: OperatorMemory,
    name: str,
    overload: str,
    args: list[object],
    kwargs: dict[str, object],
    places: tuple[TensorOnDevice, ...] | None,
) -> object:
    """Runs an operator of PyTorch on device memory and charges its time (rule 23).

    Args:
        gpu: The device.
        name: Such as `aten::add`.
        overload: Such as `Tensor`; `default` for none.
        args: Arguments as JSON.
        kwargs: Named arguments as JSON.
        places: Where new tensors of the result go; None to have their form returned.

    Returns:
        The form of the result if the new tensors have no place, else None.

    Raises:
        RefusedError: The session may not run it, it failed, or the result has another form.
    """
    permitted = gpu.operators is Operators.USUAL and name in gpu.permitted
    if not permitted and gpu.operators is not Operators.ALL:
        why = "the suite's own code does not call it: " if name in USUAL else ""
        raise RefusedError(
            f"the operator {name} is refused on device tensors: {why}do the work in your kernel"
        )
    out, tensors, operator, given, named = run_operator(name, overload, args, kwargs, gpu.tensor)
    gpu.used.launch_seconds += gpu.spec.launch_seconds
    seconds = work_of(gpu.spec, operator, given, named, out, tensors).seconds
    gpu.seconds += seconds
    if name not in MOVES:
        gpu.computed.add(name)
        gpu.operator_seconds += seconds
    if places is None:
        try:
            return result_form(out, tensors)
        except TypeError as error:
            raise RefusedError(f"{name}: {error}") from None
    _put(gpu, name, _new(out, tensors), places)

    def repeat() -> None:
        again, given_again, *_ = run_operator(name, overload, args, kwargs, gpu.tensor)
        _put(gpu, name, _new(again, given_again), places)

    gpu.orders.on_other(repeat)
    return None


def check_values(gpu: OperatorMemory, tensor: TensorOnDevice, expected: bytes) -> None:
    """Charges the transfer of a small tensor to the host, which must have read what is there.

    Args:
        gpu: The device.
        tensor: The tensor.
        expected: The bytes of its elements, as the host code has received them. Without kernels,
            and on data for tuning, memory may hold others.

    Raises:
        RefusedError: The session may not read, the call has read too much, or other values.
    """
    gpu.host_reads += tensor.nbytes
    if gpu.operators is Operators.NONE:
        raise RefusedError("reading device memory on the host is refused")
    if gpu.operators is Operators.USUAL and gpu.host_reads > MAX_READ_BYTES:
        raise RefusedError(f"the host may read {MAX_READ_BYTES} bytes of the device in one call")
    gpu.seconds += HOST_COPY_LATENCY + tensor.nbytes / HOST_LINK
    if not (gpu.noop or gpu.tuning) and tensor_bytes(gpu.tensor(tensor)) != expected:
        raise RefusedError(
            "the host code has read other values than the execution of its launch plan gives"
        )


def tensor_bytes(tensor: torch.Tensor) -> bytes:
    """Returns the bytes of the elements of a tensor, in order."""
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy())


def _new(out: object, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Returns the tensors that an operator has made, in order."""
    results = (t for t in tree_leaves(out) if isinstance(t, torch.Tensor))
    return [t for t in results if not any(t is tensor for tensor in tensors)]


def _put(
    gpu: OperatorMemory,
    name: str,
    results: Sequence[torch.Tensor],
    places: Sequence[TensorOnDevice],
) -> None:
    """Copies the results of an operator to their places.

    Raises:
        RefusedError: They have another form.
    """
    forms = [(tuple(tensor.shape), tensor.dtype) for tensor in results]
    stated = [(tensor.shape, tensor.dtype) for tensor in places]
    if forms != stated:
        raise RefusedError(
            f"{name} returns {_text(forms)}, and the launch plan says {_text(stated)}"
        )
    for result, place in zip(results, places, strict=True):
        if place.extent:
            gpu.tensor(place, written=True).copy_(result)


def _text(forms: Sequence[tuple[tuple[int, ...], torch.dtype]]) -> str:
    texts = [f"{str(dtype).removeprefix('torch.')}{list(shape)}" for shape, dtype in forms]
    return ", ".join(texts)[:200] or "nothing"


def _written(operator: OpOverload) -> set[str]:
    arguments = operator._schema.arguments
    return {a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write}


def _name(names: Sequence[str], index: int) -> str:
    return names[index] if index < len(names) else ""

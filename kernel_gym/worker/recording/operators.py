"""Records operators of PyTorch on device tensors as steps of a plan, in imported tasks.

The launcher decides what it runs and charges for it. Host code that leaves this mode is refused
every operator, as in tasks of our own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_map_only

from kernel_gym.protocol.fields import ELEMENT_TYPES
from kernel_gym.protocol.operators import number_to_json, result_form, write
from kernel_gym.tasks.operator_mode import OperatorMode
from kernel_gym.worker.recording.runtime import RecordingRuntime
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
        torch.ops.inductor._reinterpret_tensor,
    }
)
"""Operators that need no data, or that the recorder's own device records."""


def _equal(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor | None:
    return (one == other).all() if one.shape == other.shape else None


def _all_close(
    one: torch.Tensor,
    other: torch.Tensor,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> torch.Tensor:
    return torch.isclose(one, other, rtol, atol, equal_nan).all()


def _itself(one: torch.Tensor) -> torch.Tensor:
    return one


_TOLD: dict[object, Callable[..., torch.Tensor | None]] = {
    _aten.equal: _equal,
    _aten.allclose: _all_close,
    _aten.is_nonzero: _itself,
}
"""Operators that tell the host what is true of tensors: each returns the truth as a tensor."""
_UNKNOWN = object()


class OperatorRecording(OperatorMode):
    """Records operators on device tensors, and asks for values that the host reads.

    Args:
        runtime: The recording.
    """

    def __init__(self, runtime: RecordingRuntime) -> None:
        super().__init__()
        self._runtime = runtime

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Runs one operator here, or records it."""
        named = kwargs or {}
        tensors = [*_tensors(args), *_tensors(named.values())]
        on_device = any(t.is_cuda for t in tensors)
        device, dtype = named.get("device"), named.get("dtype")
        wanted = torch.device(device).type if isinstance(device, str | torch.device) else "cpu"
        if not on_device and (wanted != "cuda" or tensors):
            return self._from_host(func, args, named, wanted)
        if func.is_view or func.overloadpacket in _HERE:
            return func(*args, **named)
        if func.overloadpacket is _aten._local_scalar_dense:
            return self._runtime.read(describe(tensors[0])).item()
        if func.overloadpacket in _TOLD:
            with self:  # the operators of it are steps of the plan, and the host reads its value
                truth = _TOLD[func.overloadpacket](*args, **named)
            return truth is not None and bool(self._runtime.read(describe(truth)).item())
        if func.overloadpacket is _aten.copy_:
            return self._copy(func, args, named, *tensors)
        if func.overloadpacket is _aten._to_copy and device and wanted == "cpu":
            return self._runtime.read(describe(_as_type(tensors[0], dtype)))
        return self._record(func, args, named)

    def _from_host(
        self, func: OpOverload, args: Sequence[object], named: Mapping[str, object], wanted: str
    ) -> object:
        """Runs an operator on host tensors; one that moves them converts them on the host."""
        if wanted != "cuda" or func.overloadpacket is not _aten._to_copy:
            return func(*args, **named)
        source = _as_type(_tensors(args)[0], named.get("dtype"))
        return torch.empty(source.shape, dtype=source.dtype, device="cuda").copy_(source)

    def _copy(
        self,
        func: OpOverload,
        args: Sequence[object],
        named: Mapping[str, object],
        target: torch.Tensor,
        source: torch.Tensor,
    ) -> object:
        if not target.is_cuda:
            return target.copy_(self._runtime.read(describe(source)))
        if not source.is_cuda:
            return func(target, source.to(target.dtype).expand(target.shape), *args[2:], **named)
        return self._record(func, args, named)

    def _record(
        self, func: OpOverload, args: Sequence[object], named: Mapping[str, object]
    ) -> object:
        schema = func._schema
        tensors: list[torch.Tensor] = []

        def numbered(tensor: torch.Tensor) -> dict[str, object]:
            if not tensor.is_cuda:
                return _host_values(tensor)
            tensors.append(tensor)
            return {"tensor": len(tensors) - 1}

        try:
            values = [write(value, numbered) for value in args]
            by_name = {key: write(value, numbered) for key, value in named.items()}
        except TypeError as error:
            raise NotImplementedError(f"{schema.name}: {error}") from None
        text = json.dumps({"args": values, "kwargs": by_name})
        called = (
            schema.name,
            func._overloadname,
            text,
            [describe(described) for described in tensors],
        )
        forms, told = _forms(func, args, named, tensors), False
        if forms is _UNKNOWN:
            forms, told = self._runtime.forms(*called), True
        results: list[torch.Tensor] = []
        returned = _returned(forms, tensors, results, len(schema.returns))
        self._runtime.operator(*called, [describe(described) for described in results], told)
        return returned


def _as_type(tensor: torch.Tensor, dtype: object) -> torch.Tensor:
    return tensor.to(dtype) if isinstance(dtype, torch.dtype) else tensor


def _forms(
    func: OpOverload,
    args: Sequence[object],
    named: Mapping[str, object],
    tensors: list[torch.Tensor],
) -> object:
    """Returns the form of the result, as `result_form` does; unknown if it depends on values."""
    known = {id(argument): _on_meta(argument) for argument in tensors}

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        return known.get(id(tensor), tensor if tensor.is_meta else _on_meta(tensor))

    given, by_name = tree_map_only(torch.Tensor, moved, (args, named))
    if "device" in by_name:
        by_name = by_name | {"device": torch.device("meta")}
    try:
        return result_form(func(*given, **by_name), [known[id(argument)] for argument in tensors])
    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError):
        return _UNKNOWN  # the launcher tells the form, or what is wrong


def _on_meta(tensor: torch.Tensor) -> torch.Tensor:
    form = tensor.shape, tensor.stride()
    return torch.empty_strided(*form, dtype=tensor.dtype, device="meta")


def _returned(
    form: object, tensors: list[torch.Tensor], results: list[torch.Tensor], count: int = 0
) -> object:
    """Makes what an operator returns, and adds its new tensors to the results.

    Args:
        form: The form of the result, see `result_form`.
        tensors: The tensors among the arguments.
        results: Takes the new tensors.
        count: How many results the schema has; 0 within a list.
    """
    if form is None:
        return None
    assert isinstance(form, dict)
    if "list" in form:
        values = [_returned(item, tensors, results) for item in form["list"]]
        return values if count == 1 else tuple(values)
    if "same" in form:
        return tensors[form["same"]]
    made = torch.empty_strided(
        form["shape"], form["strides"], dtype=ELEMENT_TYPES[form["dtype"]], device="cuda"
    )
    results.append(made)
    return made


def _host_values(tensor: torch.Tensor) -> dict[str, object]:
    values = {"list": [number_to_json(value) for value in tensor.reshape(-1).tolist()]}
    dtype = str(tensor.dtype).removeprefix("torch.")
    return {"host": [values if tensor.dim() else values["list"][0], dtype]}


def _tensors(values: Iterable[object]) -> list[torch.Tensor]:
    tensors: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
        elif isinstance(value, list | tuple):
            tensors += _tensors(value)
    return tensors

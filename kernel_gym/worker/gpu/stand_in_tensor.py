"""Tensors on the simulated device: shapes and strides are here, bytes only on the device.

A `DeviceTensor` reports the device `cuda`, as on a ROCm build of PyTorch, so that ordinary GPU code
runs unchanged. It has no storage in this process. Allocations and copies are requests to the
device. Views are computed here. Every other operator is refused, with its name in the message.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from kernel_gym.protocol.fields import TensorOnDevice

aten = torch.ops.aten
META = torch.device("meta")


class Runtime(Protocol):
    """The requests to the device that tensors need."""

    def allocate(self, size: int) -> int:
        """Allocates `size` bytes and returns their address."""

    def free(self, address: int) -> None:
        """Frees an allocation."""

    def fill(self, tensor: TensorOnDevice, value: float) -> None:
        """Sets every element."""

    def copy(self, source: TensorOnDevice, target: TensorOnDevice) -> None:
        """Copies element by element."""

    def upload(self, address: int, data: bytes) -> None:
        """Copies host bytes to the device."""

    def refuse(self, operator: str) -> None:
        """Reports that an operator was refused."""


class Memory:
    """A piece of device memory. If `owned`, it is freed with the last tensor over it."""

    def __init__(self, runtime: Runtime, address: int, size: int, owned: bool) -> None:
        self.runtime = runtime
        self.address = address
        self.size = size
        if owned:
            weakref.finalize(self, runtime.free, address).atexit = False


class DeviceTensor(torch.Tensor):
    """A tensor whose bytes are on the simulated device."""

    _meta: torch.Tensor
    _memory: Memory

    @staticmethod
    def __new__(cls, meta: torch.Tensor, memory: Memory) -> DeviceTensor:
        """Wraps a meta tensor (shape, strides, offset, dtype) over device memory."""
        tensor = torch.Tensor._make_wrapper_subclass(
            cls,
            meta.size(),
            strides=meta.stride(),
            storage_offset=meta.storage_offset(),
            dtype=meta.dtype,
            layout=meta.layout,
            device=torch.device("cuda", 0),
        )
        tensor._meta = meta
        tensor._memory = memory
        return tensor

    def data_ptr(self) -> int:
        """Device address of the first element."""
        if self._memory.size == 0:
            return 0
        offset = int(self._meta.storage_offset())
        return self._memory.address + offset * self._meta.element_size()

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        """Shape and dtype: the values are on the device."""
        return f"DeviceTensor(shape={tuple(self.shape)}, dtype={self.dtype}, device='cuda:0')"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Runs one operator: a view, an allocation, a copy, or a refusal."""
        return run_operator(func, args, kwargs or {}, _runtime_of(args, kwargs))


def describe(tensor: DeviceTensor) -> TensorOnDevice:
    """Describes a tensor for messages to the device and to the judge."""
    return TensorOnDevice(
        tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype
    )


class DeviceMode(TorchDispatchMode):
    """Sends operators that create tensors on `cuda` to the device."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self.runtime = runtime

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Runs one operator, on the device when it names one or a device tensor takes part."""
        kwargs = kwargs or {}
        device = kwargs.get("device")
        on_device = device is not None and torch.device(device).type == "cuda"
        if on_device or any(isinstance(a, DeviceTensor) for a in _leaves(args, kwargs)):
            return run_operator(func, args, kwargs, self.runtime)
        return func(*args, **kwargs)


def run_operator(func: Any, args: tuple, kwargs: dict[str, Any], runtime: Runtime) -> Any:
    """Runs one operator on device tensors.

    Raises:
        RuntimeError: The operator computes, or reads device memory on the host.
    """
    handler = _HANDLERS.get(func.overloadpacket)
    if handler is not None:
        return handler(func, args, kwargs, runtime)
    if func.is_view or func.overloadpacket in METADATA:
        return _view(func, args, kwargs)
    runtime.refuse(str(func))
    raise RuntimeError(
        f"torch operator {func} is refused on device tensors: only allocation and view operations "
        "are allowed here; do the work in your kernel"
    )


def _view(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    memory = next(a._memory for a in _leaves(args, kwargs) if isinstance(a, DeviceTensor))
    out = func(*tree_map(_to_meta, args), **tree_map(_to_meta, kwargs))
    return tree_map(lambda o: DeviceTensor(o, memory) if isinstance(o, torch.Tensor) else o, out)


def _allocate(func: Any, args: tuple, kwargs: dict[str, Any], runtime: Runtime) -> DeviceTensor:
    kwargs = {k: v for k, v in kwargs.items() if k != "pin_memory"} | {"device": META}
    return _fresh(func(*tree_map(_to_meta, args), **tree_map(_to_meta, kwargs)), runtime)


def _allocate_filled(value: float | None) -> Callable:
    def handler(func: Any, args: tuple, kwargs: dict[str, Any], runtime: Runtime) -> DeviceTensor:
        tensor = _allocate(func, args, kwargs, runtime)
        constant = _fill_argument(func, args, kwargs) if value is None else value
        runtime.fill(describe(tensor), constant)
        return tensor

    return handler


def _fill_argument(func: Any, args: tuple, kwargs: dict[str, Any]) -> float:
    names = [a.name for a in func._schema.arguments]
    return kwargs["fill_value"] if "fill_value" in kwargs else args[names.index("fill_value")]


def _fill(func: Any, args: tuple, kwargs: dict[str, Any], runtime: Runtime) -> torch.Tensor:
    value = 0 if func.overloadpacket is aten.zero_ else args[1]
    if isinstance(value, torch.Tensor):
        raise RuntimeError("fill_ takes a number here, not a tensor")
    runtime.fill(describe(args[0]), value)
    return args[0]


def _clone(func: Any, args: tuple, kwargs: dict[str, Any], runtime: Runtime) -> DeviceTensor:
    target = _fresh(func(args[0]._meta, **kwargs), runtime)
    runtime.copy(describe(args[0]), describe(target))
    return target


def _copy(func: Any, args: tuple, kwargs: dict[str, Any], runtime: Runtime) -> torch.Tensor:
    target, source = args[0], args[1]
    if not isinstance(target, DeviceTensor):
        return refuse_read(str(func), runtime)
    if not isinstance(source, DeviceTensor):
        source = _upload(source.expand(target.shape).to(target.dtype), runtime)
    source = DeviceTensor(source._meta.expand(target.shape), source._memory)
    runtime.copy(describe(source), describe(target))
    return target


def _convert(func: Any, args: tuple, kwargs: dict[str, Any], runtime: Runtime) -> DeviceTensor:
    source, dtype = args[0], kwargs.get("dtype") or args[0].dtype
    if not isinstance(source, DeviceTensor):
        return _upload(source.to(dtype), runtime)
    device = kwargs.get("device")
    if device is not None and torch.device(device).type != "cuda":
        return refuse_read(str(func), runtime)
    if dtype != source.dtype:
        runtime.refuse(f"conversion from {source.dtype} to {dtype}")
        raise RuntimeError(
            f"converting {source.dtype} to {dtype} with torch is refused: convert in your kernel"
        )
    return _clone(aten.clone.default, (source,), {}, runtime)


def _refuse_read(func: Any, args: tuple, kwargs: dict[str, Any], runtime: Runtime) -> Any:
    return refuse_read(str(func), runtime)


def refuse_read(operator: str, runtime: Runtime) -> Any:
    """Refuses a call that would copy device values to the host.

    Raises:
        RuntimeError: Always.
    """
    runtime.refuse(f"{operator} (host reads device memory)")
    raise RuntimeError("reading device memory on the host is refused: keep the work in your kernel")


def _upload(source: torch.Tensor, runtime: Runtime) -> DeviceTensor:
    source = source.contiguous()
    target = _fresh(torch.empty(source.shape, dtype=source.dtype, device=META), runtime)
    if source.numel():
        flat = source.reshape(-1).view(torch.uint8) if source.dim() else source.reshape(1)
        runtime.upload(target.data_ptr(), bytes(flat.view(torch.uint8).numpy()))
    return target


def _fresh(meta: torch.Tensor, runtime: Runtime) -> DeviceTensor:
    size = meta.untyped_storage().nbytes()
    return DeviceTensor(meta, Memory(runtime, runtime.allocate(size), size, owned=True))


def slice_tensor(tensor: DeviceTensor, index: Any) -> DeviceTensor:
    """Returns a view by basic indexing.

    Raises:
        RuntimeError: The index holds a tensor or a list, which would gather.
    """
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(i, torch.Tensor | list) for i in parts):
        tensor._memory.runtime.refuse("indexing by a tensor")
        raise RuntimeError("indexing by a tensor gathers: do it in your kernel")
    return DeviceTensor(tensor._meta[index], tensor._memory)


def _to_meta(value: Any) -> Any:
    if isinstance(value, DeviceTensor):
        return value._meta
    return META if isinstance(value, torch.device) else value


def _leaves(args: tuple, kwargs: dict[str, Any] | None) -> list[Any]:
    leaves: list[Any] = []
    tree_map(leaves.append, (args, kwargs or {}))
    return leaves


def _runtime_of(args: tuple, kwargs: dict[str, Any] | None) -> Runtime:
    return next(a for a in _leaves(args, kwargs) if isinstance(a, DeviceTensor))._memory.runtime


_HANDLERS: dict[Any, Callable] = {
    **dict.fromkeys(
        (aten.empty, aten.empty_like, aten.empty_strided, aten.new_empty, aten.new_empty_strided),
        _allocate,
    ),
    **dict.fromkeys((aten.zeros, aten.zeros_like, aten.new_zeros), _allocate_filled(0)),
    **dict.fromkeys((aten.ones, aten.ones_like, aten.new_ones), _allocate_filled(1)),
    **dict.fromkeys((aten.full, aten.full_like, aten.new_full), _allocate_filled(None)),
    aten.fill_: _fill,
    aten.zero_: _fill,
    aten.clone: _clone,
    aten.copy_: _copy,
    aten._to_copy: _convert,
    aten._local_scalar_dense: _refuse_read,
}
METADATA = frozenset({aten.detach, aten.alias, aten._unsafe_view, aten._reshape_alias})
"""Operators that return a view although their schema does not say so."""
ALLOWED = frozenset(_HANDLERS) - {aten.copy_, aten._to_copy, aten._local_scalar_dense}
"""Operators that a candidate may use on device tensors with any arguments."""

"""The part of `torch.cuda` that programs need and candidates do not, such as random numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from kernel_gym.programs import torch_compile
from kernel_gym.worker.sim import cuda_facade, mixed_products
from kernel_gym.worker.sim.runtime import SimRuntime

_LIBRARIES: list[torch.library.Library] = []
"""Operators that are registered in this process; they end with their library."""


def install(runtime: SimRuntime) -> None:
    """Replaces the calls of `torch.cuda`, also those that a candidate does not need."""
    cuda_facade.install(runtime)
    torch_compile.install(runtime)
    _LIBRARIES.append(mixed_products.install())
    for name, value in (_random_calls() | _tensor_types()).items():
        setattr(torch.cuda, name, value)
    storages: Any = torch.UntypedStorage
    storages.__new__, storages.resize_ = _make_storage, _resize_storage
    ranges: Any = torch.cuda.nvtx
    ranges._nvtx = SimpleNamespace(
        rangePushA=lambda text: 0,
        rangePop=lambda: 0,
        rangeStartA=lambda text: 0,
        rangeEnd=lambda number: None,
        markA=lambda text: None,
    )


def _random_calls() -> dict[str, object]:
    """The random numbers of a program. The first generator is the device's default one."""
    default = torch.Generator(device="cuda")

    def state(device: object = "cuda") -> torch.Tensor:
        return default.get_state()

    def set_state(new: torch.Tensor, device: object = "cuda") -> None:
        default.set_state(new)

    return {
        "default_generators": (default,),
        **dict.fromkeys(("manual_seed", "manual_seed_all"), lambda seed: default.manual_seed(seed)),
        **dict.fromkeys(("seed", "seed_all"), lambda: default.seed()),
        "initial_seed": lambda: default.initial_seed(),
        "get_rng_state": state,
        "get_rng_state_all": lambda: [state()],
        "set_rng_state": set_state,
        "set_rng_state_all": lambda states: set_state(states[0]),
    }


class _TypeOfTensors(type):
    """The type of a class such as `torch.cuda.FloatTensor`, which makes tensors of one dtype."""

    dtype: torch.dtype

    def __call__(cls, *args: Any) -> torch.Tensor:
        """Makes a tensor of these sizes, or with this content."""
        if args and not isinstance(args[0], int):
            return torch.tensor(args[0], dtype=cls.dtype, device="cuda")
        return torch.empty(args or (0,), dtype=cls.dtype, device="cuda")

    def __instancecheck__(cls, value: object) -> bool:
        """Whether a value is such a tensor."""
        return isinstance(value, torch.Tensor) and value.is_cuda and value.dtype == cls.dtype


_TYPES = {
    "Float": torch.float32,
    "Double": torch.float64,
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "Long": torch.int64,
    "Int": torch.int32,
    "Short": torch.int16,
    "Char": torch.int8,
    "Byte": torch.uint8,
    "Bool": torch.bool,
}


def _tensor_types() -> dict[str, type]:
    names = {f"{name}Tensor": dtype for name, dtype in _TYPES.items()}
    return {name: _TypeOfTensors(name, (), {"dtype": dtype}) for name, dtype in names.items()}


def _make_storage(cls: type, *args: Any, device: Any = None, **options: object) -> object:
    """Implements `torch.UntypedStorage(size, device=...)`, whose C++ part knows no such device."""
    if device is None or torch.device(device).type != "cuda":
        chosen = {} if device is None else {"device": device}
        return _storage_new(cls, *args, **chosen, **options)
    size = args[0] if args else 0
    if isinstance(size, int):
        return torch.empty(size, dtype=torch.uint8, device="cuda").untyped_storage()
    return torch.tensor(list(size), dtype=torch.uint8, device="cuda").untyped_storage()


_storage_new = torch.UntypedStorage.__new__


def _resize_storage(storage: Any, size: int) -> object:
    """Implements `UntypedStorage.resize_`, whose C++ part knows no such device."""
    if storage.device.type != "cuda":
        return _storage_resize(storage, size)
    content = torch.empty(0, dtype=torch.uint8, device="cuda").set_(storage)
    torch.ops.inductor.resize_storage_bytes_(content, size)
    return storage


_storage_resize = torch.UntypedStorage.resize_

"""Gives PyTorch's `cuda` device of this process its memory and its policy: a runtime's.

Both users share it. A candidate's recorder notes memory, fills and copies, and refuses every other
operator. A user's own program computes them in the device's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.torch_device import library
from kernel_gym.worker.sim.runtime import SimRuntime


def ask(runtime: SimRuntime, refuse: Callable[[str], None]) -> None:
    """Makes the device of a recorder: what computes is refused.

    Args:
        runtime: Takes requests.
        refuse: Notes the name of an operator that was refused.
    """
    runtime.released = library.released
    library.connect(
        library.ASK,
        runtime.allocate,
        copy=lambda source, target: runtime.copy(_described(source), _described(target)),
        upload=runtime.upload,
        fill=lambda target, value: runtime.fill(_described(target), value),
        refuse=refuse,
    )
    torch.Tensor.__repr__ = _without_values  # type: ignore[assignment]
    _accept_calls_of_gpu_builds()


def compute(
    runtime: SimRuntime, price: Callable[[str], library.Charge], link: float, latency: float
) -> None:
    """Makes the device of a user's own program: PyTorch computes in the device's memory.

    Args:
        runtime: Provides the memory, which this process can access.
        price: Returns the cost of a call of an operator, see `library.connect`.
        link: Bytes/s of a copy between host and device.
        latency: Seconds that each such copy takes besides.
    """
    runtime.released = library.released
    library.connect(library.COMPUTE, runtime.allocate, price=price)
    library.set_link(link, latency)
    _accept_calls_of_gpu_builds()


def describe(tensor: torch.Tensor) -> TensorOnDevice:
    """Describes a tensor for messages to the device and to the judge."""
    return TensorOnDevice(
        tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype
    )


def _accept_calls_of_gpu_builds() -> None:
    """Lets code run that was written for a build of PyTorch for GPUs.

    Calls take the streams of `cuda_facade`, which are names and no streams of PyTorch. Code that
    PyTorch's compiler has written allocates by a function of its own.
    """
    tensors: Any = torch.Tensor
    tensors.record_stream = lambda tensor, stream: None
    # modules of a build for GPUs import it
    vars(torch._C).update(_cuda_getCurrentRawStream=lambda device: 0)
    vars(torch._C._dynamo.guards).update(_empty_strided_cuda=_empty_strided)
    vars(torch.cuda).update(_is_compiled=lambda: True)


def _empty_strided(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(size, stride, dtype=dtype, device="cuda")


def _described(piece: library.Piece) -> TensorOnDevice:
    axes = range(piece.dimensions)
    return TensorOnDevice(
        piece.address or 0,
        tuple(piece.sizes[i] for i in axes),
        tuple(piece.strides[i] for i in axes),
        getattr(torch, piece.type.decode()),
    )


_repr = torch.Tensor.__repr__


def _without_values(tensor: torch.Tensor, *, tensor_contents: object = None) -> str:
    """Shape and dtype of a device tensor: its values are on the device."""
    if not tensor.is_cuda:
        return _repr(tensor, tensor_contents=tensor_contents)  # type: ignore[call-arg]
    return f"tensor(shape={tuple(tensor.shape)}, dtype={tensor.dtype}, device='cuda:0')"

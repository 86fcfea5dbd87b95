"""The memory on a GPU that a worker shares with the judge, seen from the worker."""

from __future__ import annotations

import mmap
from functools import cache
from typing import Any

import torch

from kernel_gym.devices.gpu import runtime as gpu_runtime
from kernel_gym.protocol.worker import ArenaTensor


class WorkerArena:
    """The judge's arena: the same memory by handle, or a copy that passes through a shared file.

    Args:
        bytes_: The memory on the GPU, uint8.
        host: The shared file, uint8 of the same size; None where the memory is the judge's own.
    """

    def __init__(self, bytes_: torch.Tensor, host: torch.Tensor | None) -> None:
        self._bytes = bytes_
        self._host = host
        self._start = bytes_.data_ptr()
        self._as = cache(lambda dtype: bytes_.view(dtype))

    def tensor(self, arg: ArenaTensor) -> torch.Tensor:
        """The tensor that an argument describes."""
        whole = self._as(arg.dtype)
        start = whole.storage_offset() + arg.start // whole.itemsize + arg.offset
        return whole.as_strided(arg.shape, arg.strides, start)

    def put(self, start: int, tensor: torch.Tensor) -> None:
        """Copies the elements of a tensor, in order, to an offset (bytes) in the arena."""
        flat = tensor.contiguous().view(-1).view(torch.uint8)
        self._bytes[start : start + flat.numel()].copy_(flat)

    def copy_in(self, start: int, size: int) -> None:
        """Copies a range from the shared file, where the judge has written it."""
        assert self._host is not None
        self._bytes[start : start + size].copy_(self._host[start : start + size])

    def copy_out(self, start: int, size: int) -> None:
        """Copies a range to the shared file, where the judge reads it."""
        assert self._host is not None
        self._host[start : start + size].copy_(self._bytes[start : start + size])

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies in the arena."""
        return 0 <= self.offset(tensor) < self._bytes.numel()

    def offset(self, tensor: torch.Tensor) -> int:
        """Bytes from the start of the arena."""
        return tensor.data_ptr() - self._start

    def describe(self, output: Any) -> dict[str, Any]:
        """Describes a value that a candidate returned, for the judge's check of metadata."""
        if not isinstance(output, torch.Tensor):
            return {"wrong": f"a {type(output).__name__}"}
        if type(output) is not torch.Tensor or not output.is_cuda:
            return {"wrong": f"a {output.dtype} tensor on {output.device}"}
        start = self.offset(output) if self.holds(output) else -1
        return {
            "dtype": str(output.dtype).removeprefix("torch."),
            "shape": list(output.shape),
            "strides": list(output.stride()),
            "start": start,
            "address": output.data_ptr(),
        }


class Exports:
    """Handles by which the judge opens the memory of tensors and reads it itself.

    Each answer needs a new object. A freed allocation may return at the same address, with another
    handle.
    """

    def __init__(self, arena: WorkerArena) -> None:
        self._arena = arena
        self._allocations: list[tuple[int, int]] = []
        self.handles: list[str] = []

    def place(self, output: Any) -> list[int]:
        """Where an output is: [allocation, offset in bytes, size in bytes].

        Allocation -1 is the arena. A value that is no contiguous tensor has no place: [].
        """
        if not isinstance(output, torch.Tensor) or not output.is_contiguous():
            return []
        address, size = output.data_ptr(), output.nbytes
        if self._arena.holds(output):
            return [-1, self._arena.offset(output), size]
        for index, (start, end) in enumerate(self._allocations):
            if start <= address < end:
                return [index, address - start, size]
        start, length = gpu_runtime.allocation_of(address)
        self._allocations.append((start, start + length))
        self.handles.append(gpu_runtime.export(start).hex())
        return [len(self._allocations) - 1, address - start, size]


def open_arena(handle: str, size: int, file: int | None) -> WorkerArena:
    """Opens the judge's arena by a handle, or through a shared file.

    Args:
        handle: The handle, in hexadecimal digits; unused with a file.
        size: Bytes of the arena.
        file: Descriptor of the shared file, or None.

    Raises:
        GpuRuntimeError: The handle cannot be opened in this process.
    """
    if file is None:
        address = gpu_runtime.open_handle(bytes.fromhex(handle))
        return WorkerArena(gpu_runtime.as_tensor(address, size), None)
    host = torch.frombuffer(mmap.mmap(file, size), dtype=torch.uint8)
    return WorkerArena(torch.empty(size, dtype=torch.uint8, device="cuda"), host)

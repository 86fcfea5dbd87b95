"""The worker's view of the memory that it shares with the judge on a GPU."""

from __future__ import annotations

import mmap
from functools import cache
from typing import Any

import torch

from kernel_gym.devices.gpu import runtime as gpu_runtime


class Arena:
    """The judge's arena: its own memory by handle, or a copy kept in step through a shared file."""

    def __init__(self, bytes_: torch.Tensor, host: torch.Tensor | None) -> None:
        self._bytes = bytes_
        self._host = host
        self._start = bytes_.data_ptr()
        self._as = cache(lambda name: bytes_.view(getattr(torch, name)))

    def tensor(self, arg: dict[str, Any]) -> torch.Tensor:
        """The tensor that an argument describes: start (bytes), skip (elements), shape, strides."""
        whole = self._as(arg["dtype"])
        start = whole.storage_offset() + arg["start"] // whole.itemsize + arg["skip"]
        return whole.as_strided(arg["shape"], arg["strides"], start)

    def put(self, start: int, tensor: torch.Tensor) -> None:
        """Copies a tensor's elements, in order, to a place in the arena."""
        flat = tensor.contiguous().view(-1).view(torch.uint8)
        self._bytes[start : start + flat.numel()].copy_(flat)

    def pull(self, start: int, size: int) -> None:
        """Fetches what the judge has put there, where the memory is not the judge's own."""
        assert self._host is not None
        self._bytes[start : start + size].copy_(self._host[start : start + size])

    def push(self, start: int, size: int) -> None:
        """Shows the judge what is there."""
        assert self._host is not None
        self._host[start : start + size].copy_(self._bytes[start : start + size])

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies in the arena."""
        return 0 <= self.offset(tensor) < self._bytes.numel()

    def offset(self, tensor: torch.Tensor) -> int:
        """Bytes from the start of the arena."""
        return tensor.data_ptr() - self._start

    def describe(self, output: Any) -> dict[str, Any]:
        """What a candidate returned, for the judge's check of metadata."""
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
    """Places of tensors in terms by which the judge opens and reads their memory itself.

    Made anew for each answer: an allocation that was freed may come again at the same address.
    """

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._found: list[tuple[int, int]] = []
        self.handles: list[str] = []

    def place(self, output: Any) -> list[int]:
        """[allocation, offset in bytes, bytes]: allocation -1 is the arena; [] for no tensor."""
        if not isinstance(output, torch.Tensor) or not output.is_contiguous():
            return []
        address, size = output.data_ptr(), output.nbytes
        if self._arena.holds(output):
            return [-1, self._arena.offset(output), size]
        for index, (start, end) in enumerate(self._found):
            if start <= address < end:
                return [index, address - start, size]
        start, length = gpu_runtime.allocation_of(address)
        self._found.append((start, start + length))
        self.handles.append(gpu_runtime.export(start).hex())
        return [len(self._found) - 1, address - start, size]


def open_arena(handle: str, size: int, file: int | None) -> Arena:
    """Opens the judge's arena, by a handle (hexadecimal) or through a shared file.

    Raises:
        GpuRuntimeError: the handle cannot be opened in this process.
    """
    if file is None:
        address = gpu_runtime.open_handle(bytes.fromhex(handle))
        return Arena(gpu_runtime.as_tensor(address, size), None)
    host = torch.frombuffer(mmap.mmap(file, size), dtype=torch.uint8)
    return Arena(torch.empty(size, dtype=torch.uint8, device="cuda"), host)

"""Builds the HIP source as an extension of PyTorch at its first use, and calls its launcher."""

from __future__ import annotations

import ctypes
import functools
import hashlib
from pathlib import Path

import torch
from torch.utils.cpp_extension import load

SOURCE = Path(__file__).with_name("candidate.hip")


def launch(entry: str, arguments: list[torch.Tensor | int | float], kinds: list[str]) -> None:
    """Calls the launcher on the current stream.

    Args:
        entry: The name of the launcher.
        arguments: Tensors and scalars in the launcher's order, without the stream.
        kinds: "tensor", "int" or "float" of each argument.

    Raises:
        RuntimeError: The source does not build, or the launcher returned an error.
    """
    values = [_in_c(value, kind) for value, kind in zip(arguments, kinds, strict=True)]
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    status = getattr(_library(), entry)(*values, stream)
    if status:
        raise RuntimeError(f"{entry}: the launcher returned error {status} of HIP")


def _in_c(
    value: torch.Tensor | int | float, kind: str
) -> ctypes.c_void_p | ctypes.c_int64 | ctypes.c_float:
    if isinstance(value, torch.Tensor):
        return ctypes.c_void_p(value.data_ptr())
    return ctypes.c_int64(int(value)) if kind == "int" else ctypes.c_float(value)


@functools.cache
def _library() -> ctypes.CDLL:
    key = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    return ctypes.CDLL(load(f"gpu_kernel_{key}", [str(SOURCE)], is_python_module=False))

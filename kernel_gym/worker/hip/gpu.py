"""Loads a HIP candidate for a real GPU: a shared object with a C launcher, no torch headers."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from kernel_gym.sandbox.failures import BuildError
from kernel_gym.worker.sim.runtime import DeviceError


class HipCandidate:
    """Calls the C launcher with device addresses, sizes and the current stream.

    Args:
        library: The loaded shared object.
        entry: Name of the launcher.
        outputs: Which of the launcher's arguments it writes.
        log: What the compiler printed.

    Raises:
        BuildError: The object has no such launcher.
    """

    def __init__(self, library: ctypes.CDLL, entry: str, outputs: Sequence[int], log: str) -> None:
        self.library = library
        self.facts = read_resources(log)
        self._outputs = outputs
        try:
            self._function = getattr(library, entry)
        except AttributeError:
            raise BuildError(f'the source exports no extern "C" launcher {entry!r}') from None
        self._function.restype = ctypes.c_int

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """Calls the launcher once; returns those arguments that are outputs."""
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        status = self._function(*[_c_argument(a) for a in args], stream)
        if status:
            raise DeviceError(f"the launcher returned hipError_t {status}, expected hipSuccess (0)")
        return tuple(args[i] for i in self._outputs)


def load(library: bytes, entry: str, outputs: Sequence[int], log: str) -> HipCandidate:
    """Loads a compiled candidate.

    Args:
        library: The shared object.
        entry: Name of its launcher.
        outputs: Which of the launcher's arguments it writes.
        log: What the compiler printed.

    Raises:
        BuildError: The object does not load, or it has no such launcher.
    """
    name = hashlib.sha256(library).hexdigest()[:24]  # dlopen reads each name once
    path = Path(os.environ["TMPDIR"]) / f"{name}.so"
    path.write_bytes(library)
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        missing = str(error).split(":", 1)[-1].strip()
        raise BuildError(f"the object does not load: {missing}") from None
    finally:
        path.unlink()
    return HipCandidate(loaded, entry, outputs, log)


def read_resources(log: str) -> list[dict[str, Any]]:
    """Reads registers, spills and shared memory of each kernel from the log of ptxas or clang."""
    return _read_ptxas(log) or _read_clang(log)


def _read_ptxas(log: str) -> list[dict[str, Any]]:
    kernels = []
    for part in re.split(r"Compiling entry function '", log)[1:]:
        registers = re.search(r"Used (\d+) registers", part)
        shared = re.search(r"(\d+) bytes smem", part)
        stores = re.search(r"(\d+) bytes spill stores", part)
        stack = re.search(r"(\d+) bytes stack frame", part)
        kernels.append(
            {
                "name": part.split("'", 1)[0],
                "vgprs": int(registers.group(1)) if registers else 0,
                "vgpr_spills": int(stores.group(1)) // 4 if stores else 0,
                "scratch_bytes": int(stack.group(1)) if stack else 0,
                "lds_bytes": int(shared.group(1)) if shared else 0,
            }
        )
    return kernels


_CLANG = {
    "vgprs": r"\bVGPRs: (\d+)",
    "agprs": r"AGPRs: (\d+)",
    "sgprs": r"(?:Total)?SGPRs: (\d+)",
    "vgpr_spills": r"VGPRs Spill: (\d+)",
    "sgpr_spills": r"SGPRs Spill: (\d+)",
    "scratch_bytes": r"ScratchSize \[bytes/lane\]: (\d+)",
    "lds_bytes": r"LDS Size \[bytes/block\]: (\d+)",
}


def _read_clang(log: str) -> list[dict[str, Any]]:
    kernels = []
    for part in re.split(r"Function Name: ", log)[1:]:
        matches = {name: re.search(pattern, part) for name, pattern in _CLANG.items()}
        numbers = {name: int(match.group(1)) for name, match in matches.items() if match}
        if numbers.get("agprs"):  # one register file; AGPRs begin at a multiple of 4
            numbers["vgprs"] = -(-numbers.get("vgprs", 0) // 4) * 4 + numbers["agprs"]
        kernels.append({"name": part.split()[0], "vgprs": 0, **numbers})
    return kernels


def _c_argument(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return ctypes.c_void_p(value.data_ptr())
    return ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int64(value)

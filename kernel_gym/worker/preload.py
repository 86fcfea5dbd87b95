"""Pays for first times once, in the template: every worker forked from it starts warm.

The first compilation in a process loads LLVM's targets and passes (0.4 s), the first meta operator
imports PyTorch's decompositions (0.9 s); the following ones take a tenth of that.
"""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl
from triton.backends import backends
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernel_gym.devices.gpu.vendors import device_files, vendor_here
from kernel_gym.worker.sim.function_mode import GuardlessMode
from kernel_gym.worker.sim.tensor import DeviceMode, DeviceTensor, Memory


@triton.jit
def _double(x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    values = values * 2 + tl.sum(tl.exp(values), axis=0)
    tl.store(x + offsets, values, mask=offsets < n)


class _NoDevice:
    """Takes every request and does nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: 0


_driver_files: dict[str, bytes] = {}
"""By their paths in Triton's cache, the objects that Triton builds to drive the GPU."""


def seed_cache() -> None:
    """Puts them into this process's own cache, which spares it a run of the C compiler."""
    folder = Path(os.environ["TRITON_CACHE_DIR"])
    for name, content in _driver_files.items():
        path = folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _warm_gpu(source: ASTSource) -> None:
    """Compiles for the GPU of this machine as well, and builds what Triton needs to drive it.

    Nothing here opens the GPU, nor loads its driver: no child of this process could use it then.
    """
    vendor = vendor_here()
    if not (torch.version.cuda or torch.version.hip) or not device_files(vendor):
        return
    target = GPUTarget(vendor.backend, vendor.some_arch, vendor.wavefront)
    triton.compile(source, target=target)
    with tempfile.TemporaryDirectory() as folder:
        builder = os.fork()
        if builder == 0:
            with contextlib.suppress(BaseException):  # then each worker tries by itself
                os.environ["TRITON_CACHE_DIR"] = folder
                backends[vendor.driver].driver()
            os._exit(0)
        os.waitpid(builder, 0)
        for path in Path(folder).rglob("*"):
            if path.is_file():
                _driver_files[str(path.relative_to(folder))] = path.read_bytes()


def warm() -> None:
    """Compiles one kernel for gfx942 into a folder that goes away; runs a few meta operators.

    Keeps all that is there now from the collector, for this process is forked from afterwards.
    """
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"TRITON_CACHE_DIR": folder, "TRITON_DEFAULT_FP_FUSION": "1"}
        source = ASTSource(_double, {"x": "*fp16", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64})
        triton.compile(source, target=GPUTarget("hip", "gfx942", 64))
        _warm_gpu(source)
    nowhere = _NoDevice()
    tensor = DeviceTensor(torch.empty(4, 4, device="meta"), Memory(nowhere, 0, 64, False))
    with GuardlessMode(nowhere), DeviceMode(nowhere):  # what the modes import lazily takes 0.9 s
        torch.empty_like(tensor)
        tensor.t().contiguous()
        tensor[1:].view(-1).expand(2, 12).reshape(4, 6)
    gc.collect()
    gc.freeze()  # no worker looks for garbage among what is loaded, nor copies its pages for that

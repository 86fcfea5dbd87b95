"""Warms up the template, so that every worker that is forked from it starts warm.

The first compilation in a process loads LLVM's targets and passes (0.4 s). Later ones take a tenth
of that.
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

from kernel_gym import triton_versions
from kernel_gym.devices.gpu.vendors import device_files, vendor_here
from kernel_gym.sim.asm import disassembler
from kernel_gym.worker.gpu.stand_in_calls import GuardlessMode
from kernel_gym.worker.gpu.stand_in_tensor import DeviceMode, DeviceTensor, Memory


@triton.jit
def _double(x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    values = values * 2 + tl.sum(tl.exp(values), axis=0)
    tl.store(x + offsets, values, mask=offsets < n)


class _NoDevice:
    """Accepts every request and does nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: 0


_driver_files: dict[str, bytes] = {}
"""The objects that Triton builds to drive the GPU, by their paths in Triton's cache."""


def seed_cache() -> None:
    """Copies the driver's objects to this process's cache, which saves a run of the C compiler."""
    folder = Path(os.environ["TRITON_CACHE_DIR"])
    for name, content in _driver_files.items():
        path = folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _warm_gpu(source: ASTSource) -> None:
    """Compiles for the GPU of this machine, and builds what Triton needs to drive it.

    This neither opens the GPU nor loads its driver. Otherwise no child of this process could use
    the GPU.
    """
    vendor = vendor_here()
    if not (torch.version.cuda or torch.version.hip) or not device_files(vendor):
        return
    _import_for_meta_operators()
    target = GPUTarget(vendor.backend, vendor.some_arch, vendor.wavefront)
    triton.compile(source, target=target)
    with tempfile.TemporaryDirectory() as folder:
        builder = os.fork()
        if builder == 0:
            with contextlib.suppress(BaseException):  # each worker tries again
                os.environ["TRITON_CACHE_DIR"] = folder
                backends[vendor.driver].driver()
            os._exit(0)
        os.waitpid(builder, 0)
        for path in Path(folder).rglob("*"):
            if path.is_file():
                _driver_files[str(path.relative_to(folder))] = path.read_bytes()


def _import_for_meta_operators() -> None:
    """Runs a few meta operators of stand-in tensors, which import PyTorch's decompositions (0.9 s).

    A confined worker cannot import them: it does not see all files that they want.
    """
    nowhere = _NoDevice()
    tensor = DeviceTensor(torch.empty(4, 4, device="meta"), Memory(nowhere, 0, 64, False))
    with GuardlessMode(nowhere), DeviceMode(nowhere):
        torch.empty_like(tensor)
        tensor.t().contiguous()
        tensor[1:].view(-1).expand(2, 12).reshape(4, 6)


def warm() -> None:
    """Compiles one kernel for gfx942 into a temporary folder.

    Afterwards it excludes all existing objects from garbage collection, since forks share them.
    """
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"TRITON_CACHE_DIR": folder, **triton_versions.ENVIRONMENT}
        source = ASTSource(_double, {"x": "*fp16", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64})
        triton.compile(source, target=GPUTarget("hip", "gfx942", 64))
        _warm_gpu(source)
    disassembler.knows("gfx942")  # loads LLVM's library for the simulated devices
    gc.collect()
    gc.freeze()  # a collection in a worker would copy the pages of all loaded objects

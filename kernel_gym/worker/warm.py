"""Pays for first times once, in the template: every worker forked from it starts warm.

The first compilation in a process loads LLVM's targets and passes (0.4 s), the first meta operator
imports PyTorch's decompositions (0.9 s); the following ones take a tenth of that.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

import torch
import triton
import triton.language as tl
from triton.backends import backends
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernel_gym.devices.vendors import device_files, vendor_here
from kernel_gym.worker.guardless import GuardlessMode
from kernel_gym.worker.tensor import DeviceMode, DeviceTensor, Memory


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


def _warm_gpu(source: ASTSource) -> None:
    """Compiles for the GPU of this machine as well, and builds what Triton needs to drive it.

    Nothing here opens the GPU, or no child of this process could.
    """
    vendor = vendor_here()
    if not (torch.version.cuda or torch.version.hip) or not device_files(vendor):
        return
    target = GPUTarget(vendor.backend, vendor.some_arch, vendor.wavefront)
    triton.compile(source, target=target)
    triton.runtime.driver.set_active(backends[vendor.driver].driver())


def warm() -> None:
    """Compiles one kernel for gfx942 into a folder that goes away; runs a few meta operators."""
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

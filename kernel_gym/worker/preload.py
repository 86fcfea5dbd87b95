"""Warms up the template, so that every worker that is forked from it starts warm.

The first compilation in a process loads LLVM's targets and passes (0.4 s). Later ones take a tenth
of that.
"""

from __future__ import annotations

import gc
import os
import tempfile

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernel_gym import triton_versions
from kernel_gym.worker import triton_key


@triton.jit
def _double(x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    values = values * 2 + tl.sum(tl.exp(values), axis=0)
    tl.store(x + offsets, values, mask=offsets < n)


def _warm_gpu(source: ASTSource) -> None:
    """Compiles for the GPU of this machine, which is not opened for it."""
    if not (torch.version.cuda or torch.version.hip):
        return
    from kernel_gym.devices.gpu.vendors import device_files, vendor_here

    vendor = vendor_here()
    if not device_files(vendor):
        return
    triton.compile(source, target=GPUTarget(vendor.backend, vendor.some_arch, vendor.wavefront))


def warm() -> None:
    """Compiles one kernel for gfx942 into a temporary folder.

    Afterwards it excludes all existing objects from garbage collection, since forks share them.
    Garbage is not searched for before: there is little, and the search takes 0.17 s.
    """
    triton_key.install()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"TRITON_CACHE_DIR": folder, **triton_versions.ENVIRONMENT}
        source = ASTSource(_double, {"x": "*fp16", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64})
        triton.compile(source, target=GPUTarget("hip", "gfx942", 64))
        _warm_gpu(source)
    gc.freeze()  # a collection in a worker would copy the pages of all loaded objects

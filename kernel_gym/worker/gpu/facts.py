"""Facts about a candidate's compiled Triton kernels: registers, spills, shared memory."""

from __future__ import annotations

from typing import Any

from kernel_gym.formatting import anonymous
from kernel_gym.hardware import MI300X, SIMULATED
from kernel_gym.sim.asm.metadata import read_metadata
from kernel_gym.sim.timing.occupancy import occupancy
from kernel_gym.worker.gpu.launches import Launches

MOST_KERNELS = 32
_AMD = {
    "vgprs": "vgpr_count",
    "agprs": "agpr_count",
    "sgprs": "sgpr_count",
    "vgpr_spills": "vgpr_spill_count",
    "sgpr_spills": "sgpr_spill_count",
    "lds_bytes": "group_segment_fixed_size",
    "scratch_bytes": "private_segment_fixed_size",
}


def of_triton(launches: Launches) -> list[dict[str, Any]]:
    """Facts of the kernels that were compiled for this GPU; the last variant of each name counts.

    All figures of a name belong to one binary, which `binary` identifies.
    """
    facts: dict[str, dict[str, Any]] = {}
    hashes: dict[str, str] = {}
    for _, metadata in launches.compiled[-MOST_KERNELS:]:
        hashes[metadata.name] = metadata.hash
        facts[metadata.name] = {
            "name": metadata.name,
            "binary": metadata.hash[:12],
            "vgprs": 0,
            "lds_bytes": metadata.shared,
        }
    for kernel in _loaded_kernels() if facts else ():
        if kernel.module is not None and hashes.get(kernel.name) == kernel.hash:
            facts[kernel.name] |= {"vgprs": kernel.n_regs, "vgpr_spills": kernel.n_spills}
    return list(facts.values())


def cross_compile(launches: Launches, arch: str) -> list[dict[str, Any]]:
    """Compiles the same kernels for an AMD architecture; returns facts, or the error, of each."""
    from triton.backends.compiler import GPUTarget

    target = GPUTarget("hip", arch, 64)
    facts: dict[str, dict[str, Any]] = {}
    for src, metadata in launches.compiled[-MOST_KERNELS:]:
        facts[metadata.name] = _cross_compile(src, metadata, target)
    return list(facts.values())


def _cross_compile(src: Any, metadata: Any, target: Any) -> dict[str, Any]:
    import triton

    options = {"num_warps": metadata.num_warps, "num_stages": min(metadata.num_stages, 2)}
    try:
        compiled = triton.compile(src, target=target, options=options)
    except Exception as error:
        text = anonymous(str(error).strip())[-300:]
        return {"name": metadata.name, "vgprs": 0, "arch": target.arch, "error": text}
    _, _, block = compiled.asm["amdgcn"].partition(".amdgpu_metadata")
    values = read_metadata(block)[metadata.name].values
    facts = {name: values.get(key, 0) for name, key in _AMD.items()}
    threads = metadata.num_warps * target.warp_size
    spec = SIMULATED.get(target.arch, MI300X)
    fits = occupancy(threads, facts["lds_bytes"], facts["vgprs"], spec.lds_bytes)
    return {
        "name": metadata.name,
        "arch": target.arch,
        **facts,
        "waves_per_simd": fits.waves_per_simd,
        "occupancy_limiter": fits.limiter,
    }


def _loaded_kernels() -> list[Any]:
    import gc

    from triton.compiler.compiler import CompiledKernel

    return [one for one in gc.get_objects() if isinstance(one, CompiledKernel)]

"""The words with which clang compiles the HIP that TileLang writes, and whether it can."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

from kernel_gym.devices.cache import cache_folder
from kernel_gym.devices.sim.changed_headers import changed_headers
from kernel_gym.devices.sim.toolchain import HipToolchain

TILELANG_BEGINNING = (
    "hip/hip_runtime.h",
    *(f"tl_templates/hip/{name}.h" for name in ("gemm", "copy", "reduce", "scan", "ldsm")),
    *(f"tl_templates/hip/{name}.h" for name in ("threadblock_swizzle", "debug")),
)
"""The includes with which each of its sources begins."""
_OWN = Path(__file__).parents[2] / "simulated_rocm" / "include"
"""Headers of ROCm 6 that its templates include and that HIP 5 lacks."""


def templates() -> Path | None:
    """Returns the folder of TileLang's device templates; None without TileLang."""
    spec = importlib.util.find_spec("tilelang")
    return Path(spec.origin).parent / "src" if spec is not None and spec.origin else None


def with_tilelang(chain: HipToolchain, folder: Path) -> HipToolchain:
    """Returns a toolchain whose commands find TileLang's templates, and what they include.

    Args:
        chain: The compiler.
        folder: The folder of the templates.
    """
    words = ["-I", str(folder), "-idirafter", str(_OWN)]
    if changed := changed_headers(chain.headers, cache_folder("changed-headers")):
        beside = chain.headers / "hip" / "amd_detail"  # the copies include what lies there
        words += ["-isystem", str(changed), "-idirafter", str(beside)]
    return replace(chain, device=(*chain.device, *words), host=(*chain.host, *words))

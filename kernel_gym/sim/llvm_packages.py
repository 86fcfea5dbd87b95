"""Which version of LLVM a distribution has as a package, for messages that name a cure."""

from __future__ import annotations

import functools
import shutil
import subprocess

CLANG_FOLDER = "HIP_CLANG_PATH"
"""Variable with the folder of the compiler for HIP, which ROCm's hipcc reads and ours does too."""
USUAL = 19
"""The version that is named where it is new enough."""
_NEWER = (22, 21, 20)
"""Versions that a distribution may have beside it; Debian 12 has 22."""


@functools.cache
def packaged_llvm(needed: int) -> int:
    """Returns the version whose packages a message should name.

    Args:
        needed: The oldest version that is new enough.
    """
    if needed <= USUAL:
        return USUAL
    fitting = [version for version in _NEWER if version >= needed] or [needed]
    return next(filter(_is_packaged, fitting), fitting[0])


def _is_packaged(version: int) -> bool:
    if shutil.which("apt-cache") is None:
        return False
    command = ["apt-cache", "show", f"clang-{version}"]
    return subprocess.run(command, capture_output=True).returncode == 0

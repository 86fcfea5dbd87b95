"""Lets a Triton compile that is older than those of :mod:`kernel_gym.triton_versions`.

Measured times belong to the compiler of their time. Triton 3.2 to 3.4 differ from later ones in
three places: they link with a program, their launcher unpacks less, and signatures of 3.2 do not
mark the arguments that became constants. LLVM's `clang` and `ld.lld`
assemble and link here, outside of the sandbox: the texts come from a trusted compiler.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from kernel_gym import triton_versions
from kernel_gym.errors import InputError

_CLANG, _LLD = ("clang-19", "clang-20", "clang"), ("ld.lld-19", "ld.lld-20", "ld.lld")
_MAX_THREADS_SINCE = (3, 4)
"""The first version whose launcher unpacks the most threads of a workgroup."""
_CONSTANTS_MARKED_SINCE = (3, 3)
"""The first version whose signatures say which arguments the compiler has made constants."""


def support_older_triton() -> None:
    """Adapts this process to the installed Triton, if it is an older one.

    Call it before a kernel is compiled.

    Raises:
        InputError: If there is no `clang` or `ld.lld`.
    """
    version = triton_versions.numbers(importlib.metadata.version("triton"))
    if version >= triton_versions.FIRST:
        return
    clang, lld = _program(_CLANG), _program(_LLD)
    os.environ.setdefault("TRITON_HIP_LLD_PATH", lld)
    from kernel_gym.sim.asm.assembler import Assembler
    from kernel_gym.sim.asm.errors import AsmError
    from kernel_gym.worker.sim.triton_driver import SimUtils

    def ask(self: Assembler, link: bool, target: str, text: str) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            source, code, linked = (str(Path(folder, name)) for name in ("a.s", "a.o", "a.hsaco"))
            Path(source).write_text(text, encoding="utf-8")
            command = [clang, "-x", "assembler", "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}"]
            done = subprocess.run([*command, "-c", source, "-o", code], capture_output=True)
            if done.returncode:
                raise AsmError(done.stderr.decode(errors="replace")[:300])
            if link:
                subprocess.run([lld, "-shared", code, "-o", linked], check=True)
            return Path(linked if link else code).read_bytes()

    Assembler._ask = ask  # type: ignore[method-assign]
    if version < _MAX_THREADS_SINCE:
        load = SimUtils.load_binary

        def load_less(self: SimUtils, *arguments: Any) -> tuple:
            return load(self, *arguments)[:4]

        SimUtils.load_binary = load_less  # type: ignore[method-assign, assignment]
    if version < _CONSTANTS_MARKED_SINCE:
        mark_constants()


def mark_constants() -> None:
    """Lets the launcher leave out arguments that became constants, such as strides of 1.

    An older signature has the type of such an argument, and the launch passes its value, but the
    compiled kernel does not take it.
    """
    from kernel_gym.worker.sim.triton_driver import SimLauncher

    build = SimLauncher.__init__

    def build_without_constants(self: SimLauncher, runtime: Any, src: Any, metadata: Any) -> None:
        build(self, runtime, src, metadata)
        self._types = [
            "constexpr" if name in src.constants else kind for name, kind in src.signature.items()
        ]

    SimLauncher.__init__ = build_without_constants  # type: ignore[method-assign]


def _program(names: tuple[str, ...]) -> str:
    """The path of the first program that is there."""
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    raise InputError(f"a Triton this old needs {names[0]}; install LLVM 19")

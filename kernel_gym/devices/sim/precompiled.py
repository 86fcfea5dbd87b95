"""Precompiled headers for HIP candidates: reading HIP's headers takes 95 % of a build.

Sources begin with a few includes, and these are nearly always the same. For each of `BEGINNINGS`
the compiler keeps what it knows after them, once for each side of a build. A source gets the
longest one with which it begins. Nothing may stand before or between these includes except
comments, so macros of a source never precede them: the code that is made is the same, byte by byte.

The files depend on headers, compiler and flags alone, and never on a source. Compilers of
candidates see them read-only. They are made once, under a lock, in the user's cache.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.devices.cache import cache_folder
from kernel_gym.devices.sim import hip_files
from kernel_gym.devices.sim.read_headers import are_unchanged, keep_read_files
from kernel_gym.devices.sim.toolchain import HipToolchain

BEGINNINGS = (
    ("hip/hip_fp16.h", "hip/hip_runtime.h"),
    ("hip/hip_runtime.h", "hip/hip_fp16.h"),
    ("hip/hip_runtime.h",),
)
"""The includes with which sources begin, longer ones first."""
_BLOCK_COMMENT = r"/\*[^\\\0*]*+(?:\*(?!/)[^\\\0*]*+)*+\*/[ \t]*+"
_REST = rf"[ \t]*+(?://[^\\\r\n\0]*+|{_BLOCK_COMMENT})?+\r?\n"
_INCLUDE = re.compile(rf"(?:{_REST})*+[ \t]*+#[ \t]*+include[ \t]*+<([\w./]++)>{_REST}")
"""An include and what may stand before it. A backslash could join lines, so none is accepted.

No part gives back what it has read: a hostile source takes no more time than its length.
"""
_HEADER, _DEVICE, _HOST = "begin.h", "device.pch", "host.pch"
_STUB, _RULES, _READ = "stub.o", "rules.d", "read.json"
_MADE = (_DEVICE, _HOST, _STUB)
_EMIT = ("-Xclang", "-emit-pch", "-Xclang", "-fno-pch-timestamp")
"""Without times of headers: a header that is installed again with equal text would end every build.
The list of digests finds other texts."""
_IN_HEADERS = ("In file included from", "linker command failed", "precompiled", "PCH")


Build = Callable[[list[list[str]], Sequence[str]], Sequence[bytes] | None]
"""Runs commands where candidates are compiled; returns named files, or None if a command fails.

The compiler finds other headers there than elsewhere on the machine.
"""


@dataclass(frozen=True)
class PrecompiledHeaders:
    """The files of one beginning, and the toolchain that made them."""

    folder: Path
    toolchain: HipToolchain

    def commands(self, name: str = hip_files.SOURCE) -> list[list[str]]:
        """Returns the commands of a build, as `hip_files.commands` does for one without this.

        Args:
            name: The name of the source's file.
        """
        chain = self.toolchain
        stub = ["-x", "none", str(self.folder / _STUB)]
        device = [*chain.device, *self._use(_DEVICE), "-o", hip_files.ASSEMBLER]
        host = [*chain.host, *self._use(_HOST), *_linker(chain), "-o", hip_files.LIBRARY]
        return [[*device, name], [*host, name, *stub]]

    def _use(self, name: str) -> list[str]:
        return ["-Xclang", "-include-pch", "-Xclang", str(self.folder / name)]


def speaks_of_headers(log: str) -> bool:
    """Whether messages of a build may differ from those of a build without precompiled headers.

    They name the way by which a header was included, or the linker, or the precompiled header.
    """
    return any(text in log for text in _IN_HEADERS)


def beginning_of(source: str) -> tuple[str, ...] | None:
    """Returns the longest of `BEGINNINGS` with which a source begins, or None."""
    names: list[str] = []
    place = 0
    while len(names) < max(map(len, BEGINNINGS)) and (match := _INCLUDE.match(source, place)):
        names.append(match[1])
        place = match.end()
    if "??/" in source[:place]:  # a backslash in old dialects
        return None
    return next((b for b in BEGINNINGS if b == tuple(names[: len(b)])), None)


def precompiled_for(
    toolchain: HipToolchain, source: str, build: Build
) -> PrecompiledHeaders | None:
    """Returns the precompiled headers that a source can use; makes them at their first use.

    Args:
        toolchain: The compiler and its flags.
        source: The source.
        build: Runs the compiler.

    Returns:
        None if the source begins with other lines, or if the compiler cannot make them.
    """
    beginning = beginning_of(source)
    return None if beginning is None else prepare(toolchain, beginning, build)


def prepare(
    toolchain: HipToolchain, beginning: tuple[str, ...], build: Build
) -> PrecompiledHeaders | None:
    """Returns the precompiled headers of a beginning, see `precompiled_for`."""
    key = _key(toolchain, beginning)
    if key not in _prepared:
        _prepared[key] = _prepare(toolchain, beginning, build, cache_folder("hip-headers") / key)
    return _prepared[key]


def is_prepared(toolchain: HipToolchain, beginning: tuple[str, ...]) -> bool:
    """Whether the precompiled headers of a beginning are there, made of the headers of today."""
    return are_unchanged(cache_folder("hip-headers") / _key(toolchain, beginning) / _READ)


_prepared: dict[str, PrecompiledHeaders | None] = {}


def _prepare(
    toolchain: HipToolchain, beginning: tuple[str, ...], build: Build, folder: Path
) -> PrecompiledHeaders | None:
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)  # compilers of candidates have another user id
    with _locked(folder / "lock"):
        if not are_unchanged(folder / _READ) and not _make(toolchain, beginning, build, folder):
            return None
    return PrecompiledHeaders(folder, toolchain)


def _key(toolchain: HipToolchain, beginning: Sequence[str]) -> str:
    """Identifies compiler, flags and includes. A list beside the files identifies the headers."""
    binary = os.path.realpath(toolchain.clang)
    status = os.stat(binary)
    parts = (binary, status.st_size, status.st_mtime_ns, toolchain.version)
    own = (hip_files.STUB_TEXT, *_EMIT)
    words = (*parts, *toolchain.device, *toolchain.host, *own, *beginning)
    return hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()[:24]


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make(toolchain: HipToolchain, beginning: Sequence[str], build: Build, folder: Path) -> bool:
    """Makes all files. The list of headers comes last, so that it marks them as whole."""
    (folder / _READ).unlink(missing_ok=True)
    text = "".join(f"#include <{name}>\n" for name in beginning)
    _write(folder / _HEADER, text.encode())
    _write(folder / hip_files.STUB, hip_files.STUB_TEXT.encode())
    made = build(_making(toolchain, folder), (*_MADE, _RULES))
    if made is None:
        return False
    for name, content in zip(_MADE, made[:-1], strict=True):
        _write(folder / name, content)
    keep_read_files(made[-1].decode(), folder / _READ)
    return True


def _write(path: Path, content: bytes) -> None:
    """Replaces a file, which compilers may be reading."""
    own = path.with_name(f"{path.name}.new")
    own.write_bytes(content)
    own.chmod(0o644)
    own.replace(path)


def _making(toolchain: HipToolchain, folder: Path) -> list[list[str]]:
    """Commands for the device side, the host side and the object beside each host side."""
    header = str(folder / _HEADER)
    host = [word for word in toolchain.host if word != "-shared"]
    return [
        [*toolchain.device, *_EMIT, "-MD", "-MF", _RULES, "-o", _DEVICE, header],
        [*host, "-c", *_EMIT, "-o", _HOST, header],
        [toolchain.clang, "-c", "-fPIC", "-o", _STUB, str(folder / hip_files.STUB)],
    ]


def _linker(toolchain: HipToolchain) -> list[str]:
    """Options for LLVM's linker, where it lies beside the compiler: it is faster."""
    linker = Path(os.path.realpath(toolchain.clang)).parent / "ld.lld"
    return ["-fuse-ld=lld"] if linker.exists() else []

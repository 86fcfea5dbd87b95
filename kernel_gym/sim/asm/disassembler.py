"""Decodes machine code with the disassembler of the LLVM that the system has (its C interface)."""

from __future__ import annotations

import ctypes as ct
import glob
import os
import re
from collections.abc import Iterator
from functools import cache

from kernel_gym.sim.asm.errors import AsmError
from kernel_gym.sim.asm.targets import DEFAULT, TARGETS
from kernel_gym.sim.llvm_packages import CLANG_FOLDER, packaged_llvm

_PARTS = ("TargetInfo", "Target", "TargetMC", "Disassembler")
_TRIPLE = b"amdgcn-amd-amdhsa"
_MAX_TEXT_CHARACTERS = 512
_MAX_INSTRUCTION_BYTES = 20
_FILES = (
    "/usr/lib/*-linux-gnu/libLLVM*.so*",
    "/usr/lib/llvm-*/lib/libLLVM*.so*",
    "/usr/lib64/libLLVM*.so*",
    "/usr/lib64/llvm*/lib/libLLVM*.so*",
    "/usr/local/lib/libLLVM*.so*",
)
_BESIDE_COMPILER = "../lib/libLLVM*.so*"
"""Where a compiler that `HIP_CLANG_PATH` names has its library."""
_FORCED = re.compile(r"\blit\((0x[0-9a-f]+)\)")
"""How LLVM 22 and newer write a literal whose value would also fit into the instruction itself."""
_VERSION = re.compile(r"libLLVM(?:-(\d+)\.so|\.so\.(\d+))")


@cache
def knows(arch: str) -> bool:
    """Whether this machine has a disassembler that knows a target."""
    library = _library()
    return library is not None and library[1] >= TARGETS[arch].disassembler


def fix_for(arch: str) -> str:
    """Returns the line that installs a disassembler for a target."""
    return f"apt-get install llvm-{packaged_llvm(TARGETS[arch].disassembler)}"


def disassembled(code: bytes, address: int, arch: str) -> Iterator[tuple[int, int, str]]:
    """Decodes instructions.

    Args:
        code: Their bytes.
        address: The address of the first byte.
        arch: A target that the disassembler knows.

    Yields:
        The address of each instruction, its bytes and its text. The text has the encoding in the
        mnemonic, and the distances of branches as numbers of words.

    Raises:
        AsmError: Some bytes are no instruction of the target.
    """
    library, handle = _handle(arch)
    text = ct.create_string_buffer(_MAX_TEXT_CHARACTERS)
    place = 0
    while place < len(code):
        piece = code[place : place + _MAX_INSTRUCTION_BYTES]
        size = library.LLVMDisasmInstruction(
            handle, piece, len(piece), address + place, text, _MAX_TEXT_CHARACTERS
        )
        if not size:
            raise AsmError(f"{piece[:8].hex()} at {address + place:#x} is no instruction of {arch}")
        yield address + place, size, plain_text(text.value.decode())
        place += size


def plain_text(printed: str) -> str:
    """Returns the text of an instruction as all versions of LLVM write it.

    Args:
        printed: What the disassembler writes, with its comment.
    """
    return _FORCED.sub(r"\1", printed.partition("//")[0].strip())


@cache
def _library() -> tuple[ct.CDLL, int] | None:
    """The library, and the version of LLVM; None if there is none that is new enough."""
    for version, path in sorted(_installed(), reverse=True):
        if version < DEFAULT.disassembler:
            break
        try:
            library = ct.CDLL(path)
            for part in _PARTS:
                getattr(library, f"LLVMInitializeAMDGPU{part}")()
        except (OSError, AttributeError):  # built without this target
            continue
        _declare(library)
        return library, version
    return None


def _installed() -> set[tuple[int, str]]:
    named = os.environ.get(CLANG_FOLDER)
    patterns = (*_FILES, os.path.join(named, _BESIDE_COMPILER)) if named else _FILES
    paths = [path for pattern in patterns for path in glob.glob(pattern)]
    matches = [(_VERSION.search(path), path) for path in paths]
    return {(int(match[1] or match[2]), path) for match, path in matches if match}


def _declare(library: ct.CDLL) -> None:
    create, decode = library.LLVMCreateDisasmCPU, library.LLVMDisasmInstruction
    create.restype = ct.c_void_p
    create.argtypes = [ct.c_char_p, ct.c_char_p, ct.c_void_p, ct.c_int, ct.c_void_p, ct.c_void_p]
    decode.restype = ct.c_size_t
    decode.argtypes = [
        *(ct.c_void_p, ct.c_char_p, ct.c_uint64, ct.c_uint64),
        *(ct.c_char_p, ct.c_size_t),
    ]


@cache
def _handle(arch: str) -> tuple[ct.CDLL, int]:
    loaded = _library()
    assert loaded is not None  # see `knows`
    library, _ = loaded
    handle = library.LLVMCreateDisasmCPU(_TRIPLE, arch.encode(), None, 0, None, None)
    return library, int(handle)

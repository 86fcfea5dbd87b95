"""Finds the code of a module: an assembler text, a code object or a bundle of several."""

from __future__ import annotations

import ctypes
import os
import struct

from kernel_gym.sandbox.failures import BuildError

_ELF = b"\x7fELF"
_BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
_MOST = 64 << 20  # bytes of an image


def code_of(image: int | None, path: bytes | None, arch: str) -> bytes:
    """Returns the code of a module: an image at an address, or a file.

    Raises:
        BuildError: The module is neither assembler text nor a code object for `arch`.
    """
    return code_in(_image_at(image) if path is None else _file(os.fsdecode(path)), arch)


def code_in(content: bytes, arch: str) -> bytes:
    """Returns the assembler text or the code object in a module's bytes.

    Raises:
        BuildError: See `code_of`.
    """
    if content.startswith(_BUNDLE):
        content = _unbundle(content, arch)
    if content.startswith(_ELF) or b".amdhsa_kernel" in content:
        return content
    raise BuildError("a module is neither assembler text nor a code object for AMD GPUs")


def _file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST)
    except OSError as error:
        raise BuildError(f"the module does not open: {error.strerror}") from None


def _image_at(address: int | None) -> bytes:
    """Returns the bytes of the image at an address of this process."""
    if not address:
        raise BuildError("a module was loaded from a null pointer")
    head = ctypes.string_at(address, 4)
    if head == _ELF:
        header = ctypes.string_at(address, 64)
        sections = struct.unpack_from("<Q", header, 40)[0]
        entry, count = struct.unpack_from("<HH", header, 58)
        return ctypes.string_at(address, min(sections + entry * count, _MOST))
    if head == _BUNDLE[:4]:
        entries = _entries(ctypes.string_at(address, 1 << 12))
        return ctypes.string_at(address, min(max(o + n for o, n, _ in entries), _MOST))
    return ctypes.string_at(address)  # text ends with a zero


def _entries(bundle: bytes) -> list[tuple[int, int, str]]:
    """Offset, size and target of each entry of an offload bundle."""
    (count,) = struct.unpack_from("<Q", bundle, 24)
    place, entries = 32, []
    for _ in range(min(count, 64)):
        offset, size, length = struct.unpack_from("<QQQ", bundle, place)
        entries.append((offset, size, bundle[place + 24 : place + 24 + length].decode()))
        place += 24 + length
    return entries


def _unbundle(bundle: bytes, arch: str) -> bytes:
    entries = _entries(bundle)
    for offset, size, target in entries:
        if arch in target:
            return bundle[offset : offset + size]
    targets = ", ".join(target for *_, target in entries)
    raise BuildError(f"the offload bundle has no code for {arch}, found: {targets}")

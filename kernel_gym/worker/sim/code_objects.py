"""Converts prebuilt code objects to assembler text with `llvm-objdump` and `llvm-readelf`.

The disassembler prints the instructions and the kernel descriptors; the reader prints the metadata.
Variables and tables of a code object are not converted. A kernel that refers to one is refused.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import struct
import subprocess

from kernel_gym.sandbox.failures import BuildError

_ELF = b"\x7fELF"
_BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
_MOST = 64 << 20  # bytes of an image
_VERSIONS = ("", "-20", "-19", "-18", "-17")
_OLDEST = 17
_SYMBOL = re.compile(r"^[0-9a-f]{16} <([^>]+)>:$")
_LABEL = re.compile(r"^<(L\d+)>:$")
_TARGET = re.compile(r"amdhsa\.target:\s*'?([\w:+-]+)")
_COMMENT = re.compile(r"\s*//.*$")


def assembler_of(image: int | None, path: bytes | None, arch: str) -> str:
    """Returns the assembler text of a module: an image at an address, or a file.

    Raises:
        BuildError: The module is neither assembler text nor a code object for `arch`, or LLVM's
            tools are missing.
    """
    content = _image_at(image) if path is None else _file(os.fsdecode(path))
    if content.startswith(_BUNDLE):
        content = _unbundle(content, arch)
    if content.startswith(_ELF):
        return _disassembled(content)
    text = content.decode(errors="replace")
    if ".amdhsa_kernel" not in text:
        raise BuildError("a module is neither assembler text nor a code object for AMD GPUs")
    return text


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


def _tool(name: str) -> str:
    for version in _VERSIONS:
        path = shutil.which(f"{name}{version}")
        if path is None:
            continue
        text = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        match = re.search(r"version (\d+)", text)
        if match and int(match.group(1)) >= _OLDEST:
            return path
    raise BuildError(f"{name} of LLVM {_OLDEST} or newer is needed for code objects")


def _disassembled(content: bytes) -> str:
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"module-{os.getpid()}.co")
    with open(path, "wb") as file:
        file.write(content)
    try:
        listing = _run(
            _tool("llvm-objdump"),
            "-d",
            "--symbolize-operands",
            "--no-show-raw-insn",
            "--no-leading-addr",
            path,
        )
        symbols = _run(_tool("llvm-readelf"), "-s", "-W", path)
        names = re.findall(r"\s(\w\S*)\.kd$", symbols, re.MULTILINE)
        descriptors = [
            _run(_tool("llvm-objdump"), "-D", f"--disassemble-symbols={name}.kd", path)
            for name in dict.fromkeys(names)
        ]
        notes = _run(_tool("llvm-readelf"), "--notes", path)
    finally:
        os.unlink(path)
    return _assembled(listing, names, descriptors, notes)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise BuildError(f"the code object cannot be read: {done.stderr.strip()[:300]}")
    return done.stdout


def _assembled(listing: str, names: list[str], descriptors: list[str], notes: str) -> str:
    """Joins the pieces in the form that a compiler writes."""
    target = _TARGET.search(notes)
    if target is None:
        raise BuildError("the code object does not say what it was compiled for")
    lines = [f'\t.amdgcn_target "{target.group(1)}"', "\t.text"]
    function = ""
    for raw in listing.splitlines():
        line = _COMMENT.sub("", raw).strip()
        symbol, label = re.match(r"^(?:[0-9a-f]+ )?<([^>]+)>:$", line), _LABEL.match(line)
        if label:
            lines.append(f".{label.group(1)}_{function}:")
        elif symbol:
            function = symbol.group(1)
            lines += [f"\t.type\t{function},@function", f"{function}:"]
        elif line and raw.startswith(("\t", " ")):
            lines.append("\t" + re.sub(r"\b(L\d+)$", rf".\1_{function}", line))
    lines.append("\t.section\t.rodata")
    for descriptor in descriptors:
        start = descriptor.index(".amdhsa_kernel")
        lines.append("\t" + descriptor[start:].strip())
    metadata = notes[notes.index("---") : notes.rindex("...") + 3] if "---" in notes else ""
    return "\n".join([*lines, "\t.amdgpu_metadata", metadata, "\t.end_amdgpu_metadata", ""])

"""A `clang-offload-bundler` for machines that have clang without it, as Debian's packages do.

It joins the code objects of several targets in one file, in the uncompressed format of LLVM (Clang
Offload Bundler, section "Bundled Binary File Layout"). It runs as a script without this package.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_DEFAULT_ALIGNMENT = 4096


def bundle(entries: list[tuple[str, bytes]], alignment: int = _DEFAULT_ALIGNMENT) -> bytes:
    """Joins code objects.

    Args:
        entries: Target and content of each code object.
        alignment: Each content starts at a multiple of these bytes.
    """
    head = len(MAGIC) + 8 + sum(24 + len(target.encode()) for target, _ in entries)
    table, body, place = b"", b"", head
    for target, content in entries:
        gap = -place % alignment
        body += bytes(gap) + content
        name = target.encode()
        table += struct.pack("<QQQ", place + gap, len(content), len(name)) + name
        place += gap + len(content)
    return MAGIC + struct.pack("<Q", len(entries)) + table + body


def unbundle(content: bytes) -> list[tuple[str, bytes]]:
    """Returns target and content of each entry.

    Raises:
        ValueError: It is not an uncompressed bundle.
    """
    if not content.startswith(MAGIC):
        raise ValueError(f"found a file that begins with {content[:24]!r}, expected {MAGIC!r}")
    (count,) = struct.unpack_from("<Q", content, len(MAGIC))
    place, entries = len(MAGIC) + 8, []
    for _ in range(count):
        offset, size, length = struct.unpack_from("<QQQ", content, place)
        target = content[place + 24 : place + 24 + length].decode()
        entries.append((target, content[offset : offset + size]))
        place += 24 + length
    return entries


def main(words: list[str]) -> int:
    """Runs the tool with the options that clang's driver gives it; returns the exit status."""
    options: dict[str, list[str]] = {}
    for word in words:
        name, _, value = word.lstrip("-").partition("=")
        options.setdefault(name, []).append(value)
    inputs = [path for name in ("input", "inputs") for path in _list(options, name)]
    outputs = [path for name in ("output", "outputs") for path in _list(options, name)]
    targets = _list(options, "targets")
    if options.get("type", ["o"])[0] not in ("o", "bc") or not inputs or not outputs:
        wanted = " ".join(words)
        advice = "only -type=o is done here, install clang-tools for the rest (apt-get)"
        print(f"clang-offload-bundler of kernel-gym: found {wanted}; {advice}", file=sys.stderr)
        return 1
    if "unbundle" in options:
        return _unbundle(Path(inputs[0]), targets, outputs)
    alignment = int(options.get("bundle-align", ["1"])[0])
    entries = [(t, Path(p).read_bytes()) for t, p in zip(targets, inputs, strict=True)]
    Path(outputs[0]).write_bytes(bundle(entries, alignment))
    return 0


def _unbundle(source: Path, targets: list[str], outputs: list[str]) -> int:
    try:
        entries = dict(unbundle(source.read_bytes()))
    except ValueError as error:
        print(f"clang-offload-bundler: {source}: {error}", file=sys.stderr)
        return 1
    for target, output in zip(targets, outputs, strict=True):
        Path(output).write_bytes(entries.get(target, b""))
    return 0


def _list(options: dict[str, list[str]], name: str) -> list[str]:
    return [item for value in options.get(name, []) for item in value.split(",")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A `clang-offload-bundler` for machines that have clang without it, as Debian's packages do.

It joins the code objects of several targets in one file, in the uncompressed format of LLVM (Clang
Offload Bundler, section "Bundled Binary File Layout"). An object of the host stays one that linkers
take: the others become sections of it. Texts of several targets, such as `hipcc -E` makes, become
one text. It runs as a script without this package.
"""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
"""Begins a file of several code objects, and the name of each section that holds one."""
_ELF, _ARCHIVE = b"\x7fELF", b"!<arch>\n"
_DEFAULT_ALIGNMENT = 4096
_COMMENTS = {"i": "//", "ii": "//", "hipi": "//", "cui": "//", "d": "//", "ll": ";", "s": "#"}
"""Types of files that are texts, and how a comment begins in them."""


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
    if content.startswith(_ELF):
        return _of_sections(content)
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


def bundle_texts(entries: list[tuple[str, bytes]], comment: str) -> bytes:
    """Joins texts, each between two lines of comment that name its target.

    Args:
        entries: Target and content of each text.
        comment: How a comment begins.
    """
    mark = f"{comment} {MAGIC.decode()}__"
    return b"".join(
        f"\n{mark}START__ {target}\n".encode() + content + f"\n{mark}END__ {target}\n".encode()
        for target, content in entries
    )


def unbundle_texts(content: bytes, comment: str) -> list[tuple[str, bytes]]:
    """Returns target and content of each text; the opposite of `bundle_texts`.

    Raises:
        ValueError: There is no text of any target.
    """
    mark = re.escape(f"{comment} {MAGIC.decode()}__".encode())
    between = rb"\n%bSTART__ ([^\n]+)\n(.*?)\n%bEND__ \1\n" % (mark, mark)
    entries = [(m[1].decode(), m[2]) for m in re.finditer(between, content, re.DOTALL)]
    if not entries:
        raise ValueError(f"found no text between {comment} {MAGIC.decode()}__START__ and its end")
    return entries


def _of_sections(content: bytes) -> list[tuple[str, bytes]]:
    """Returns the code objects in the sections of an ELF file of 64 bits."""
    (start,) = struct.unpack_from("<Q", content, 0x28)
    size, count, names = struct.unpack_from("<HHH", content, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", content, start + n * size) for n in range(count)]
    texts = headers[names][4]
    entries = []
    for name, _, _, _, offset, length in headers:
        text = content[texts + name : content.index(0, texts + name)]
        if text.startswith(MAGIC):
            entries.append((text[len(MAGIC) :].decode(), content[offset : offset + length]))
    return entries


def members(archive: bytes) -> Iterator[bytes]:
    """Yields the contents of an archive's files, without its tables.

    Raises:
        ValueError: It is not an archive.
    """
    if not archive.startswith(_ARCHIVE):
        raise ValueError(f"found a file that begins with {archive[:8]!r}, expected {_ARCHIVE!r}")
    place = len(_ARCHIVE)
    while place + 60 <= len(archive):
        name, size = archive[place : place + 16].rstrip(), int(archive[place + 48 : place + 58])
        if name not in (b"/", b"//", b"/SYM64/"):
            yield archive[place + 60 : place + 60 + size]
        place += 60 + size + size % 2


def archived(contents: list[bytes]) -> bytes:
    """Returns an archive of files that are named by their numbers."""
    body = _ARCHIVE
    for number, content in enumerate(contents):
        head = f"{f'{number}.bc/':<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(content):<10}`\n"
        body += head.encode() + content + b"\n" * (len(content) % 2)
    return body


def main(words: list[str]) -> int:
    """Runs the tool with the options that clang's driver gives it; returns the exit status."""
    options: dict[str, list[str]] = {}
    for word in words:
        name, _, value = word.lstrip("-").partition("=")
        options.setdefault(name, []).append(value)
    inputs = [path for name in ("input", "inputs") for path in _list(options, name)]
    outputs = [path for name in ("output", "outputs") for path in _list(options, name)]
    targets = _list(options, "targets")
    kind = options.get("type", ["o"])[0]
    if (
        kind not in ("o", "bc", "a", *_COMMENTS)
        or (kind == "a" and "unbundle" not in options)
        or not (inputs and outputs)
    ):
        wanted = " ".join(words)
        advice = "it is not done here: install clang-tools (apt-get)"
        print(f"clang-offload-bundler of kernel-gym: found {wanted}; {advice}", file=sys.stderr)
        return 1
    try:
        if "unbundle" in options:
            if kind == "a":
                _split_archive(Path(inputs[0]), targets, outputs)
            else:
                _split(Path(inputs[0]), targets, outputs, kind)
        elif kind in _COMMENTS:
            texts = [(t, Path(path).read_bytes()) for t, path in zip(targets, inputs, strict=True)]
            output = Path("/dev/stdout") if outputs[0] == "-" else Path(outputs[0])
            output.write_bytes(bundle_texts(texts, _COMMENTS[kind]))
        else:
            alignment = int(options.get("bundle-align", ["1"])[0])
            _join(list(zip(targets, inputs, strict=True)), Path(outputs[0]), alignment)
    except (ValueError, IndexError, struct.error, OSError) as error:
        print(f"clang-offload-bundler: {inputs[0]}: {error}", file=sys.stderr)
        return 1
    return 0


def _join(inputs: list[tuple[str, str]], output: Path, alignment: int) -> None:
    entries = [(target, Path(path).read_bytes()) for target, path in inputs]
    hosts = [
        path
        for (target, content), (_, path) in zip(entries, inputs, strict=True)
        if target.startswith("host-") and content.startswith(_ELF)
    ]
    if not hosts:
        output.write_bytes(bundle(entries, alignment))
        return
    words = ["objcopy"]
    for target, path in inputs:
        if path not in hosts:
            section = f"{MAGIC.decode()}{target}"
            words += [f"--add-section={section}={path}"]
            words += [f"--set-section-flags={section}=readonly,exclude"]
    done = subprocess.run([*words, hosts[0], str(output)], capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"objcopy: {done.stderr.strip()}")


def _split(source: Path, targets: list[str], outputs: list[str], kind: str) -> None:
    content = source.read_bytes()
    comment = _COMMENTS.get(kind)
    entries = dict(unbundle_texts(content, comment) if comment else unbundle(content))
    host = content if content.startswith(_ELF) else b""
    for target, output in zip(targets, outputs, strict=True):
        Path(output).write_bytes(entries.get(target, host if target.startswith("host-") else b""))


def _split_archive(source: Path, targets: list[str], outputs: list[str]) -> None:
    """Writes an archive for each target, of its code objects in all files of an archive."""
    files = list(members(source.read_bytes()))
    bundles = [unbundle(file) for file in files if file.startswith((_ELF, MAGIC))]
    for target, output in zip(targets, outputs, strict=True):
        chosen = [c for entries in bundles for name, c in entries if _same(name, target)]
        Path(output).write_bytes(archived(chosen))


def _same(first: str, other: str) -> bool:
    """Whether two names are of one target; the last part of its triple may be left out."""
    return first.replace("--", "-") == other.replace("--", "-")


def _list(options: dict[str, list[str]], name: str) -> list[str]:
    return [item for value in options.get(name, []) for item in value.split(",")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

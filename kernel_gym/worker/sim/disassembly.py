"""Writes a code object as assembler text, in the form that a compiler writes.

LLVM's disassembler prints the instructions and the kernel descriptors, and its reader the metadata.
Variables, tables and references to them come from the file itself (see `elf`). In a linked code
object a reference is a number: `s_getpc_b64` and an addition. Here it gets its symbol back.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from bisect import bisect_right
from functools import lru_cache

from kernel_gym.sandbox.failures import BuildError
from kernel_gym.worker.sim.elf import CodeObject, Section

_VERSIONS = (20, 19, 18, 17)
_FUNCTION = re.compile(r"^[0-9a-f]+ <([^>]+)>:$")
_LABEL = re.compile(r"^(?:[0-9a-f]+ )?<(L\d+)>:$")
_LINE = re.compile(r"^; (\S.*):(\d+)$")
_CODE = re.compile(r"^\s+(\S.*?)\s*// ([0-9A-F]{12}):")
_TARGET = re.compile(r"amdhsa\.target:\s*'?([\w:+-]+)")
_GETPC = re.compile(r"^s_getpc_b64 s\[(\d+):(\d+)\]$")
_ADD = re.compile(r"^s_(addc?)_u32 s(\d+), s(\d+), (-?\w+)$")
_BRANCH_TARGET = re.compile(r"\b(L\d+)$")
_WORD = 1 << 64
_LITERALS = {"add": ("lo", 4), "addc": ("hi", 12)}
_HEX_LINE = 64  # bytes of data on a line


def disassembled(content: bytes) -> str:
    """Returns the assembler text of a code object.

    Raises:
        BuildError: It is damaged, or LLVM's tools are missing.
    """
    code = CodeObject(content)
    with tempfile.NamedTemporaryFile(suffix=".co") as file:
        file.write(content)
        file.flush()
        has_lines = any(s.name == ".debug_line" for s in code.sections)
        listing = _run(
            *(_tool("llvm-objdump"), "-d", "--symbolize-operands", "--no-show-raw-insn"),
            *(("-l",) if has_lines else ()),
            file.name,
        )
        names = [s.name[:-3] for s in code.symbols.values() if s.name.endswith(".kd")]
        wanted = ",".join(f"{name}.kd" for name in names)
        descriptors = _run(
            _tool("llvm-objdump"), "-D", f"--disassemble-symbols={wanted}", file.name
        )
        notes = _run(_tool("llvm-readelf"), "--notes", file.name)
    target = _TARGET.search(notes)
    if target is None:
        raise BuildError("the code object does not say what it was compiled for")
    data = _Data(code)
    lines = [f'\t.amdgcn_target "{target.group(1)}"', "\t.text"]
    lines += _Listing(code, data).written(listing)
    lines += data.written()
    lines += ["\t.section\t.rodata", *_descriptors(descriptors)]
    metadata = notes[notes.index("---") : notes.rindex("...") + 3] if "---" in notes else ""
    return "\n".join([*lines, "\t.amdgpu_metadata", metadata, "\t.end_amdgpu_metadata", ""])


def _descriptors(text: str) -> list[str]:
    wanted, inside = [], False
    for line in text.splitlines():
        inside = inside or line.lstrip().startswith(".amdhsa_kernel")
        if inside:
            wanted.append("\t" + line.strip())
        if line.lstrip().startswith(".end_amdhsa_kernel"):
            inside = False
    return wanted


class _Data:
    """The variables and tables of a code object, cut at their symbols.

    They keep their distances from each other: code may use the end of one, which is the start of
    the next.
    """

    def __init__(self, code: CodeObject) -> None:
        self._code = code
        self._pieces: list[tuple[int, int, str, Section]] = []
        self._variables = {s.address: s for s in code.symbols.values() if s.kind == 1}
        for section in code.data_sections:
            self._cut(section)
        self._pieces.sort(key=lambda piece: piece[0])
        self._starts = [start for start, *_ in self._pieces]

    def _cut(self, section: Section) -> None:
        end = section.address + section.size
        inside = [a for a in sorted(self._variables) if section.address <= a < end]
        bounds = sorted({section.address, *inside})
        for start, stop in zip(bounds, [*bounds[1:], end], strict=True):
            symbol = self._variables.get(start)
            if symbol is None or symbol.name.endswith(".kd"):
                if symbol is not None:  # a descriptor; what follows it may be data
                    start += symbol.size
                name = f"data_at_{start:x}"
            else:
                name = symbol.name
            if start < stop:
                self._pieces.append((start, stop, name, section))

    def name_at(self, address: int) -> tuple[str, int] | None:
        """The object that holds an address, and the distance from its start."""
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address > self._pieces[index][1]:
            return None
        return self._pieces[index][2], address - self._starts[index]

    def written(self) -> list[str]:
        """Returns all objects as directives."""
        lines = []
        functions = self._code.functions
        for start, stop, name, section in self._pieces:
            lines += [f"\t.section\t{_section_name(section)}", f"\t.org\t{start}", f"{name}:"]
            place = start
            for pointer in sorted(p for p in self._code.pointers if start <= p < stop):
                lines += _bytes(section, place, pointer)
                lines.append(f"\t.quad\t{self._pointer(self._code.pointers[pointer], functions)}")
                place = pointer + 8
            lines += _bytes(section, place, stop)
            symbol = self._variables.get(start)
            if symbol is not None and symbol.name == name:
                lines.append(f"\t.size\t{name}, {symbol.size}")
        return lines

    def _pointer(self, target: int, functions: dict[int, str]) -> str:
        if target in functions:
            return functions[target]
        place = self.name_at(target)
        return f"{place[0]}+{place[1]}" if place else str(target)


def _section_name(section: Section) -> str:
    return ".rodata" if section.name.startswith(".rodata") else ".data"


def _bytes(section: Section, start: int, stop: int) -> list[str]:
    if not section.content:
        return [f"\t.zero\t{stop - start}"] if stop > start else []
    content = section.content[start - section.address : stop - section.address]
    if not any(content):
        return [f"\t.zero\t{len(content)}"] if content else []
    rows = [content[i : i + _HEX_LINE] for i in range(0, len(content), _HEX_LINE)]
    return ["\t.byte\t" + ",".join(map(str, row)) for row in rows]


class _Listing:
    """Turns the disassembler's listing into assembler text."""

    def __init__(self, code: CodeObject, data: _Data) -> None:
        self._functions = code.functions
        self._ends = {s.name: s.address + s.size for s in code.symbols.values() if s.size}
        self._data = data
        self._files: dict[str, int] = {}
        self._function = ""
        self._targets: dict[int, str] = {}
        self._origin: tuple[int, int] | None = None  # low register, address after s_getpc_b64
        self._low: int | None = None  # the lower half of the distance from there
        self._symbol: tuple[str, int] | None = None  # what is at that distance

    def written(self, listing: str) -> list[str]:
        """Returns the lines of the code."""
        raw = listing.splitlines()
        codes = [_CODE.match(line) for line in raw]
        self._find_jumps(codes)
        lines: list[str] = []
        for text, code in zip(raw, codes, strict=True):
            if code:
                lines += self._instruction(code)
            elif (label := _LABEL.match(text)) is not None:
                lines.append(f".{label.group(1)}_{self._function}:")
            elif (function := _FUNCTION.match(text)) is not None:
                self._function = function.group(1)
                lines += [f"\t.type\t{self._function},@function", f"{self._function}:"]
            elif (source := _LINE.match(text)) is not None:
                lines += self._source(source.group(1), source.group(2))
        return lines

    def _find_jumps(self, codes: list[re.Match[str] | None]) -> None:
        """Finds the targets of long jumps, which compute an address within the code."""
        known = {int(code.group(2), 16) for code in codes if code}
        instructions = [code for code in codes if code]
        for first, second, third in zip(
            instructions, instructions[1:], instructions[2:], strict=False
        ):
            target = _computed(first, second, third)
            if target in known and target not in self._functions:
                self._targets[target] = f".Lat_{target:x}"

    def _instruction(self, code: re.Match[str]) -> list[str]:
        text, address = code.group(1), int(code.group(2), 16)
        if address >= self._ends.get(self._function, address + 1):
            return []  # what fills up the space to the next function
        lines = [f"{self._targets[address]}:"] if address in self._targets else []
        getpc, addition = _GETPC.match(text), _ADD.match(text)
        if getpc:
            self._origin = int(getpc.group(1)), address + 4
            self._low = None
        elif addition and self._origin is not None:
            text = self._with_symbol(text, addition)
        elif text.startswith(("s_branch", "s_cbranch", "s_call")):
            text = _BRANCH_TARGET.sub(rf".\1_{self._function}", text)
        return [*lines, "\t" + text]

    def _with_symbol(self, text: str, addition: re.Match[str]) -> str:
        """An addition to the program counter, with its symbol."""
        assert self._origin is not None
        register, origin = self._origin
        kind, target, source = addition.group(1), int(addition.group(2)), int(addition.group(3))
        value = int(addition.group(4), 0) & 0xFFFFFFFF
        if kind == "add" and source == register:
            self._low = value
            # The upper half is the sign of the distance: code objects have less than 2 GiB.
            distance = value - (1 << 32) if value >> 31 else value
            self._symbol = self._name(origin + distance)
        elif not (kind == "addc" and source == register + 1 and self._low is not None):
            return text
        if kind == "addc":
            self._origin = None
        if self._symbol is None:
            return text
        name, offset = self._symbol
        part, place = _LITERALS[kind]
        return f"s_{kind}_u32 s{target}, s{source}, {name}@rel32@{part}+{place + offset}"

    def _name(self, address: int) -> tuple[str, int] | None:
        if address in self._functions:
            return self._functions[address], 0
        if address in self._targets:
            return self._targets[address], 0
        return self._data.name_at(address)

    def _source(self, file: str, line: str) -> list[str]:
        lines = []
        if file not in self._files:
            self._files[file] = len(self._files) + 1
            lines.append(f'\t.file\t{self._files[file]} "{file}"')
        return [*lines, f"\t.loc\t{self._files[file]} {line} 0"]


def _computed(first: re.Match[str], second: re.Match[str], third: re.Match[str]) -> int:
    """The address that three instructions compute; -1 if they do not."""
    getpc, low, high = _GETPC.match(first.group(1)), _ADD.match(second.group(1)), third.group(1)
    if not getpc or not low or not _ADD.match(high):
        return -1
    value = int(low.group(4), 0) & 0xFFFFFFFF
    return int(first.group(2), 16) + 4 + (value - (1 << 32) if value >> 31 else value)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"the code object cannot be read: {done.stderr.strip()[:300]}")
    return done.stdout


@lru_cache
def _tool(name: str) -> str:
    for version in _VERSIONS:
        path = shutil.which(f"{name}-{version}")
        if path is not None:
            return path
    path = shutil.which(name)
    if path is not None:
        text = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        match = re.search(r"version (\d+)", text)
        if match and int(match.group(1)) >= _VERSIONS[-1]:
            return path
    raise BuildError(
        f"{name} of LLVM {_VERSIONS[-1]} or newer is needed for code objects: "
        "apt-get install llvm-19"
    )

"""The instructions of a code object: each with its address, its bytes and its text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_gym.sim.asm import disassembler
from kernel_gym.sim.asm.assembler import Assembler
from kernel_gym.sim.asm.elf import CodeObject
from kernel_gym.sim.asm.errors import AsmError, UnsupportedInstruction
from kernel_gym.sim.asm.lines import TextLine
from kernel_gym.sim.asm.targets import TARGETS

BRANCHES = ("s_branch", "s_cbranch", "s_call")
ADDITION = re.compile(r"^(s_addc?_u32 s\d+, s\d+, )(-?(?:0x[0-9a-f]+|\d+))$")
_GOES_AWAY = ("s_branch", "s_endpgm", "s_setpc", "s_trap")
_NUMBER = re.compile(r"[^\s,]+$")
_WORD = 4
_LITERAL, _SDWA, _DPP = 255, 249, 250
_SCALED_PRODUCT = 0b110100111_0101100
"""The upper half of the first word of a matrix product with scales, which has 16 bytes."""


@dataclass(slots=True)
class Encoded:
    """An instruction with its encoding.

    Attributes:
        address: Address of its first byte.
        content: Its bytes.
        text: Its text, with the encoding in the mnemonic and numbers for all labels and symbols.
        source: Its line in the assembler text, if there is one.
        jump: The address to which it may branch; None if it is no branch.
    """

    address: int
    content: bytes
    text: str
    source: TextLine | None = None
    jump: int | None = None

    def __post_init__(self) -> None:
        """Computes the target of a branch."""
        if self.text.startswith(BRANCHES):
            words = int.from_bytes(self.content[:2], "little", signed=True)
            self.jump = self.address + _WORD + _WORD * words


def read_code(
    code_object: CodeObject,
    arch: str,
    lines: dict[str, list[TextLine]] | None,
    assembler: Assembler,
) -> dict[str, list[Encoded]]:
    """Decodes all functions of a code object.

    Without a disassembler that knows the target, each instruction has the text of its line. These
    lines alone, without directives, must assemble to the same bytes.

    A code object that somebody else has made must be what the assembler makes of its disassembly:
    a disassembler reads operands that hardware does not take, which an assembler refuses.

    Args:
        code_object: The code object.
        arch: Its target.
        lines: The lines of each function in the text that it was assembled from; None if somebody
            else has made it.
        assembler: Assembles for the target.

    Raises:
        AsmError: Some bytes are no instruction of the target, or nothing here knows the target.
    """
    known = disassembler.knows(arch)
    if not known and lines is None:
        version, fix = TARGETS[arch].disassembler, disassembler.fix_for(arch)
        raise AsmError(f"code objects for {arch} need LLVM {version} or newer: {fix}")
    functions = {}
    for name, address, content in _bodies(code_object):
        own = lines.get(name, []) if lines else []
        body = _decoded(address, content, arch) if known else _written(address, content, own)
        if len(own) == len(body):
            for code, line in zip(body, own, strict=True):
                code.source = line
        functions[name] = body
    if not known or lines is None:
        for name, body in functions.items():
            _prove(name, body, arch, assembler)
    return functions


def _bodies(code: CodeObject) -> list[tuple[str, int, bytes]]:
    """Name, address and bytes of each function. One without a size ends at the next one."""
    starts = sorted(code.functions)
    bodies = []
    for section in code.code_sections:
        stop = section.address + len(section.content)
        inside = [start for start in starts if section.address <= start < stop]
        for start, following in zip(inside, [*inside[1:], stop], strict=True):
            size = code.symbols[start].size or following - start
            place = start - section.address
            name = code.functions[start]
            bodies.append((name, start, section.content[place : place + size]))
    return bodies


def _decoded(address: int, content: bytes, arch: str) -> list[Encoded]:
    code = [
        Encoded(place, content[place - address : place - address + size], text)
        for place, size, text in disassembler.disassembled(content, address, arch)
    ]
    return _without_padding(code)


def _without_padding(code: list[Encoded]) -> list[Encoded]:
    """Leaves out what fills up the space behind a jump to an aligned address."""
    targets = {instruction.jump for instruction in code}
    kept, behind = [], False
    for instruction in code:
        behind = behind and instruction.address not in targets
        if behind and instruction.text == "s_nop 0":
            continue
        behind = instruction.text.startswith(_GOES_AWAY)
        kept.append(instruction)
    return kept


def _written(address: int, content: bytes, lines: Sequence[TextLine]) -> list[Encoded]:
    """Takes the text of each instruction from its line, with the numbers of the encoding."""
    code = []
    place = 0
    for line in lines:
        while place and place % _ALIGNMENT and content[place : place + _WORD] == _PADDING:
            if line.text.startswith("s_nop"):
                break
            place += _WORD
        size = encoded_bytes(content[place : place + _WORD])
        code.append(_numbered(Encoded(address + place, content[place : place + size], line.text)))
        place += size
    if any(content[i : i + _WORD] != _PADDING for i in range(place, len(content), _WORD)):
        raise AsmError("the code has more bytes than the instructions of its text")
    return code


_PADDING = 0xBF800000.to_bytes(_WORD, "little")  # s_nop 0
_ALIGNMENT = 256


def _numbered(code: Encoded) -> Encoded:
    text = code.text
    if text.startswith(BRANCHES):
        word = int.from_bytes(code.content[:2], "little")
        text = _NUMBER.sub(str(word), text)
    elif text.startswith(("s_add_u32", "s_addc_u32")) and len(code.content) == 2 * _WORD:
        literal = int.from_bytes(code.content[_WORD:], "little")
        text = f"{text.rpartition(',')[0]}, {literal:#x}"
    return Encoded(code.address, code.content, text)


def encoded_bytes(word: bytes) -> int:
    """Bytes of an instruction of the GCN and CDNA encodings, by its first word.

    Source: "AMD Instinct MI300" ISA reference, chapter "Instruction formats".
    """
    bits = int.from_bytes(word, "little")
    if bits >> 30 == 0b11:  # SMEM, VOP3, DS, FLAT, MUBUF and the like
        return 4 * _WORD if bits >> 16 == _SCALED_PRODUCT else 2 * _WORD
    source = bits & (0x1FF if not bits >> 31 else 0xFF)
    if not bits >> 31:
        return 2 * _WORD if source in (_LITERAL, _SDWA, _DPP) or _has_constant(bits) else _WORD
    kind = bits >> 23
    if kind == 0b101111111 or (bits >> 28 == 0b1011 and kind not in (0b101111101, 0b101111110)):
        return 2 * _WORD if bits >> 23 == 0b101110100 else _WORD  # s_setreg_imm32_b32
    others = (source,) if kind == 0b101111101 else (source, bits >> 8 & 0xFF)
    return 2 * _WORD if _LITERAL in others else _WORD


def _has_constant(bits: int) -> bool:
    """Whether it is one of the two-source operations with a constant behind the word."""
    return bits >> 25 in (0x17, 0x18, 0x24, 0x25)  # v_madmk, v_madak of f32 and f16


def _prove(name: str, body: Sequence[Encoded], arch: str, assembler: Assembler) -> None:
    """Checks that the texts of a function assemble to its bytes.

    Raises:
        UnsupportedInstruction: They do not.
    """
    lines = ["\t.text", *(_explicit(code) for code in body), ""]
    made = CodeObject(assembler.relocatable("\n".join(lines), arch)).code_sections
    content = made[0].content if made else b""
    place = 0
    for code in body:
        made_here = content[place : place + len(code.content)]
        if _used_bits(made_here) != _used_bits(code.content):
            line = code.source.line if code.source else None
            raise UnsupportedInstruction(
                f"its bytes in {name} are not those of its text for {arch}", line, code.text
            )
        place += len(code.content)


def _used_bits(content: bytes) -> bytes:
    """The bytes of an instruction without bits that it does not use.

    The first half of a scaled product has the two scales. Bits 13 and 14 select a half of a third
    operand, which it lacks: assemblers of AMD set them, LLVM's does not.
    """
    word = int.from_bytes(content[:_WORD], "little")
    if word >> 16 != _SCALED_PRODUCT:
        return content
    return (word & ~0x6000).to_bytes(_WORD, "little") + content[_WORD:]


def _explicit(code: Encoded) -> str:
    """The text with a literal where the assembler would take a shorter encoding."""
    addition = ADDITION.match(code.text)
    if addition and len(code.content) == 2 * _WORD:
        return f"{addition[1]}lit({addition[2]})"
    return code.text

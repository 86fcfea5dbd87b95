"""Instructions as LLVM's disassembler writes them, and the functions and modules that hold them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from kernel_gym.sim.asm.data import DataObject
from kernel_gym.sim.asm.errors import AsmError
from kernel_gym.sim.asm.metadata import KernelMetadata
from kernel_gym.sim.asm.source_lines import Location

ENCODINGS = ("_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa")


@dataclass(slots=True)
class Instruction:
    """One assembler instruction.

    Attributes:
        mnemonic: Name without the encoding suffix, such as ``v_add_f32``.
        encoding: ``e32``, ``e64``, ``dpp``, ``e64_dpp``, ``sdwa`` or empty.
        operands: Operand texts in order.
        modifiers: ``name:value`` pairs; flags without a value map to ``""``.
        line: 1-based line in the assembler text; None if it is not known.
        text: The whole text.
        size: Bytes of its encoding.
        location: ``(file number, line)`` in the candidate's own file.
    """

    mnemonic: str
    encoding: str
    operands: tuple[str, ...]
    modifiers: dict[str, str]
    line: int | None
    text: str
    size: int = 8
    location: Location | None = None


@dataclass
class Function:
    """The body of a function or kernel: instructions, and labels as positions among them."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


@dataclass
class Module:
    """Everything in one code object."""

    functions: dict[str, Function] = field(default_factory=dict)
    descriptors: dict[str, dict[str, int]] = field(default_factory=dict)
    metadata: dict[str, KernelMetadata] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)
    data: dict[str, DataObject] = field(default_factory=dict)
    target: str = ""

    @property
    def kernel_names(self) -> list[str]:
        """Names of the kernels, in the order of their addresses."""
        return list(self.descriptors)


def split_operands(text: str) -> list[str]:
    """Split at commas outside brackets."""
    if "[" not in text and "(" not in text:
        return [part.strip() for part in text.split(",")]
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        if char in "[(":
            depth += 1
        elif char in "])":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return parts


def split_words(text: str) -> list[str]:
    """Split at spaces outside brackets."""
    if "[" not in text and "(" not in text:
        return text.split()
    words, depth, word = [], 0, ""
    for char in text:
        depth += (char in "[(") - (char in "])")
        if char == " " and depth == 0:
            if word:
                words.append(word)
            word = ""
        else:
            word += char
    return [*words, word] if word else words


def parse_instruction(
    text: str, line: int | None = None, size: int = 8, location: Location | None = None
) -> Instruction:
    """Parse one instruction without its comment. Equal texts share their modifiers."""
    try:
        mnemonic, encoding, operands, modifiers = _parts(text)
    except ValueError as error:
        raise AsmError(str(error), line, text) from None
    return Instruction(mnemonic, encoding, operands, modifiers, line, text, size, location)


@lru_cache(maxsize=16384)
def _parts(text: str) -> tuple[str, str, tuple[str, ...], dict[str, str]]:
    """Mnemonic, encoding, operands and modifiers."""
    mnemonic, _, rest = text.partition(" ")
    if "\t" in mnemonic:
        mnemonic, _, rest = text.partition("\t")
    encoding = ""
    for suffix in ENCODINGS:
        if mnemonic.endswith(suffix):
            mnemonic, encoding = mnemonic[: -len(suffix)], suffix[1:]
            break
    operands: list[str] = []
    modifiers: dict[str, str] = {}
    rest = rest.strip()
    if mnemonic == "s_waitcnt":
        operands.append(rest)
    elif rest:
        for part in split_operands(rest):
            words = split_words(part)
            if not words:
                raise ValueError("an operand is empty")
            operands.append(words[0])
            for word in words[1:]:
                name, _, value = word.partition(":")
                modifiers[name] = value
    return mnemonic, encoding, tuple(operands), modifiers

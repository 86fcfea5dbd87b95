"""Reads AMD GPU assembler text (the dialect of LLVM) into instructions, descriptors and data.

The parser keeps what a kernel needs to run: for each function its instructions and labels, for
each kernel its ``.amdhsa_*`` descriptor and metadata, and the initialised data objects.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field

from kernel_gym.sim.asm.data import DataObject, DataReader
from kernel_gym.sim.asm.errors import AsmError
from kernel_gym.sim.asm.expressions import integer
from kernel_gym.sim.asm.metadata import KernelMetadata, read_metadata
from kernel_gym.sim.asm.operands import NAMED_SCALARS
from kernel_gym.sim.asm.source_lines import SourceLines

ENCODINGS = ("_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa")
MNEMONIC = re.compile(r"(s|v|ds|buffer|global|flat|scratch|tbuffer)_\w+(\s|$)")
LABEL = re.compile(r"^([\w.$@]+):$")
# Spaces and tabs only: \s would match line ends and make long runs of empty lines quadratic.
FUNCTION_TYPE = re.compile(r"^[ \t]*\.type[ \t]+([\w.$@]+),[ \t]*@function", re.MULTILINE)
IGNORED_LABELS = (".Ltmp", ".Lfunc")
REFUSED = frozenset({".macro", ".rept", ".irp", ".irpc", ".altmacro", ".include", ".incbin"})
"""Directives that generate or skip lines. Only an assembler can follow them, and `.if`."""
_ASSIGNS = frozenset({".set", ".equ", ".equiv"})
_SYMBOL = re.compile(r"[A-Za-z_.$][\w.$]*")
_NAME = re.compile(r"(?<![\w.$@])[A-Za-z_.$][\w.$]*(?![\w.$@(:])")
_RESERVED = re.compile(r"[vas]\d+|ttmp\d+|off|lds|glc|slc|nt|sc[01]|gds|offen|idxen|clamp")


@dataclass(slots=True)
class Instruction:
    """One assembler instruction.

    Attributes:
        mnemonic: Name without the encoding suffix, such as ``v_add_f32``.
        encoding: ``e32``, ``e64``, ``dpp``, ``e64_dpp``, ``sdwa`` or empty.
        operands: Operand texts in order.
        modifiers: ``name:value`` pairs; flags without a value map to ``""``.
        line: 1-based line in the assembler text.
        text: The line, stripped of comments.
        location: ``(file number, line)`` in the candidate's own file.
    """

    mnemonic: str
    encoding: str
    operands: tuple[str, ...]
    modifiers: dict[str, str]
    line: int
    text: str
    location: tuple[int, int] | None = None


@dataclass
class Function:
    """The body of a function or kernel: instructions, and labels as positions among them."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


@dataclass
class Module:
    """Everything in one assembler text."""

    functions: dict[str, Function] = field(default_factory=dict)
    descriptors: dict[str, dict[str, int]] = field(default_factory=dict)
    metadata: dict[str, KernelMetadata] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)
    data: dict[str, DataObject] = field(default_factory=dict)
    target: str = ""

    @property
    def kernel_names(self) -> list[str]:
        """Names of the kernels, in the order of the text."""
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


def parse_instruction(text: str, line: int) -> Instruction:
    """Parse one instruction line without its comment."""
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
                raise AsmError("an operand is empty", line, text)
            operands.append(words[0])
            for word in words[1:]:
                name, _, value = word.partition(":")
                modifiers[name] = value
    return Instruction(mnemonic, encoding, tuple(operands), modifiers, line, text)


class _Parser:
    """The state of the parser between lines."""

    def __init__(self, text: str) -> None:
        self.module = Module()
        self.function_names = set(FUNCTION_TYPE.findall(text))
        self.function: Function | None = None
        self.descriptor: dict[str, int] | None = None
        self.lines = SourceLines(self.module.files)
        self.in_text = True
        self.reader = DataReader(self.module.data)
        self.symbols: dict[str, str] = {}

    def line(self, number: int, stripped: str) -> None:
        """Handle one line that is neither empty nor a comment."""
        label = LABEL.match(stripped)
        if label:
            self.label(label.group(1), number)
        elif MNEMONIC.match(stripped):
            if self.function is not None and self.in_text:
                written = self.with_values(stripped, number)
                instruction = parse_instruction(written, number)
                self.lines.place(instruction)
                self.function.instructions.append(instruction)
        elif stripped.startswith("."):
            name, _, argument = stripped.replace("\t", " ").partition(" ")
            self.check_directive(name, number, stripped)
            self.directive(name, argument.strip(), number, stripped)
        elif "=" in stripped:
            name, _, expression = stripped.partition("=")
            self.assign(name.strip(), expression)
        elif self.function is not None and self.in_text:
            raise AsmError("this is not an instruction of the target", number, stripped)

    def check_directive(self, name: str, number: int, text: str) -> None:
        """Refuse directives that only an assembler can follow, and record symbols."""
        if name in _ASSIGNS:
            symbol, _, expression = text[len(name) :].partition(",")
            self.assign(symbol.strip(), expression)
        elif self.in_text and (name in REFUSED or name.startswith(".if")):
            raise AsmError("this directive is not supported among instructions", number, text)

    def assign(self, name: str, expression: str) -> None:
        """Record the value of a symbol if it is an integer."""
        self.symbols.pop(name, None)
        if not _SYMBOL.fullmatch(name) or _RESERVED.fullmatch(name) or name in NAMED_SCALARS:
            return
        with contextlib.suppress(ValueError):
            self.symbols[name] = str(integer(self.with_values(expression.strip(), 0)))

    def with_values(self, text: str, number: int) -> str:
        """A line with its symbols replaced by their values, without comments."""
        if "/" in text and '"' not in text:
            text = re.sub(r"/\*.*?\*/", " ", text).partition("//")[0].rstrip()
            if "/*" in text:
                raise AsmError("a comment that goes on in the next line", number, text)
        if not self.symbols:
            return text
        return _NAME.sub(lambda m: self.symbols.get(m[0], m[0]), text)

    def label(self, name: str, number: int) -> None:
        """Begin a function or data object, or record a branch target."""
        if name.startswith(IGNORED_LABELS):
            self.lines.label(name, number)
        if name in self.function_names:
            self.function = self.module.functions.setdefault(name, Function(name))
            self.in_text = True
            self.lines.begin_function()
        elif not self.in_text:
            self.reader.label(name)
        elif self.function is not None and not name.startswith(IGNORED_LABELS):
            self.function.labels[name] = len(self.function.instructions)

    def directive(self, name: str, argument: str, number: int, text: str) -> None:
        """Handle a line that begins with a dot."""
        if name.startswith((".amdhsa_", ".end_amdhsa")):
            self.descriptor_line(name, argument)
        elif name in (".section", ".text", ".data", ".rodata", ".bss"):
            self.section(argument if name == ".section" else name)
        elif name == ".loc" and self.in_text:
            self.lines.loc(argument)
        elif name == ".file":
            self.lines.file(argument)
        elif name == ".amdgcn_target":
            self.module.target = argument.strip('"')
        elif name in (".comm", ".lcomm"):
            self.reader.common(argument)
        elif not self.in_text:
            self.reader.directive(name, argument, number, text)
        elif name in (".p2align", ".fill"):
            self.drop_preload_header(name, argument)

    def descriptor_line(self, name: str, argument: str) -> None:
        """Handle a line of a kernel descriptor."""
        if name == ".amdhsa_kernel":
            self.descriptor = self.module.descriptors.setdefault(argument, {})
        elif name == ".end_amdhsa_kernel":
            self.descriptor = None
        elif self.descriptor is not None:
            self.descriptor[name[len(".amdhsa_") :]] = _integer(argument)

    def section(self, argument: str) -> None:
        """Enter a section."""
        self.in_text = argument.startswith(".text")
        self.reader.section(argument)

    def drop_preload_header(self, name: str, argument: str) -> None:
        """Drop a header that only traps. The code itself follows 256 bytes later.

        Kernels with preloaded arguments begin with a header for firmware that cannot preload.
        """
        if self.function is None or (name == ".p2align" and not argument.startswith("8")):
            return
        body = self.function.instructions
        if [instruction.mnemonic for instruction in body] == ["s_trap"]:
            body.clear()
            self.function.labels.clear()


def _integer(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return 0


def parse(text: str) -> Module:
    """Read assembler text.

    Args:
        text: The output of ``clang -S`` or of Triton for an ``amdgcn`` target.

    Returns:
        The module with its kernels, other functions and data.

    Raises:
        AsmError: If a line of code cannot be read, or no kernel is defined.
    """
    parser = _Parser(text)
    body, _, metadata = text.partition(".amdgpu_metadata")
    for number, raw in enumerate(body.split("\n"), start=1):
        whole = '"' in raw or raw.startswith("\t.loc")  # its comment is needed
        stripped = (raw if whole else raw.partition(";")[0]).strip()
        if stripped and not stripped.startswith((";", "#", "//")):
            parser.line(number, stripped)
    parser.lines.finish(text)
    module = parser.module
    if not module.descriptors:
        raise AsmError("no kernel found: the text has no .amdhsa_kernel")
    module.metadata = read_metadata(metadata)
    return module

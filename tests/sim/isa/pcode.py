"""Runs the pseudo-code of AMD's instruction set manuals, as the package ``tinygrad`` ships it.

A small recursive-descent translator turns the pseudo-code of an operation into a Python function
over integers (bit patterns, unbounded) and NumPy floats.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.sim.isa import values

_TOKEN = re.compile(
    r"\s+|//[^\n]*|(?P<cast>\d+'(?:BF|[FUIB])(?=\())|(?P<sized>\d+'-?(?:0x[0-9a-f]+|\d+(?:\.\d+)?)[UIF]?)"
    r"|(?P<hex>0x[0-9a-fA-F]+)(?:U?L*)|(?P<float>\d+\.\d+F?)|(?P<int>\d+)(?:U?L*)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<op>\*\*|<<|>>|<>|<=|>=|==|!=|&&|\|\||\+=|-=|\+:|[-+*/<>=!~&|^?:;,.(){}\[\]])"
)
_BINARY = [
    {"||": "or"},
    {"&&": "and"},
    {"|": "|"},
    {"^": "^"},
    {"&": "&"},
    {"==": "==", "!=": "!=", "<>": "<>"},
    {"<": "<", ">": ">", "<=": "<=", ">=": ">="},
    {"<<": "<<", ">>": ">>"},
    {"+": "+", "-": "-"},
    {"*": "*", "/": "/"},
    {"**": "**"},
]
_TYPE = re.compile(r"^(bf|[fuib])\d+$|^fp8$|^bf8$")
_STATEMENT_ENDS = {"endif", "endfor", "else", "elsif"}


class Untranslatable(ValueError):
    """The text is no pseudo-code that can be run: tables, drawings, memory."""


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, place = [], 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if not match:
            raise Untranslatable(f"cannot read {text[place : place + 20]!r}")
        if match.lastgroup:
            tokens.append((match.lastgroup, match.group(match.lastgroup)))
        place = match.end()
    return tokens


class _Translator:
    def __init__(self, text: str) -> None:
        text = re.sub(r"declare (\w+) : [^;\n]*", r"declare \1", text)  # types are not needed
        self.tokens = [*_tokens(text), ("end", "")]
        self.place = 0
        self.lines: list[str] = []
        self.arrays: set[str] = set()
        self.depth = 1

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[min(self.place + ahead, len(self.tokens) - 1)][1]

    def take(self, wanted: str | None = None) -> str:
        text = self.tokens[self.place][1]
        if wanted is not None and text != wanted:
            raise Untranslatable(f"found {text!r}, expected {wanted!r}")
        self.place += 1
        return text

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    # ---- statements
    def block(self, *ends: str) -> None:
        self.depth += 1
        before = len(self.lines)
        while self.peek() not in ends:
            if self.tokens[self.place][0] == "end":
                raise Untranslatable("the text ends within a block")
            self.statement()
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def statement(self) -> None:
        token = self.peek()
        if token == ";":
            self.take()
        elif token == "if":
            self.conditional()
        elif token == "for":
            self.loop()
        elif token == "declare":
            self.declaration()
        elif token == "break":
            self.line(self.take())
        elif token == "return":
            self.take()
            self.line(f"return {self.expression()}")
        elif self.peek(1) == "=" and self.peek(2) == "lambda":
            self.function()
        elif token == "{":
            self.split_assignment()
        else:
            self.assignment()

    def conditional(self) -> None:
        self.take("if")
        self.line(f"if {self.expression()}:")
        self.take("then")
        self.block(*_STATEMENT_ENDS)
        while self.peek() == "elsif":
            self.take()
            self.line(f"elif {self.expression()}:")
            self.take("then")
            self.block(*_STATEMENT_ENDS)
        if self.peek() == "else":
            self.take()
            self.line("else:")
            self.block("endif")
        self.take("endif")

    def loop(self) -> None:
        self.take("for")
        name = self.take()
        self.take("in")
        first = self.expression(no_colon=True)
        self.take(":")
        self.line(f"for {name} in range({first}, {self.expression()} + 1):")
        self.take("do")
        self.block("endfor")
        self.take("endfor")

    def declaration(self) -> None:
        self.take("declare")
        name = self.take()
        self.arrays |= {name} & {"in"}
        self.line(f"{_safe(name)} = {{}}" if name in self.arrays else f"{name} = 0")

    def function(self) -> None:
        name = self.take()
        self.take("=")
        self.take("lambda")
        self.take("(")
        arguments = []
        while self.peek() != ")":
            arguments.append(self.take())
            if self.peek() == ",":
                self.take()
        self.take(")")
        self.take("(")
        self.line(f"def {name}({', '.join(arguments)}):")
        if self.peek() in ("if", "declare", "return", "for"):
            self.block(")")
        else:
            self.depth += 1
            self.line(f"return {self.expression()}")
            self.depth -= 1
        self.take(")")

    def split_assignment(self) -> None:
        self.take("{")
        high = self.take()
        self.take(".")
        self.take()
        self.take(",")
        low = self.take()
        self.take(".")
        width = int(self.take()[1:])
        self.take("}")
        self.take("=")
        self.line(f"both = int({self.expression()})")
        self.line(f"{low}, {high} = both & {(1 << width) - 1}, both >> {width} & 1")

    def assignment(self) -> None:
        name = _safe(self.take())
        kind, part = "", ""
        while self.peek() in (".", "["):
            if self.take() == ".":
                kind = self.take()
            else:
                part = self.subscript()
        operation = self.take()
        if operation not in ("=", "+=", "-="):
            raise Untranslatable(f"found {operation!r}, expected an assignment")
        value = self.expression()
        if operation != "=":
            value = f"{values_read(name, kind, part)} {operation[0]} ({value})"
        if self.arrays and name == "in_" and part:
            self.line(f"{name}[{part.split(',')[0]}] = {value}")
        elif part:
            self.line(f"{name} = v.store_part({name}, {part}, {kind!r}, {value})")
        elif kind:
            self.line(f"{name} = v.store({kind!r}, {value})")
        else:
            self.line(f"{name} = {value}")

    # ---- expressions
    def subscript(self) -> str:
        """The bounds of ``[high : low]``, ``[bit]`` or ``[low +: count]`` after the bracket."""
        first = self.expression(no_colon=True)
        if self.peek() == ":":
            self.take()
            second = self.expression()
        elif self.peek() == "+:":
            self.take()
            first, second = f"{first} + {self.expression()} - 1", first
        else:
            second = first
        self.take("]")
        return f"{first}, {second}"

    def expression(self, no_colon: bool = False) -> str:
        condition = self.binary(0)
        if self.peek() != "?":
            return condition
        self.take()
        yes = self.expression(no_colon=True)
        self.take(":")
        return f"({yes} if {condition} else {self.expression(no_colon)})"

    def binary(self, level: int) -> str:
        if level == len(_BINARY):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in _BINARY[level]:
            operator = _BINARY[level][self.take()]
            right = self.binary(level + 1)
            if operator == "/":
                left = f"v.divide({left}, {right})"
            elif operator == "**":
                left = f"v.power({left}, {right})"
            elif operator == "<>":
                left = f"v.less_or_greater({left}, {right})"
            else:
                left = f"({left} {operator} {right})"
        return left

    def unary(self) -> str:
        if self.peek() in ("-", "+", "~"):
            return f"({self.take()}{self.unary()})"
        if self.peek() == "!":
            self.take()
            return f"(not {self.unary()})"
        return self.postfix(self.primary())

    def postfix(self, text: str) -> str:
        while self.peek() in (".", "["):
            if self.take() == ".":
                kind = self.take()
                if not _TYPE.match(kind) and kind not in ("u24", "i24"):
                    raise Untranslatable(f"{kind} is no type")
                text = f"v.read({text}, {kind!r})"
            elif self.arrays and text == "in_":
                text = f"in_[{self.subscript().split(',')[0]}]"
            else:
                text = f"v.part({text}, {self.subscript()})"
        return text

    def primary(self) -> str:
        group, text = self.tokens[self.place]
        self.place += 1
        if group == "cast":
            self.take("(")
            inner = self.expression()
            self.take(")")
            size, _, kind = text.partition("'")
            return f"v.cast({int(size)}, {kind!r}, {inner})"
        if group == "sized":
            size, _, number = text.partition("'")
            number = number.rstrip("UIF") if "0x" not in number else number
            is_float = "." in number
            return f"v.literal({int(size)}, {number})" if is_float else f"({number})"
        if group == "float":
            return f"v.f32({text[:-1]})" if text.endswith("F") else f"v.f64({text})"
        if group in ("hex", "int"):
            return text
        if text == "(":
            inner = self.expression()
            self.take(")")
            return f"({inner})"
        if text == "{":
            parts = [self.expression()]
            while self.peek() == ",":
                self.take()
                parts.append(self.expression())
            self.take("}")
            return f"v.join({', '.join(_sized(part) for part in parts)})"
        if group == "name":
            return self.name(text)
        raise Untranslatable(f"found {text!r}, expected a value")

    def name(self, text: str) -> str:
        if text == "WAVE_MODE":
            self.take(".")
            self.take("IEEE")
            return "True"
        if self.peek() != "(":
            return {"INF": "v.INF", "NAN": "v.NAN", "PI": "v.PI"}.get(text, _safe(text))
        self.take("(")
        arguments = []
        while self.peek() != ")":
            arguments.append(self.expression())
            if self.peek() == ",":
                self.take()
        self.take(")")
        joined = ", ".join(arguments)
        if text.startswith("v_"):
            return f"call({text!r}, {joined})"
        if text.isupper():
            return f"{text}({joined})"
        if "_to_" in text:
            source, _, target = text.partition("_to_")
            return f"v.convert({source!r}, {target!r}, {joined})"
        return f"v.{text}({joined})"


def _safe(name: str) -> str:
    return "in_" if name == "in" else name


def _sized(text: str) -> str:
    match = re.match(r"^v\.(?:read)\(.*, '[a-z]+(\d+)'\)$", text)
    part = re.match(r"^v\.part\((.*), (\d+), (\d+)\)$", text)
    if match:
        return f"({match.group(1)}, {text})"
    if part:
        return f"({abs(int(part.group(2)) - int(part.group(3))) + 1}, {text})"
    return f"(16, {text})"


def values_read(name: str, kind: str, part: str) -> str:
    """An expression for what an assignment adds to."""
    text = f"v.part({name}, {part})" if part else name
    return f"v.read({text}, {kind!r})" if kind else text


@cache
def all_operations() -> dict[str, str]:
    """Pseudo-code by mnemonic without its encoding."""
    from tinygrad.runtime.autogen.amd.cdna.str_pcode import PCODE

    texts: dict[str, str] = {}
    for operation, text in PCODE.items():
        texts.setdefault(re.sub(r"_e(32|64)$", "", operation.name.lower()), text)
    return texts


LITERAL = 0x4123  # what the forms write where an instruction has a literal
FIELDS = {"OPSEL": 0, "ROUND_NEAREST_EVEN": 0, "SIMM16": LITERAL, "SIMM32": LITERAL}
STATE = ("S0", "S1", "S2", "D0", "D1", "SCC", "VCC", "EXEC", "M0", "laneId")


@cache
def translate(mnemonic: str) -> Callable[..., dict[str, Any]]:
    """A function from the named state (``S0``, ``D0``, ``SCC``, ...) to the state afterwards.

    Raises:
        Untranslatable: If the manual has no code for it, or not this kind of code.
    """
    text = all_operations().get(mnemonic.replace("v_cmpx_", "v_cmp_"))
    if text is None:
        raise Untranslatable(f"no pseudo-code of {mnemonic}")
    translator = _Translator(text)
    while translator.tokens[translator.place][0] != "end":
        translator.statement()
    arguments = ", ".join(f"{name}=0" for name in STATE)
    result = ", ".join(f"{name}={name}" for name in STATE)
    source = "\n".join(
        [
            f"def run({arguments}, tmp=0, ROUND_MODE=0):",
            *translator.lines,
            f"    return dict({result})",
        ]
    )
    namespace: dict[str, Any] = {"v": values, "call": call, **FIELDS}
    exec(compile(source, mnemonic, "exec"), namespace)
    return namespace["run"]


def call(mnemonic: str, *sources: Any) -> Any:
    """An operation as a function, as pseudo-code uses it."""
    base = mnemonic
    if "minimum" in base or "maximum" in base:
        return values.extremum(base, *sources)
    bits = [values.bits_of(source) for source in sources]
    state = dict(zip(("S0", "S1", "S2"), bits, strict=False))
    kind = "u32" if "sad" in mnemonic else mnemonic.rpartition("_")[2]
    return values.read(translate(mnemonic)(**state)["D0"], kind)

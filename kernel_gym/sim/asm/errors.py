"""Errors in an assembler text."""

from __future__ import annotations


class AsmError(ValueError):
    """The assembler text cannot be loaded.

    Attributes:
        line: 1-based line in the text, or None when the error has no single line.
        text: The offending line, stripped.
    """

    def __init__(self, message: str, line: int | None = None, text: str = "") -> None:
        """Compose the message from the place, the text and the problem."""
        where = f"line {line}: " if line is not None else ""
        quoted = f"`{text}`: " if text else ""
        super().__init__(f"{where}{quoted}{message}")
        self.line = line
        self.text = text


class UnsupportedInstruction(AsmError):
    """An instruction, operand or modifier that the simulator does not implement."""

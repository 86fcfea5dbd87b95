"""Consoles: results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.markup import escape

Row = dict[str, Any]
"""A row of a table that `--json` prints as an object: values by the name of the column."""

console = Console()
"""The console for results, on standard output."""
messages = Console(stderr=True)
"""The console for progress, notes and errors, on standard error."""


def print_json(data: object) -> None:
    """Writes JSON to standard output, unformatted by the terminal."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def note(text: str) -> None:
    """Writes one line to standard error."""
    messages.print(escape(text), highlight=False, soft_wrap=True)

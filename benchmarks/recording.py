"""`python -m benchmarks recording`: a picture of a terminal, from the real output of a command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from kernel_gym.commands.common import console

PICTURE = Path("docs/images/check.svg")
FOLDER = Path("kernel_gym/policies/examples/triton2triton/softmax")
COMMANDS = [
    ["kernel-gym", "check", "triton2triton/softmax", name, "--device", "sim:gfx942", "--seed", "0"]
    for name in ("1_wrong.py", "3_good.py")
]
COLUMNS = 100


def recording() -> None:
    """Check a wrong and a good kernel, and draw the terminal as docs/images/check.svg.

    Example: python -m benchmarks recording
    """
    shown = []
    for command in COMMANDS:
        environment = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm"}
        program = str(Path(sys.executable).with_name(command[0]))
        done = subprocess.run(
            [program, *command[1:]], cwd=FOLDER, env=environment, capture_output=True, text=True
        )
        shown.append((" ".join(command), done.stdout))
    PICTURE.write_text(terminal_picture(shown), encoding="utf-8")
    console.print(f"picture: {PICTURE}", highlight=False, soft_wrap=True)


def terminal_picture(shown: list[tuple[str, str]]) -> str:
    """Returns a terminal as SVG that loads nothing.

    Args:
        shown: Commands with what they printed, with escape sequences of colours.
    """
    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console
    from rich.text import Text

    recorder = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"))  # noqa: SIM115
    for command, printed in shown:
        recorder.print(Text(f"$ {command}", style="bold"))
        recorder.print(Text.from_ansi(printed.rstrip() + "\n"))
    without_fonts = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return recorder.export_svg(title="kernel-gym", code_format=without_fonts, unique_id="check")

"""Audits Triton's tutorials under each version of Triton, and prints a table of what it finds.

The versions lie in a folder (`pip install --no-deps --target DIR/3.6.0 triton==3.6.0`), the
tutorials in a checkout of Triton. A tutorial that is not done in its time counts with the launches
that it has made.

    KERNEL_GYM_TRITONS=DIR python scripts/tutorial_hazards.py CHECKOUT/python/tutorials [NUMBER ...]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

SECONDS = 60
"""Host seconds for a tutorial."""


def main(folder: str, *numbers: str) -> None:
    """Prints a Markdown table: a row for each tutorial, a column for each version."""
    place = os.environ.get("KERNEL_GYM_TRITONS", "")
    if not place:
        raise SystemExit("KERNEL_GYM_TRITONS: found nothing, expected a folder with Tritons")
    versions = sorted(path.resolve() for path in Path(place).iterdir())
    files = [f for f in sorted(Path(folder).glob("[0-9]*.py")) if chosen(f, numbers)]
    print(f"| tutorial | {' | '.join(path.name for path in versions)} |")
    print("|---" * (len(versions) + 1) + "|")
    for file in files:
        cells = [cell(audit(file, version)) for version in versions]
        print(f"| {file.stem} | {' | '.join(cells)} |", flush=True)


def chosen(file: Path, numbers: tuple[str, ...]) -> bool:
    """Whether a tutorial has one of the numbers; without numbers all are chosen."""
    return not numbers or file.name.startswith(numbers)


def audit(file: Path, version: Path) -> dict[str, Any]:
    """Returns what `kernel-gym sim --audit` says of a tutorial under a version."""
    options = ("--audit", "--json", "--timeout", str(SECONDS))
    command = [sys.executable, "-m", "kernel_gym", "sim", *options, "--", "python", file.name]
    environment = {**os.environ, "PYTHONPATH": str(version), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        command, cwd=file.parent, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def cell(result: dict[str, Any]) -> str:
    """Returns the text of a cell: findings by kind, launches, and how the program has ended."""
    findings = [*result["findings"], *result["faults"]]
    kinds = Counter((f["kind"], f["kernel"]) for f in findings)
    words = [f"`{kind}` in `{kernel}`" for kind, kernel in kinds]
    end = "time limit" if result["timed_out"] else f"status {result['status']}"
    ended = "" if not result["timed_out"] and result["status"] == 0 else f", {end}"
    return f"{', '.join(words) or 'none'} ({result['launches']} launches{ended})"


if __name__ == "__main__":
    main(*sys.argv[1:])

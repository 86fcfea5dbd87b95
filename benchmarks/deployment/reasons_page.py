"""The page of why operations were not replaced, from `benchmarks/results/deployment`."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from benchmarks.deployment.fastkernels_page import stored_others
from benchmarks.deployment.page import COMMAND, ROOT, cells_of, stored_table
from benchmarks.marks import filled

PAGE = ROOT / "docs/deploy-reasons.md"


def written() -> str:
    """Returns the page from the stored rows."""
    text = PAGE.read_text(encoding="utf-8")
    for name, rows in (("reasons", stored_table()), ("others", stored_others())):
        text = filled(PAGE, text, name, COMMAND, reasons(rows))
    return text


def reasons(table: list[dict[str, Any]]) -> str:
    """Returns each reason with the architectures that have it."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for architecture, package, cell in cells_of(table):
        texts = [site["reason"] for site in cell.get("sites", ()) if site["reason"]]
        texts += [cell["failure"]] if cell.get("failure") else []
        texts += (
            [] if "computed in none" in cell.get("error", "computed in none") else [cell["error"]]
        )
        if cell.get("replaced") and not cell["parity"] and not cell["failure"]:
            texts.append(_disparity(cell))
        refused = {one["reason"] for one in cell.get("refusals", ())}
        texts += [f"calls that run the model's own code: {one}" for one in sorted(refused)]
        for text in dict.fromkeys(_general(text, architecture) for text in texts):
            groups[package, text].append(architecture)
    same: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (package, text), names in sorted(groups.items()):
        same[text, ", ".join(names)].append(f"`{package}`")
    lines = ["| package | reason | architectures |", "|---|---|---|"]
    lines += [
        f"| {', '.join(packages)} | {text} | {names} |" for (text, names), packages in same.items()
    ]
    return "\n".join(lines) + "\n"


def _disparity(cell: dict[str, Any]) -> str:
    wrong = [part["output"] for part in cell["closeness"] if not part["right"]]
    tokens = cell["tokens"]
    if tokens and tokens["equal"] < tokens["steps"]:
        wrong.append("tokens")
    return f"no parity: {', '.join(wrong)}"


def _general(text: str, architecture: str) -> str:
    """Returns a reason without names and numbers of one model."""
    text = re.sub(r"\b\w+(?=: its forward method)", "the module above it", text)
    text = re.sub(r"it differs by .*?(?=;|$)", "other values", text)
    text = re.sub(r"it takes \d+ arguments?", "it takes other arguments", text)
    text = re.sub(r"its (kernel_size|stride|padding|groups) is .*?(?=;|$)", r"another \1", text)
    text = text.replace(f"{architecture}: ", "").replace("|", "/")
    return re.sub(r"\[[\d, ]+\]", "[...]", text)

"""The table of FastKernels' architectures: what each package does in them."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.deployment.architectures import FASTKERNELS
from benchmarks.deployment.page import COMMAND, RESULTS, ROOT, is_called, places_of, stored_table
from benchmarks.marks import filled

PAGE = ROOT / "docs/deploy-fastkernels.md"
RESULT = RESULTS / "fastkernels.json"


def stored_others() -> list[dict[str, Any]]:
    """Returns the stored rows of model types that only FastKernels' architectures need."""
    return list(json.loads(RESULT.read_text(encoding="utf-8"))["architectures"])


def fastkernels_page(text: str, rows: list[dict[str, Any]]) -> str:
    """Returns the page with new tables.

    Args:
        text: The page as it is.
        rows: The rows of all model types.

    Raises:
        InputError: The page lacks a mark.
    """
    known = {row["architecture"]: row["packages"] for row in rows}
    parts = {
        "counts": _counts(known),
        "pairs": _pairs(known),
        "left out": _left_out(known),
    }
    for name, part in parts.items():
        text = filled(PAGE, text, name, COMMAND, part)
    return text


def written() -> str:
    """Returns the page from the stored rows."""
    return fastkernels_page(PAGE.read_text(encoding="utf-8"), [*stored_table(), *stored_others()])


def _counts(known: dict[str, Any]) -> str:
    """Returns in one paragraph how many pairs were found, replaced and right."""
    present = [kind for kind in FASTKERNELS.values() if kind in known]
    cells = [cell for kind in present for cell in known[kind].values() if cell.get("sites")]
    replaced = [cell for cell in cells if is_called(cell)]
    right = sum(cell["parity"] for cell in replaced)
    return (
        f"{len(present)} of the {len(FASTKERNELS)} architectures were built. An operation was "
        f"found in {len(cells)} pairs of an architecture and a package and replaced in "
        f"{len(replaced)}, at least in part; {right} of these have parity.\n"
    )


def _pairs(known: dict[str, Any]) -> str:
    """Returns a row for each architecture and operation that was replaced in it."""
    lines = [
        "| architecture | operation | places | parity | share, % | alone | in model |",
        "|---|---|--:|---|--:|--:|--:|",
    ]
    for name, kind in FASTKERNELS.items():
        for package, cell in known.get(kind, {}).items():
            if is_called(cell):
                lines.append(f"| {name} | `{package}` | {_cells(cell)} |")
    return "\n".join(lines) + "\n"


def _cells(cell: dict[str, Any]) -> str:
    parity = "fails" if cell["failure"] else "yes" if cell["parity"] else "**no**"
    phases = [one for one in cell["phases"] if one["predicted_gain"]]
    if not phases:
        return f"{places_of(cell)} | {parity} |  |  | "
    one = phases[0]
    times = f"{100 * one['share']:.1f} | {one['operator_gain']:.2f} | {one['gain']:.3f}"
    return f"{places_of(cell)} | {parity} | {times}"


def _left_out(known: dict[str, Any]) -> str:
    """Returns the architectures without a result, by reason."""
    reasons: dict[str, list[str]] = {}
    for name, kind in FASTKERNELS.items():
        if kind not in known:
            reasons.setdefault(kind, []).append(name)
        elif not any(cell.get("sites") for cell in known[kind].values()):
            reasons.setdefault(_first_error(known[kind]), []).append(name)
    rows = (f"| {reason} | {', '.join(names)} |" for reason, names in reasons.items())
    return "\n".join(["| reason | architectures |", "|---|---|", *rows]) + "\n"


def _first_error(packages: dict[str, Any]) -> str:
    """Returns why a model has no operation of a package."""
    texts = [cell.get("error", "") for cell in packages.values()]
    other = [text for text in texts if text and "computed in none" not in text]
    return other[0].replace("|", "/") if other else "none of the operations is in it"

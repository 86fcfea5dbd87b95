"""The tables of whole models by architecture, from `benchmarks/results/deployment`."""

from __future__ import annotations

import json
import re
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.marks import filled

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/deploy-architectures.md"
RESULTS = ROOT / "benchmarks/results/deployment"
COMMAND = "python -m benchmarks.deployment"


def deploy_page(text: str, table: list[dict[str, Any]]) -> str:
    """Returns the page with new tables.

    Args:
        text: The page as it is.
        table: The stored rows of architectures.

    Raises:
        InputError: The page lacks a mark.
    """
    parts = {
        "counts": counts(table),
        "architectures": _table(table),
        "predictions": _predictions(table),
    }
    for name, part in parts.items():
        text = filled(PAGE, text, name, COMMAND, part)
    return text


def stored_table() -> list[dict[str, Any]]:
    """Returns the stored rows of architectures."""
    path = RESULTS / "architectures.json"
    return list(json.loads(path.read_text(encoding="utf-8"))["architectures"])


def cells_of(table: list[dict[str, Any]]) -> list[tuple[str, str, dict[str, Any]]]:
    """Returns architecture, package and result of each pair."""
    return [
        (row["architecture"], name, cell) for row in table for name, cell in row["packages"].items()
    ]


def counts(table: list[dict[str, Any]]) -> str:
    """Returns in one paragraph how many pairs of architecture and package are right."""
    cells = [cell for _, _, cell in cells_of(table)]
    sited = [cell for cell in cells if cell.get("sites")]
    replaced = [cell for cell in sited if is_called(cell)]
    right = [cell for cell in replaced if cell["parity"]]
    tokens = [cell["tokens"] for cell in replaced if cell["tokens"]]
    equal = sum(one["equal"] == one["steps"] for one in tokens)
    takers = {name for name, _, cell in cells_of(table) if is_called(cell)}
    return (
        f"{len(table)} architectures, {len(table[0]['packages'])} packages. An operation was "
        f"found in {len(sited)} of {len(cells)} pairs and replaced in {len(replaced)}, at least in "
        f"part; {len(right)} of these have parity. {len(takers)} architectures take at least one "
        f"package. Greedy tokens are equal over 64 steps in {equal} of {len(tokens)} models that "
        "generate.\n"
    )


def _table(table: list[dict[str, Any]]) -> str:
    names = list(table[0]["packages"])
    lines = [
        f"| architecture | {' | '.join(f'`{n}`' for n in names)} | tokens | gain | predicted |",
        "|---|" + "---|" * (len(names) + 3),
    ]
    for row in table:
        cells = [_cell(row["packages"][name]) for name in names]
        line = f"| {row['architecture']} | {' | '.join(cells)} | {_decoded(row)} |"
        lines.append(re.sub(r"\|\s+(?=\|)", "|", line))
    return "\n".join(lines) + "\n"


def _cell(cell: dict[str, Any]) -> str:
    if "error" in cell:
        return "" if "computed in none" in cell["error"] else "no model"
    if cell["replaced"] and not is_called(cell):
        return f"({places_of(cell)})"
    return (
        places_of(cell) if cell["parity"] or not cell["replaced"] else f"{places_of(cell)} **no**"
    )


def is_called(cell: dict[str, Any]) -> bool:
    """Returns whether a package replaced places, of which the passes of the table call one."""
    calls = [phase["calls"] for phase in cell.get("phases", ())]
    return bool(cell.get("replaced")) and (bool(cell["failure"]) or any(calls))


def places_of(cell: dict[str, Any]) -> str:
    """Returns in how many of the places that were found the package runs."""
    return f"{cell['replaced']}/{sum(len(site['modules']) for site in cell['sites'])}"


def _decoded(row: dict[str, Any]) -> str:
    """Returns the cells on tokens and times of the package that generated."""
    for name, cell in row["packages"].items():
        for phase in cell.get("phases", ()):
            if phase["name"] == "decode":
                equal = cell["tokens"]["equal"]
                predicted = phase["predicted_gain"]
                text = "" if predicted is None else f"{predicted:.3f}"
                return f"{equal} of 64 (`{name}`) | {phase['gain']:.3f} | {text}"
    return " | | "


POINTS = 0.05
"""A prediction is near if it is within five points of the gain."""


def _predictions(table: list[dict[str, Any]]) -> str:
    """Returns by package how near the gains that the operator predicts are to those of models."""
    phases: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for _, package, cell in cells_of(table):
        phases[package] += [one for one in cell.get("phases", ()) if one["predicted_gain"]]
    lines = [
        "| package | phases | gain alone | share of time, % | gain in the model | predicted "
        "| near |",
        "|---|--:|---|---|---|---|--:|",
    ]
    for package, rows in phases.items():
        if not rows:
            continue
        near = sum(abs(one["gain"] - one["predicted_gain"]) <= POINTS for one in rows)
        spans = [
            _span([one["operator_gain"] for one in rows], 2),
            _span([100 * one["share"] for one in rows], 1),
            _span([one["gain"] for one in rows], 3),
            _span([one["predicted_gain"] for one in rows], 3),
        ]
        lines.append(f"| `{package}` | {len(rows)} | {' | '.join(spans)} | {near} |")
    return "\n".join(lines) + "\n"


def _span(values: list[float], digits: int) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"

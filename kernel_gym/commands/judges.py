"""`kernel-gym judges`: the corpus of candidates of known truth."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from kernel_gym.commands.common import (
    FAILED,
    JsonOption,
    console,
    messages,
    one_line_errors,
    print_json,
)

app = typer.Typer(no_args_is_help=True, help="A corpus of candidates of known truth, for judges.")


@app.command("list")
def list_kinds(json: JsonOption = False) -> None:
    """List the kinds of candidates with their class, evidence and number."""
    from kernel_gym.judges.corpus import candidates

    counts = Counter((one.truth, one.kind, one.evidence) for one in candidates())
    held_out = Counter(one.kind for one in candidates() if one.held_out)
    rows: list[dict[str, Any]] = [
        {"class": truth, "kind": kind, "evidence": evidence, "candidates": number}
        | {"held_out": held_out[kind]}
        for (truth, kind, evidence), number in sorted(counts.items())
    ]
    if json:
        print_json(rows)
        return
    table = Table(*(name.replace("_", " ") for name in rows[0]))
    for row in rows:
        table.add_row(*map(str, row.values()))
    console.print(table)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="PROBLEM/KIND, or PROBLEM/problem.")],
) -> None:
    """Print one candidate, or the problem's module."""
    from kernel_gym.judges.corpus import find

    problem, _, kind = name.partition("/")
    with one_line_errors():
        if kind == "problem":
            print(find(f"{problem}/right_plain").problem.source, end="")
        else:
            print(find(name).source, end="")


@app.command()
def truth(
    quick: Annotated[bool, typer.Option("--quick", help="Two candidates of each kind.")] = False,
    only: Annotated[str, typer.Option(help="Candidates whose names begin so.")] = "",
    out: Annotated[
        Path | None, typer.Option(dir_okay=False, help="A file of JSON lines, which is continued.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare the headers with two oracles. Exit code 1 when a claim does not hold.

    One oracle runs machine code on the simulated GPU and compares with PyTorch in float64, the
    other runs Triton's interpreter and compares with NumPy. Neither uses our judge.
    """
    from kernel_gym.judges import corpus
    from kernel_gym.judges.truth import settle

    chosen = corpus.quick() if quick else corpus.candidates()
    chosen = tuple(one for one in chosen if one.name.startswith(only))
    if not chosen:
        raise typer.BadParameter(f"no candidate begins with {only!r}", param_hint="--only")
    with one_line_errors(), messages.status("observing candidates"):
        settled = list(settle(chosen, out))
    failed = [one for one in settled if not one.holds]
    rows = [
        {"candidate": one.candidate.name, "class": one.candidate.truth}
        | {"evidence": one.candidate.evidence, "facts": one.facts, "errors": one.errors}
        for one in failed
    ]
    if json:
        print_json({"candidates": len(settled), "failed": rows})
    else:
        console.print(f"{len(settled) - len(failed)} of {len(settled)} claims hold")
        for row in rows:
            console.print(row)
    if failed:
        raise typer.Exit(FAILED)

"""`kernel-gym judges`: the corpus of candidates of known truth."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from kernel_gym.commands.common import (
    FAILED,
    JsonOption,
    console,
    messages,
    one_line_errors,
    print_json,
)
from kernel_gym.commands.tables import folding_table

if TYPE_CHECKING:
    from kernel_gym.judges.corpus import Candidate

app = typer.Typer(no_args_is_help=True, help="A corpus of candidates of known truth, for judges.")
Quick = Annotated[bool, typer.Option("--quick", help="Two candidates of each kind.")]
Sums = Annotated[bool, typer.Option("--sums", help="The second corpus: one sum over all elements.")]


@app.command("list")
def list_kinds(json: JsonOption = False) -> None:
    """List the kinds of candidates with their class, evidence and number."""
    from kernel_gym.judges.corpus import candidates, sums

    every = (*candidates(), *sums())
    counts = Counter((one.truth, one.kind, one.evidence) for one in every)
    held_out = Counter(one.kind for one in every if one.held_out)
    rows: list[dict[str, object]] = [
        {"class": truth, "kind": kind, "evidence": evidence, "candidates": number}
        | {"held_out": held_out[kind]}
        for (truth, kind, evidence), number in sorted(counts.items())
    ]
    if json:
        print_json(rows)
        return
    table = folding_table(*(name.replace("_", " ") for name in rows[0]))
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
    quick: Quick = False,
    sums: Sums = False,
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
    from kernel_gym.judges.truth import settle

    chosen = _chosen(quick, sums)
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


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="A judge, or a file that defines its ADAPTER.")],
    checkout: Annotated[
        Path | None, typer.Argument(help="The judge's checkout; ours needs none.", exists=True)
    ] = None,
    quick: Quick = False,
    sums: Sums = False,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="The third that a seed draws, by name.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(dir_okay=False, help="A file of JSON lines for the rows.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the file.")] = False,
    only: Annotated[list[str], typer.Option(help="Candidates whose names begin so.")] = [],  # noqa: B006
    workers: Annotated[int, typer.Option(min=1, help="Judges that run at a time.")] = 1,
    device: Annotated[str, typer.Option("--device", "-d", help="A simulated one.")] = "sim:gfx942",
    outside: Annotated[
        Path | None,
        typer.Option(file_okay=False, exists=True, help="A checkout of another corpus, to run on."),
    ] = None,
) -> None:
    """Run a judge on the corpus, one row a candidate.

    The judge runs unmodified in a confined process: it sees its checkout, and writes a folder that
    is new for each candidate. `kernel-gym` is our own judge.

    Examples: kernel-gym judges run kernelbench KernelBench --quick --out rows.jsonl

    kernel-gym judges run my_judge.py checkouts/my_judge --only swiglu/

    kernel-gym judges run kernel-gym --outside gpuemu-corpus --out outside.jsonl
    """
    from kernel_gym.judges.adapter import load_adapter
    from kernel_gym.judges.outside import for_judge
    from kernel_gym.judges.own import NAME, run_own
    from kernel_gym.judges.report import disagreements
    from kernel_gym.judges.run import RowFile, run_judge

    def show_line(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    with one_line_errors():
        adapter = None if name == NAME else load_adapter(name)
        if adapter is not None and checkout is None:
            raise typer.BadParameter(f"{name} needs the folder of its checkout")
        chosen = _corpus(quick, sums, held_out) if outside is None else for_judge(outside, adapter)
        if only:
            chosen = tuple(one for one in chosen if one.name.startswith(tuple(only)))
        file = RowFile(out, resume, show_line)
        if adapter is None:
            run_own(file.missing(chosen, NAME), file.keep, device)
        else:
            left = file.missing(chosen, adapter.name)
            run_judge(adapter, cast(Path, checkout), left, file.keep, workers, device)
    if outside is not None:
        for line in disagreements(file.rows, chosen):
            show_line(line)


def _chosen(quick: bool, sums: bool) -> tuple[Candidate, ...]:
    """Returns the corpus, its quick set, or the second corpus."""
    from kernel_gym.judges import corpus

    if quick and sums:
        raise typer.BadParameter("the second corpus has no quick set", param_hint="--sums")
    return corpus.quick() if quick else corpus.sums() if sums else corpus.candidates()


def _corpus(quick: bool, sums: bool, held_out: bool) -> tuple[Candidate, ...]:
    """Returns the corpus or a part of it.

    Args:
        quick: Only the quick set.
        sums: The second corpus, which has no kernels that are judged against themselves.
        held_out: Only the held-out third. Without it, the kernels that are judged against
            themselves come last.
    """
    from kernel_gym.judges import corpus

    chosen = _chosen(quick, sums)
    if held_out:
        return tuple(one for one in chosen if one.held_out)
    return chosen if sums else (*chosen, *corpus.against_itself())


@app.command()
def report(
    files: Annotated[list[Path], typer.Argument(help="Files of `run --out`.", exists=True)],
    held_out: Annotated[bool, typer.Option("--held-out", help="The held-out third only.")] = False,
    html: Annotated[
        Path | None, typer.Option(dir_okay=False, help="A page with a matrix to filter.")
    ] = None,
    badge: Annotated[
        Path | None, typer.Option(dir_okay=False, help="JSON for a badge of shields.io.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print the error rates of judges, with exact intervals of 95 %.

    Verdicts that a judge could not give are counted apart. Rows of an older corpus are left out.
    """
    from dataclasses import asdict

    from kernel_gym.judges import report as reports
    from kernel_gym.judges.verdicts import read_verdicts

    with one_line_errors():
        rows = reports.present_rows(read_verdicts(files))
    rows = reports.held_out(rows) if held_out else rows
    if html is not None:
        from kernel_gym.judges.page import matrix_page

        html.write_text(matrix_page(rows), encoding="utf-8")
    scores = reports.scores(rows)
    if badge is not None:
        with one_line_errors():
            badge.write_text(reports.badge(scores), encoding="utf-8")
    if json:
        print_json([asdict(score) for score in scores])
        return
    heads = ("judge", "right refused", "wrong accepted", "cheats accepted", "pays them")
    table = folding_table(*heads, "pays a kernel with itself", "CPU s", "open")
    for score in scores:
        table.add_row(*score.cells)
    console.print(table)

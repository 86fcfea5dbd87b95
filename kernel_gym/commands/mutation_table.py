"""The result of the mutation test of references, for `kernel-gym admit --mutate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.progress import track

from kernel_gym.commands.common import console, messages, print_json
from kernel_gym.commands.tables import folding_table

if TYPE_CHECKING:
    from kernel_gym.admission.mutants import MutationReport
    from kernel_gym.commands.output import Row
    from kernel_gym.tasks.problem import Problem

MAX_SURVIVING_SHARE = 0.03
"""Largest share of mutants that may pass without a rule that says why."""


def mutate(problems: Sequence[Problem], json: bool) -> bool:
    """Runs the mutation test and prints it. Returns whether too many mutants survive."""
    from kernel_gym.admission.mutants import mutation_test
    from kernel_gym.admission.values import SEED
    from kernel_gym.tasks.problem import Scale

    steps = (mutation_test(problem, Scale.SIM, SEED) for problem in problems)
    reports = list(track(steps, "mutating", len(problems), console=messages))
    print_json([_row(report) for report in reports]) if json else _show(reports)
    survivors = sum(len(report.survivors) for report in reports)
    return survivors > MAX_SURVIVING_SHARE * sum(report.count for report in reports)


def _row(report: MutationReport) -> Row:
    return {
        "problem": report.problem,
        "mutants": report.count,
        "killed": report.killed,
        "equivalent": [{"change": change, "rule": rule} for change, rule in report.equivalent],
        "survivors": list(report.survivors),
        "left_out": list(report.left_out),
    }


def _show(reports: Sequence[MutationReport]) -> None:
    table = folding_table("problem", "mutants", "killed", "equivalent", "survivors")
    for report in reports:
        counts = (report.count, report.killed, len(report.equivalent))
        table.add_row(report.problem, *map(str, counts), escape("\n".join(report.survivors)))
    console.print(table)
    total, killed, survivors = _sums(reports)
    share = survivors / total if total else 0.0
    text = f"{total} mutants: {killed} killed, {survivors} survive ({share:.1%})"
    console.print(text, highlight=False)
    for report in reports:
        for workload in report.left_out:
            console.print(f"left out, the reference fails: {report.problem} {workload}")
    rules = Counter(rule for report in reports for _, rule in report.equivalent)
    for rule, count in rules.most_common():
        console.print(f"{count} equivalent: {rule}", highlight=False)


def _sums(reports: Iterable[MutationReport]) -> tuple[int, int, int]:
    rows = [(report.count, report.killed, len(report.survivors)) for report in reports]
    total, killed, survivors = (sum(row[i] for row in rows) for i in range(3))
    return total, killed, survivors

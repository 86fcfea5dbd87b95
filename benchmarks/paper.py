"""`python -m benchmarks paper`: the technical report, from its template and the stored results.

The template `benchmarks/paper.md` holds text and no result: each figure and table is a call of a
function here, which reads `benchmarks/results`.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.deployment.page import counts, stored_table
from benchmarks.figures import (
    RESULTS,
    BenchmarkEntry,
    BenchmarkError,
    Benchmarks,
    Subject,
    load_benchmarks,
)
from benchmarks.judges_front import judge_chart
from benchmarks.judges_page import stored_rows
from benchmarks.page import figure_text
from kernel_gym.commands.common import console, note, one_line_errors
from kernel_gym.judges.page import score_table
from kernel_gym.judges.report import present_rows, quick_rows, scores

TEMPLATE = Path("benchmarks/paper.md")
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
COMMANDS = {
    "suite": "python -m benchmarks renew",
    "leaderboard": "python -m benchmarks leaderboard",
    "leaderboard-writer": "python -m benchmarks leaderboard --writer runs/writer_gpu",
    "timing-accuracy": "kernel-gym bench timing --device cuda:0",
    "throughput-gpu": "kernel-gym bench throughput --device cuda:0",
    "simulator-speed": "python -m benchmarks simulator",
    "training-writer-cpu": "python -m benchmarks writer RUN",
    "training-tiny": "kernel-gym train training/configs/tiny_cpu.toml",
    "compiled-graphs": "python -m benchmarks compiled-graphs",
    "compiled-tasks": "python -m benchmarks compiled-tasks",
    "service": "python benchmarks/load_service.py",
    "recovery": "pytest -m sweep",
    "setup-times": "make demo",
    "agents": "kernel-gym exploits --agents",
}
"""The command that makes the figures of each subject."""


def paper(
    out: Annotated[Path, typer.Option(file_okay=False, help="The folder.")] = Path("build/paper"),
) -> None:
    """Build the technical report as HTML, and as PDF where a Chromium is installed.

    Example: python -m benchmarks paper
    """
    with one_line_errors():
        page = paper_page(TEMPLATE.read_text(encoding="utf-8"), load_benchmarks(RESULTS))
    out.mkdir(parents=True, exist_ok=True)
    report = out / "report.html"
    report.write_text(page, encoding="utf-8")
    console.print(f"report: {report}", highlight=False, soft_wrap=True)
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        note("no PDF: no Chromium is installed (scripts/browser.sh)")
        return
    pdf = report.with_suffix(".pdf")
    command = [browser, "--headless", "--no-sandbox", "--no-pdf-header-footer"]
    printed = [*command, f"--print-to-pdf={pdf}", report.absolute().as_uri()]
    subprocess.run(printed, check=True, capture_output=True, timeout=300)
    console.print(f"report: {pdf}", highlight=False, soft_wrap=True)


def paper_page(template: str, benchmarks: Benchmarks) -> str:
    """Returns the report as one page of HTML that loads nothing.

    Args:
        template: Markdown with calls of Jinja.
        benchmarks: The stored figures.

    Raises:
        BenchmarkError: The template names a figure that is not stored. The message names the
            command that makes it.
    """
    from jinja2 import Environment, StrictUndefined
    from markdown import markdown

    rows = quick_rows(present_rows(stored_rows()))
    environment = Environment(undefined=StrictUndefined, autoescape=False)
    environment.globals.update(
        figure=lambda subject, name: figure_text(find_entry(benchmarks, subject, name)),
        table=lambda subject: results_table(find_subject(benchmarks, subject), benchmarks),
        judges=lambda: score_table(scores(rows)),
        judge_chart=lambda: _figure(judge_chart(scores(rows))),
        deployment=lambda: counts(stored_table()),
    )
    body = markdown(environment.from_string(template).render(), extensions=["tables", "toc"])
    styles = Path("kernel_gym/report/report.css").read_text(encoding="utf-8")
    wrapped = body.replace(
        "<table>", '<div class="panel wide" tabindex="0" role="region" aria-label="Table"><table>'
    ).replace("</table>", "</table></div>")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<title>kernel-gym: a technical report</title>\n"
        f"<style>\n{styles}.wide table {{ min-width: 44rem; }}\n</style></head>\n"
        f"<body><main>\n{wrapped}\n</main></body></html>\n"
    )


def _figure(chart: str) -> str:
    """Returns a chart as one line, which Markdown leaves as it is."""
    return f"<figure>{chart.replace(chr(10), '')}</figure>"


def find_subject(benchmarks: Benchmarks, subject: str) -> Subject:
    """Returns the figures of a subject.

    Raises:
        BenchmarkError: They are not stored.
    """
    if subject not in benchmarks.subjects:
        known = COMMANDS.get(subject, "the command of that subject")
        raise BenchmarkError(f"found no results of {subject!r}; run: {known}")
    return benchmarks.subjects[subject]


def find_entry(benchmarks: Benchmarks, subject: str, name: str) -> BenchmarkEntry:
    """Returns one figure.

    Raises:
        BenchmarkError: It is not stored.
    """
    for entry in find_subject(benchmarks, subject).entries:
        if entry.id == name:
            return entry
    known = COMMANDS.get(subject, "the command of that subject")
    raise BenchmarkError(f"found no figure {name!r} in {subject}.json; run: {known}")


def results_table(subject: Subject, benchmarks: Benchmarks) -> str:
    """Returns all figures of a subject as a table of Markdown."""
    lines = ["| figure | value | clock | machine, date |", "|---|---|---|---|"]
    for entry in subject.entries:
        clock = "-" if entry.clock == "none" else entry.clock
        machine = benchmarks.machines[entry.machine].name
        metric = f"{entry.metric}. {entry.note}" if entry.note else entry.metric
        text = figure_text(entry)
        lines.append(f"| {metric} | {text} | {clock} | {machine}, {entry.date} |")
    return "\n".join(lines) + "\n"

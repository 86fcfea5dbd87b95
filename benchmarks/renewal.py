"""`python -m benchmarks renew`: figures that are computed from today's tree.

It writes whole files of `benchmarks/results/`: `suite.json` from the stored verdicts, and, with a
file of findings, `exploits.json`. The figures of all other files are entered by hand.
"""

from __future__ import annotations

import datetime
import json
import statistics
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.counts import CountName, counts_of_tree
from benchmarks.figures import RESULTS, BenchmarkEntry, Goal, Subject, load_benchmarks
from benchmarks.judges_front import CHART, FRONT_PAGES, front_page, judge_chart
from benchmarks.judges_page import judges_pages, stored_rows
from benchmarks.measured_head_room import compared_baselines, rank_correlation
from benchmarks.page import FOLDER, benchmark_pages
from kernel_gym.commands.common import one_line_errors
from kernel_gym.commands.exploits import EXAMPLES, SUITE
from kernel_gym.errors import InputError
from kernel_gym.exploits.ledger import FindingsFile
from kernel_gym.exploits.loader import Exploit, Honest, honest_candidates, load_exploits
from kernel_gym.exploits.runner import Finding, runs_on
from kernel_gym.hardware import MI300X
from kernel_gym.judges.report import present_rows, quick_rows, scores
from kernel_gym.tasks import get_problem, load_suite, problem_names
from kernel_gym.tasks.task import Mode
from kernel_gym.tasks.verdicts import stored_verdict

DEVICE = "sim:gfx942"
MACHINE = "epyc"
GPUS = ("NVIDIA H200", "NVIDIA H100 80GB HBM3")
"""GPUs that head-room was measured on, by their names in `measured_head_room.json`."""

NewEntry = Callable[..., BenchmarkEntry]


def renew(
    findings: Annotated[
        Path | None,
        typer.Option(dir_okay=False, exists=True, help="File of `kernel-gym exploits --out`."),
    ] = None,
) -> None:
    """Compute the figures of the suite again, and write the pages that show them.

    With --findings also those of the exploits and the honest kernels. The file must hold a finding
    on every one of them, on sim:gfx942.

    Examples: python -m benchmarks renew

    kernel-gym exploits --device sim:gfx942 --out runs/findings.jsonl

    python -m benchmarks renew --findings runs/findings.jsonl
    """
    with one_line_errors():
        store("suite", suite_figures(entry_maker("suite")))
        if findings is not None:
            store("exploits", exploit_figures(findings, entry_maker("exploits")))
        benchmarks = benchmark_pages(load_benchmarks(RESULTS))
        rows = quick_rows(present_rows(stored_rows()))
        pages = {FOLDER / name: text for name, text in benchmarks.items()} | judges_pages()
        for page in FRONT_PAGES:
            pages[page] = front_page(page, page.read_text(encoding="utf-8"), rows)
        pages[CHART] = judge_chart(scores(rows))
    for page, content in pages.items():
        page.write_text(content, encoding="utf-8")


def suite_figures(new_entry: NewEntry) -> Subject:
    """Returns the figures that the stored verdicts of problems give.

    Args:
        new_entry: Makes an entry of this subject, with machine, commit, date and counts filled in.
    """
    admitted = len(load_suite("core").tasks)
    command = "python -m benchmarks tasks"
    first = new_entry(
        *("problems", "tasks"),
        id="core-tasks",
        metric="Tasks that admission accepts",
        value=admitted,
        unit=f"of {counts_of_tree()['tasks']}",
        command=command,
    )
    rooms = (
        new_entry(
            "tasks",
            id=f"head-room-{mode}",
            metric=f"Median head-room over the roofline, {mode}",
            value=rounded(statistics.median(_modelled_rooms(mode)), 1),
            unit="x",
            clock="modelled",
            command=command,
        )
        for mode in Mode
    )
    ranks = (_rank_entry(gpu, new_entry) for gpu in GPUS)
    return Subject(title="The suite of problems", entries=(first, *rooms, *ranks))


def exploit_figures(path: Path, new_entry: NewEntry) -> Subject:
    """Returns the figures that a file of findings gives.

    Args:
        path: File of `kernel-gym exploits --device sim:gfx942 --out FILE`.
        new_entry: Makes an entry of this subject, as for `suite_figures`.

    Raises:
        InputError: The file lacks a finding on a candidate of today's tree.
    """
    exploits = [c for c in load_exploits(SUITE) if runs_on(c, DEVICE)]
    honest = [c for c in honest_candidates(EXAMPLES) if runs_on(c, DEVICE)]
    findings = FindingsFile(path, resume=True).known([*exploits, *honest], DEVICE)
    command = f"kernel-gym exploits --device {DEVICE} --out FILE"
    return Subject(
        title="Exploits and honest kernels on the simulator",
        entries=(
            new_entry(
                "exploits",
                id="exploits-blocked",
                metric="Exploits that are refused or gain nothing",
                value=count_right(exploits, findings, path),
                unit=f"of {len(exploits)}",
                command=command,
                goal=Goal(text="all", met=count_right(exploits, findings, path) == len(exploits)),
            ),
            new_entry(
                "honest_kernels",
                id="honest-passed",
                metric="Honest kernels that pass",
                value=count_right(honest, findings, path),
                unit=f"of {len(honest)}",
                command=command,
                goal=Goal(text="all", met=count_right(honest, findings, path) == len(honest)),
            ),
        ),
    )


def count_right(
    candidates: Sequence[Exploit | Honest], findings: Iterable[Finding], path: Path
) -> int:
    """Returns how many candidates have the verdict that they should have."""
    right = {finding.candidate.name: finding.right for finding in findings}
    missing = [candidate.name for candidate in candidates if candidate.name not in right]
    if missing:
        raise InputError(
            f"{path}: found no finding on {missing[0]} and {len(missing) - 1} others, "
            f"expected those of `kernel-gym exploits --device {DEVICE} --resume --out {path}`"
        )
    return sum(right[candidate.name] for candidate in candidates)


def _rank_entry(gpu: str, new_entry: NewEntry) -> BenchmarkEntry:
    """Compares the modelled head-room over PyTorch with that of a GPU."""
    problems = (get_problem(name) for name in problem_names())
    rows = list(compared_baselines(problems, gpu, MI300X))
    short = gpu.split()[1]
    return new_entry(
        "problems",
        id=f"head-room-rank-{short.lower()}",
        metric=f"Rank correlation of the head-room over PyTorch: modelled, measured on an {short}",
        value=rounded(rank_correlation(rows), 2),
        unit=f"(Spearman, {len(rows)} problems)",
        clock="modelled",
        command=f"python -m benchmarks operators --measured '{gpu}'",
    )


def _modelled_rooms(mode: Mode) -> Iterator[float]:
    """Yields the modelled head-room of each task of a mode: the largest of all simulated GPUs."""
    for name in problem_names():
        verdict = stored_verdict(get_problem(name))
        devices = verdict.devices if verdict else {}
        rooms = [
            modes[mode].head_room or 0.0
            for device, modes in devices.items()
            if device.startswith("sim:") and mode in modes
        ]
        if any(rooms):
            yield max(rooms)


def entry_maker(subject: str, machine: str = MACHINE) -> NewEntry:
    """Returns a function that makes entries of a subject as of today's commit."""
    head = ["git", "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()
    counts = counts_of_tree()

    def new_entry(*names: CountName, **fields: Any) -> BenchmarkEntry:
        return BenchmarkEntry(
            subject=subject,
            machine=machine,
            commit=commit,
            date=datetime.date.today(),
            counts={name: counts[name] for name in names},
            **{"clock": "none", **fields},
        )

    return new_entry


def rounded(value: float, places: int) -> Decimal:
    """Returns a decimal with so many places, which it keeps when it is printed."""
    return Decimal(f"{value:.{places}f}")


def kept_where_equal(today: Subject, stored: Subject) -> Subject:
    """Returns today's figures; one that has not changed keeps its commit and its date."""
    former = {entry.id: entry for entry in stored.entries}

    def kept(entry: BenchmarkEntry) -> BenchmarkEntry:
        other = former.get(entry.id, entry)
        moved = other.model_copy(update={"commit": entry.commit, "date": entry.date})
        return other if moved == entry else entry

    return Subject(title=today.title, entries=tuple(map(kept, today.entries)))


def store(name: str, subject: Subject) -> None:
    """Writes a file of results. Figures that have not changed keep their commit and date."""
    stored = load_benchmarks(RESULTS).subjects.get(name)
    subject = kept_where_equal(subject, stored) if stored else subject
    content = subject.model_dump(exclude_none=True)
    text = json.dumps(content, indent=2, default=_plain)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else str(value)

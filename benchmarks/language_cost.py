"""`python -m benchmarks language-cost FILE`: processor seconds of a kernel, by language.

Candidates are judged in these languages. Caches are in an empty folder. An evaluation of the start
kernel comes first, then two of the same kernel with twice its block size: nothing has built that
one before, so the first of them is cold and the second is warm.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from benchmarks.figures import (
    RESULTS,
    BenchmarkEntry,
    FigureInterval,
    Subject,
    load_benchmarks,
)
from benchmarks.renewal import NewEntry, entry_maker, rounded, store
from kernel_gym.commands.bench.evaluation import Seconds, measure_each
from kernel_gym.commands.common import JsonOption, console, note, one_line_errors, print_json
from kernel_gym.commands.tables import folding_table
from kernel_gym.errors import InputError
from kernel_gym.exploits.loader import with_double_block
from kernel_gym.extras import missing_extra
from kernel_gym.records import Outcome, Record
from kernel_gym.storage.json_lines import append_line, drop_cut_off, read_lines

if TYPE_CHECKING:
    from kernel_gym.tasks.task import Task

SUBJECT, DEVICE = "language-cost", "sim:gfx942"
COMMAND = "python -m benchmarks language-cost FILE"
PROBLEMS = ("add", "softmax", "rms_norm")
"""Problems with a start kernel in Triton, in Gluon and in HIP, and with an example in `OTHERS`."""
EXAMPLES = Path(__file__).parents[1] / "examples"
OTHERS = {"FlyDSL": "flydsl", "TileLang": "tilelang"}
"""Languages that are extras: each with its package, which also names its folder of examples."""
LANGUAGES = ("Triton", "Gluon", "FlyDSL", "TileLang", "HIP", "HIP extension")
BUILDERS = ("compiler", "recorder")
"""Processes that build: clang's, and the one that runs the candidate's Python. Triton, Gluon and
FlyDSL compile in the latter when a call is recorded, TileLang in both; it imports an extension."""
_EXTENSION = Template('''import torch
from torch.utils.cpp_extension import load_inline

module = load_inline("language_cost", "", r"""
$KERNEL
torch::Tensor call($PARAMETERS) {
  auto out = torch::empty(x.sizes(), x.options());
  $ENTRY($ARGUMENTS, (__half*)out.data_ptr(), x.size(0), x.size(1), nullptr);
  return out;
}
""", ["call"])


def $ENTRY($NAMES):
    return module.call($NAMES)
''')


class LanguageCost(Record):
    """Processor seconds of one language and one problem, user and system time of all processes."""

    language: str
    problem: str
    first: float
    """Building in the first evaluation, the baseline and precompiled headers included."""
    cold: float
    """Building a new source."""
    warm: float
    """Building it again."""
    rest: float
    """All else in the warm evaluation: the simulated GPU and the judge."""


def language_cost(
    out: Annotated[Path, typer.Argument(help="A file of JSON lines, which is continued.")],
    only: Annotated[list[str] | None, typer.Option(help="A language; by default all.")] = None,
    json: JsonOption = False,
) -> None:
    """Measure what building and running a small kernel costs in each language.

    About five minutes of one processor; two are PyTorch's headers. The figures of the languages
    whose compiler is here are stored at the end; those of others stay as they are.

    Example: python -m benchmarks language-cost costs.jsonl
    """
    with one_line_errors():
        drop_cut_off(out)
        rows = read_lines(out, LanguageCost)
        missing = missing_compilers()
        unwanted = {} if only is None else dict.fromkeys(set(LANGUAGES) - set(only), "")
        with empty_cache():
            for language, problem in left(rows, missing | unwanted):
                rows.append(measured(language, problem))
                append_line(out, rows[-1])
                note(f"{language}, {problem}: {rows[-1].cold:.1f} s to build")
        stored = load_benchmarks(RESULTS).subjects.get(SUBJECT)
        store(SUBJECT, with_others(figures(rows, entry_maker(SUBJECT)), stored))
    if json:
        print_json({"rows": [row.model_dump() for row in rows], "missing": missing})
    else:
        console.print(cost_table(rows, missing))


def left(rows: Sequence[LanguageCost], missing: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns the languages and problems that have no row, without those that cannot be built."""
    done = {(row.language, row.problem) for row in rows}
    able = [language for language in LANGUAGES if language not in missing]
    pairs = [(language, problem) for language in able for problem in PROBLEMS]
    return [pair for pair in pairs if pair not in done]


def missing_compilers() -> dict[str, str]:
    """Returns the languages whose compiler is not installed, each with the cure."""
    from kernel_gym.devices import device_status

    status = device_status(DEVICE)
    lacks = "; ".join(map("{}: {}".format, status.problems, status.fixes))
    names = {"Triton": "triton", "Gluon": "triton", "HIP": "hip", "HIP extension": "hip"}
    missing = {name: lacks for name, each in names.items() if each not in status.languages}
    if "hip" not in status.languages:
        missing["TileLang"] = lacks
    for language, package in OTHERS.items():
        if importlib.util.find_spec(package) is None:
            missing[language] = missing_extra(ModuleNotFoundError(name=package)) or ""
    return missing


@contextmanager
def empty_cache() -> Iterator[None]:
    """Keeps what is built in an empty folder, which is deleted afterwards."""
    former = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # compilers of candidates have another user id
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            yield
        finally:
            os.environ.pop("XDG_CACHE_HOME")
            if former is not None:
                os.environ["XDG_CACHE_HOME"] = former


def source_of(language: str, problem: str) -> tuple[Task, str]:
    """Returns a task, and its start kernel in a language of `LANGUAGES`."""
    from kernel_gym.tasks import get_task

    if language in ("Triton", "Gluon"):
        task = get_task(f"triton2triton/{problem}")
        source = task.kernel_source if language == "Triton" else task.gluon_source
        assert source is not None  # every problem of PROBLEMS has one
        return task, source
    if language in OTHERS:
        source = (EXAMPLES / OTHERS[language] / f"{problem}.py").read_text(encoding="utf-8")
        return get_task(f"triton2triton/{problem}"), source
    task = get_task(f"hip2hip/{problem}")
    return task, task.kernel_source if language == "HIP" else extension(task)


def extension(task: Task) -> str:
    """Returns a PyTorch extension that calls the C launcher of a task in HIP.

    Args:
        task: Its tensors are halves, and the only output has the sizes of the argument `x`.
    """
    from kernel_gym.tasks.problem import ScalarArg

    args = task.problem.args
    scalars = [isinstance(arg, ScalarArg) for arg in args]
    names = [arg.name for arg in args]
    pairs = list(zip(names, scalars, strict=True))
    return _EXTENSION.substitute(
        KERNEL=task.kernel_source,
        ENTRY=task.entry,
        NAMES=", ".join(names),
        PARAMETERS=", ".join(f"double {n}" if s else f"torch::Tensor {n}" for n, s in pairs),
        ARGUMENTS=", ".join(n if s else f"(const __half*){n}.data_ptr()" for n, s in pairs),
    )


def measured(language: str, problem: str) -> LanguageCost:
    """Evaluates the start kernel, and its variant twice.

    Raises:
        InputError: An evaluation did not pass.
    """
    task, source = source_of(language, problem)
    variant = with_double_block(source)
    rows = measure_each(task, [source, variant, variant], DEVICE)
    for row in rows:
        if row["outcome"] != Outcome.PASSED:
            raise InputError(f"{language}, {problem}: {row['outcome']}: {row['message']}")
    first, cold, warm = (building(row["stages"]) for row in rows)
    rest = rows[-1]["cpu_seconds"] - warm
    return LanguageCost(
        language=language, problem=problem, first=first, cold=cold, warm=warm, rest=rest
    )


def building(stages: Seconds) -> float:
    """Returns the seconds of the processes that build, in all stages."""
    return sum(spent.get(process, 0.0) for spent in stages.values() for process in BUILDERS)


def _by_language(rows: Sequence[LanguageCost]) -> dict[str, list[LanguageCost]]:
    groups = {language: [row for row in rows if row.language == language] for language in LANGUAGES}
    return {language: some for language, some in groups.items() if some}


def cost_table(rows: Sequence[LanguageCost], missing: Mapping[str, str]) -> Table:
    """Returns the table: means over problems in processor seconds, or what a language lacks."""
    numbers = ("first on a machine", "build, cold", "build, warm", "rest")
    title = f"Processor seconds of an evaluation on {DEVICE}"
    table = folding_table("language", *numbers, "lacks", right=numbers, title=title)
    for language, some in _by_language(rows).items():
        means = (statistics.mean(getattr(row, name) for row in some) for name in _SHORT)
        table.add_row(language, f"{some[0].first:.2f}", *(f"{mean:.2f}" for mean in means), "")
    for language, lacks in missing.items():
        table.add_row(language, "-", "-", "-", "-", escape(lacks))
    return table


_SHORT: dict[str, tuple[str, str]] = {
    "cold": ("building a new source", "cold"),
    "warm": ("building it again", "warm"),
    "rest": ("checking and timing", "rest"),
}
"""Fields that are means over problems, each with its words and the end of its id."""


def figures(rows: Sequence[LanguageCost], new_entry: NewEntry) -> Subject:
    """Returns the figures of the languages that were measured.

    Args:
        rows: Each language has the same problems, in the order of their evaluation.
        new_entry: Makes an entry of this subject.
    """
    entries: list[BenchmarkEntry] = []
    for language, some in _by_language(rows).items():
        slug = f"language-cost-{language.lower().replace(' ', '-')}"
        common: dict[str, Any] = {"clock": "measured", "unit": "s", "command": COMMAND}
        for field, (words, end) in _SHORT.items():
            values = [rounded(getattr(row, field), 2) for row in some]
            entries.append(
                new_entry(
                    id=f"{slug}-{end}",
                    metric=f"{language}: processor seconds of {words}",
                    value=rounded(float(statistics.mean(values)), 2),
                    interval=FigureInterval(low=min(values), high=max(values), kind="by problem"),
                    **common,
                )
            )
        entries.append(
            new_entry(
                id=f"{slug}-first",
                metric=f"{language}: processor seconds of building, first evaluation on a machine",
                value=rounded(some[0].first, 2),
                note=f"The problem is {some[0].problem}. The time includes its baseline and the "
                "precompiled headers.",
                **common,
            )
        )
    return Subject(title="Languages: building and running a small kernel", entries=tuple(entries))


def with_others(measured: Subject, stored: Subject | None) -> Subject:
    """Adds the stored figures of languages that were not measured now.

    Args:
        measured: The new figures.
        stored: The figures so far, in the order of the table.
    """
    new = {entry.id: entry for entry in measured.entries}
    old = {entry.id: entry for entry in stored.entries} if stored else {}
    slugs = [f"language-cost-{language.lower().replace(' ', '-')}" for language in LANGUAGES]
    ends = [*(end for _, end in _SHORT.values()), "first"]
    both = old | new
    order = [f"{slug}-{end}" for slug in slugs for end in ends]
    return measured.model_copy(update={"entries": tuple(both[i] for i in order if i in both)})

"""The kernels of PyTorch's compiler for tasks, judged like any candidate: the policy `inductor`."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchmarks.figures import Subject
from benchmarks.renewal import NewEntry, entry_maker, rounded, store
from kernel_gym.commands.common import one_line_errors
from kernel_gym.errors import InputError
from kernel_gym.records import Record
from kernel_gym.sim.constants import TIMING_MODEL_VERSION
from kernel_gym.storage.json_lines import append_line, drop_cut_off, read_lines

if TYPE_CHECKING:
    from kernel_gym.evaluator import Evaluator

SUBJECT = "compiled-tasks"
DEVICE, SEED = "sim:gfx942", 0
REFUSED = "no candidate"
"""The outcome where the compiler writes nothing that is a candidate."""


class CompiledTask(Record):
    """One task: the outcome of the compiler's kernels, and their modelled speedups over eager."""

    task: str
    timing_model: str
    outcome: str
    reason: str = ""
    speedup: float | None = None
    unseen_speedup: float | None = None


def compiled_tasks(
    out: Annotated[Path, typer.Argument(help="A file of JSON lines, which is continued.")],
    count: Annotated[int, typer.Option(min=1, help="Tasks in all.")] = 30,
    more: Annotated[
        int | None, typer.Option(min=1, help="Play at most so many tasks now, of those left.")
    ] = None,
) -> None:
    """Judge the kernels that PyTorch's compiler writes for tasks that start from PyTorch.

    A fixed draw of the tasks, about half a minute of a core each. The figures are stored when all
    are there.

    Example: python -m benchmarks compiled-tasks tasks.jsonl --more 10
    """
    with one_line_errors():
        drop_cut_off(out)
        tasks = drawn_tasks(count)
        rows = [row for row in read_lines(out, CompiledTask) if row.task in tasks]
        if any(row.timing_model != TIMING_MODEL_VERSION for row in rows):
            raise InputError(f"{out} has tasks of another timing model")
        left = [task for task in tasks if task not in {row.task for row in rows}][:more]
        _play(left, out, rows)
        if len(rows) == count:
            store(SUBJECT, figures(rows, entry_maker(SUBJECT)))


def drawn_tasks(count: int) -> list[str]:
    """Returns a fixed draw of tasks that start from PyTorch and run on the device."""
    from kernel_gym.tasks.names import task_ids

    ids = [task for task in task_ids() if task.startswith("torch2triton/")]
    return random.Random(SEED).sample([task for task in ids if not task.endswith("_ocp")], count)


def _play(tasks: Sequence[str], out: Path, rows: list[CompiledTask]) -> None:
    """Plays tasks and appends their rows to the file and to the list."""
    from kernel_gym.evaluator import Evaluator

    with Evaluator(DEVICE, SEED) as evaluator:
        for task in tasks:
            rows.append(_judged(evaluator, task))
            append_line(out, rows[-1])
            typer.echo(f"{task}: {rows[-1].outcome} {rows[-1].reason}")


def _judged(evaluator: Evaluator, name: str) -> CompiledTask:
    from kernel_gym.policies.base import Stop
    from kernel_gym.policies.inductor import inductor_answer
    from kernel_gym.tasks import get_task

    task = get_task(name)
    answer = inductor_answer(task)
    row = CompiledTask(task=name, timing_model=TIMING_MODEL_VERSION, outcome=REFUSED)
    if isinstance(answer, Stop):
        return row.model_copy(update={"reason": answer.reason})
    judged = evaluator.evaluate(task, answer.source)
    update: dict[str, Any] = {"outcome": str(judged.outcome), "reason": judged.message}
    update |= {"speedup": judged.speedup, "unseen_speedup": judged.unseen_speedup}
    return row.model_copy(update=update)


def figures(rows: Sequence[CompiledTask], new_entry: NewEntry) -> Subject:
    """Returns the figures of tasks.

    Args:
        rows: The tasks.
        new_entry: Makes an entry of this subject.
    """
    passed = [row for row in rows if row.outcome == "passed"]
    outcomes = Counter(row.outcome for row in rows if row not in passed)
    others = ", ".join(f"{count} {name}" for name, count in outcomes.most_common())
    command = f"python -m benchmarks compiled-tasks FILE --count {len(rows)}"
    right = new_entry(
        id="compiled-tasks-right",
        metric="Tasks that TorchInductor's kernels solve, in one submission without feedback",
        value=len(passed),
        unit=f"of {len(rows)}",
        command=command,
        note=f"Outcomes of the other tasks: {others}.",
    )
    speedups = [row.unseen_speedup for row in passed if row.unseen_speedup]
    speedup = new_entry(
        id="compiled-tasks-speedup",
        metric="Speedup of these over eager PyTorch, unseen shapes, geometric mean",
        value=rounded(math.exp(sum(map(math.log, speedups)) / len(speedups)), 2),
        unit="x",
        clock="modelled",
        command=command,
        note=f"The run used version {rows[0].timing_model} of the timing model.",
    )
    return Subject(title="TorchInductor as a policy", entries=(right, speedup))

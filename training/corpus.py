"""A corpus: kernels with what they were found to be, one a line of JSONL.

`generate` draws variants of the templates of each task's problem, evaluates them and keeps the ones
that pass, fast and slow alike. They say how to write kernels and not which kernels are good: that
is for reinforcement learning to find.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from kernel_gym.records import Outcome, Record
from kernel_gym.tasks import get_task
from kernel_gym.training.episode import Episode
from kernel_gym.training.policies.search import ScheduleSearch
from kernel_gym.training.scoring import Scored, Scorer


class CorpusError(ValueError):
    """A corpus cannot be read or made; the message says why."""


class CorpusRow(Record):
    """One kernel. Times behind its speedups are modelled or measured, as `clock` says."""

    task: str
    source: str
    held_out: bool = False
    """Whether its task is one that reinforcement learning never sees."""
    structure: str = ""
    schedule: dict[str, int] = Field(default_factory=dict)
    outcome: Outcome
    clock: str
    speedup: float | None = None
    unseen_speedup: float | None = None
    reward: float | None = None


def generate(
    scorer: Scorer, train: Sequence[str], held_out: Sequence[str], per_task: int, seed: int
) -> list[CorpusRow]:
    """Draws, evaluates and keeps variants.

    Args:
        scorer: What evaluates; what it knows already is not evaluated again.
        train: Task ids that reinforcement learning will see.
        held_out: Task ids that it will not.
        per_task: Variants drawn a task.
        seed: What they are drawn from.

    Returns:
        The variants that passed, in the order drawn, by task.

    Raises:
        CorpusError: A task has no templates.
    """
    search, drawn = ScheduleSearch(seed), []
    for task in (*train, *held_out):
        order = search.order(Episode(get_task(task)))
        if not order:
            raise CorpusError(f"task {task!r} has no templates in Triton: give corpus.path")
        drawn += [(task, variant) for variant in order[:per_task]]
    scored = scorer([(task, variant.source) for task, variant in drawn])
    pairs = zip(drawn, scored, strict=True)
    return [
        _row(result, variant.structure, dict(variant.schedule), task in held_out)
        for (task, variant), result in pairs
        if result.evaluation is not None and result.evaluation.outcome is Outcome.PASSED
    ]


def _row(found: Scored, structure: str, schedule: dict[str, int], held_out: bool) -> CorpusRow:
    assert found.evaluation is not None
    return CorpusRow(
        task=found.task,
        source=found.source,
        held_out=held_out,
        structure=structure,
        schedule=schedule,
        outcome=found.evaluation.outcome,
        clock=found.evaluation.clock,
        speedup=found.evaluation.speedup,
        unseen_speedup=found.evaluation.unseen_speedup,
        reward=found.reward,
    )


def write_corpus(path: Path, rows: Iterable[CorpusRow]) -> None:
    """Writes rows, one a line."""
    text = "".join(row.model_dump_json() + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")


def read_corpus(path: Path) -> list[CorpusRow]:
    """Reads a corpus.

    Raises:
        CorpusError: The file is absent or a line is malformed.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror})") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(CorpusRow.model_validate_json(line))
        except ValidationError as error:
            what = error.errors()[0]
            key = ".".join(map(str, what["loc"]))
            raise CorpusError(f"{path}, line {number}, key {key!r}: {what['msg']}") from error
    return rows

"""A corpus: correct kernels and their evaluations, in JSON Lines.

`generate` draws kernels for each task, evaluates them and keeps those that pass, both fast and
slow. They are variants of the problem's templates, or edits of the start kernel. A policy learns
from them how to write kernels; reinforcement learning finds out which kernels are good.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from kernel_gym.episodes.conversation import LaunchPrompt
from kernel_gym.episodes.edits import draw_edits
from kernel_gym.episodes.episode import Episode, Prompt
from kernel_gym.episodes.reply import extract_source
from kernel_gym.errors import InputError
from kernel_gym.policies.search import ScheduleSearch
from kernel_gym.records import Outcome, Record, Stage
from kernel_gym.tasks import Task, get_task
from kernel_gym.training.scoring import Scored, Scorer


class CorpusError(InputError, ValueError):
    """A corpus cannot be read or made; the message says why."""


_CHAT = TypeAdapter(list[dict[str, str]])


class CorpusRow(Record):
    """One kernel. `clock` says whether its speedups are from modelled or measured times.

    A kernel that has not been evaluated has no outcome. Datasets of `kernel-gym corpus` and of
    `kernel-gym export --format messages` are read as rows, too.
    """

    task: str
    source: str
    prompt: str = ""
    """The prompt that the reply answers; "" stands for the task's own prompt."""
    reply: str = ""
    """The reply that gives the source; "" stands for the source itself."""
    structure: str = ""
    schedule: dict[str, int] = Field(default_factory=dict)
    outcome: Outcome | None = None
    stage: Stage | None = None
    """The last stage of the evaluation."""
    clock: str = ""
    speedup: float | None = None
    unseen_speedup: float | None = None
    reward: float | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_chats(cls, data: object) -> object:
        """Takes the rows of a dataset too: a prompt and its completion, or a chat of two."""
        if not isinstance(data, dict) or not data.keys() & {"completion", "messages"}:
            return data
        sides = [data.get(key, []) for key in ("prompt", "completion", "messages")]
        chat = [message for side in sides for message in _CHAT.validate_python(side)]
        roles = [message.get("role") for message in chat]
        if roles != ["user", "assistant"]:
            raise ValueError(f"found a chat of {roles}, expected a prompt and a reply")
        prompt, reply = (message.get("content", "") for message in chat)
        row = {key: value for key, value in data.items() if key in cls.model_fields}
        return row | {"prompt": prompt, "reply": reply, "source": extract_source(reply)}


@dataclass(frozen=True)
class _Drawn:
    source: str
    schedule: dict[str, int]
    structure: str = ""
    prompt: str = ""
    reply: str = ""


def generate(
    scorer: Scorer, tasks: Sequence[str], per_task: int, seed: int, prompt: Prompt
) -> list[CorpusRow]:
    """Draws, evaluates and keeps kernels.

    Args:
        scorer: Evaluates kernels; cached results are not evaluated again.
        tasks: Task ids.
        per_task: Kernels drawn per task.
        seed: Seed of the draws.
        prompt: Writes the prompts. For a :class:`LaunchPrompt` edits are drawn, otherwise variants.

    Returns:
        The kernels that passed, by task and in the order drawn.

    Raises:
        CorpusError: A task has neither templates nor a launch to draw from.
    """
    drawn = []
    for name in tasks:
        task = get_task(name)
        if isinstance(prompt, LaunchPrompt):
            kernels, missing = _edits(task, per_task, seed, prompt), "launch with BLOCK=NUMBER"
        else:
            kernels, missing = _variants(task, per_task, seed), "templates in Triton"
        if not kernels:
            raise CorpusError(f"task {name!r} has no {missing}: give corpus.path")
        drawn += [(name, kernel) for kernel in kernels]
    scored = scorer([(task, variant.source) for task, variant in drawn], draw="corpus")
    return [
        _row(variant, result)
        for (_, variant), result in zip(drawn, scored, strict=True)
        if result.evaluation is not None and result.evaluation.outcome is Outcome.PASSED
    ]


def _variants(task: Task, count: int, seed: int) -> list[_Drawn]:
    order = ScheduleSearch(seed).order(Episode(task))[:count]
    return [_Drawn(variant.source, dict(variant.schedule), variant.structure) for variant in order]


def _edits(task: Task, count: int, seed: int, prompt: LaunchPrompt) -> list[_Drawn]:
    source = task.start_source or ""
    return [
        _Drawn(edits[0].source, e.schedule, prompt=prompt.of(task, e.start), reply=e.reply)
        for edits in draw_edits(source, count, f"{seed}/{task.id}", prompt.space)
        for e in edits
    ]


def _row(drawn: _Drawn, scored: Scored) -> CorpusRow:
    evaluation = scored.evaluation
    assert evaluation is not None
    return CorpusRow(
        task=scored.task,
        source=drawn.source,
        prompt=drawn.prompt,
        reply=drawn.reply,
        structure=drawn.structure,
        schedule=drawn.schedule,
        outcome=evaluation.outcome,
        clock=evaluation.clock,
        speedup=evaluation.speedup,
        unseen_speedup=evaluation.unseen_speedup,
        reward=scored.reward,
    )


def write_corpus(path: Path, rows: Iterable[CorpusRow]) -> None:
    """Writes a corpus, one row per line."""
    text = "".join(row.model_dump_json() + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")


def read_corpus(path: Path) -> list[CorpusRow]:
    """Reads a corpus: rows of a run, of `kernel-gym corpus`, or `messages` of `kernel-gym export`.

    Raises:
        CorpusError: The file is missing or a line is malformed.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror})") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            rows.append(CorpusRow.model_validate_json(line))
        except ValidationError as error:
            what = error.errors()[0]
            key = ".".join(map(str, what["loc"]))
            raise CorpusError(f"{path}, line {number}, key {key!r}: {what['msg']}") from error
    return rows

"""One page for each episode: conversation, submissions with changes, profile, best so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from kernel_gym.episodes.history import best_turn, speedup_bound
from kernel_gym.feedback import feedback
from kernel_gym.formatting import percent
from kernel_gym.inert import inert_text
from kernel_gym.profiles import profile_of
from kernel_gym.report.code import highlight_diff, highlight_source
from kernel_gym.report.step_plot import step_plot
from kernel_gym.storage.json_lines import read_lines
from kernel_gym.storage.run_records import AgentStart, EpisodeEnd, SubmissionTime, TurnRecord
from kernel_gym.storage.run_store import CLOCK, EPISODES, STARTS, TRANSCRIPTS, RunStore
from kernel_gym.tasks import Task, get_task

MAX_EPISODES = 200
"""A run of more episodes gets no page for each."""
MAX_CONVERSATION = 200_000
"""Most characters of each transcript on a page; the start and the end are kept."""


@dataclass(frozen=True)
class SubmissionView:
    """One submission as the page shows it."""

    record: TurnRecord
    minutes: float | None
    source: Markup
    diff: Markup
    feedback: str
    profile: list[dict[str, object]]


@dataclass(frozen=True)
class RunNotes:
    """Data that all pages of a run need, read once."""

    template: Template
    styles: Markup
    starts: tuple[AgentStart, ...]
    times: tuple[SubmissionTime, ...]
    ends: tuple[EpisodeEnd, ...]

    @classmethod
    def of(cls, store: RunStore) -> RunNotes:
        """Reads the notes of a run, and the template."""
        environment = Environment(
            loader=PackageLoader("kernel_gym.report", "."),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        return cls(
            environment.get_template("episode.html.j2"),
            Markup((Path(__file__).parent / "report.css").read_text(encoding="utf-8")),
            tuple(read_lines(store.folder / STARTS, AgentStart)),
            tuple(read_lines(store.folder / CLOCK, SubmissionTime)),
            tuple(store.ends()),
        )


def write_episodes(store: RunStore) -> list[str]:
    """Writes the page of each episode that has a submission or an end.

    Args:
        store: The run.

    Returns:
        The paths of the pages in the run folder; none for a run of very many episodes.
    """
    if len(store.config.tasks) * store.config.samples > MAX_EPISODES:
        return []
    (store.folder / EPISODES).mkdir(exist_ok=True)
    pages = []
    notes = RunNotes.of(store)
    for name in store.config.tasks:
        for sample in range(1, store.config.samples + 1):
            if store.turns(name, sample) or store.is_over(name, sample):
                path = f"{EPISODES}/{name.replace('/', '-').replace(':', '-')}-{sample}.html"
                page = _page(store, notes, get_task(name), sample)
                (store.folder / path).write_text(page, encoding="utf-8")
                pages.append(path)
    return pages


def _page(store: RunStore, notes: RunNotes, task: Task, sample: int) -> str:
    records = store.turns(task.id, sample)
    place = task.id, sample
    minutes = {t.turn: t.seconds / 60 for t in notes.times if (t.task, t.sample) == place}
    starts = [start for start in notes.starts if (start.task, start.sample) == place]
    ends = [end.reason for end in notes.ends if (end.task, end.sample) == place and end.reason]
    return notes.template.render(
        config=store.config,
        task=task,
        sample=sample,
        styles=notes.styles,
        plots=_plots(records, minutes),
        submissions=_submissions(store, task, records, minutes),
        conversation=_conversation(store, task.id, sample),
        starts=starts,
        ends=ends,
        percent=percent,
    )


def _submissions(
    store: RunStore, task: Task, records: Sequence[TurnRecord], minutes: dict[int, float]
) -> list[SubmissionView]:
    shown, before = [], task.start_source or ""
    for record in records:
        source = store.source(record)
        shown.append(
            SubmissionView(
                record,
                minutes.get(record.turn),
                highlight_source(source, task.language),
                highlight_diff(before, source) if before else Markup(),
                feedback(task, record.evaluation),
                profile_of(record.evaluation).get("kernels", []),
            )
        )
        before = source
    return shown


def _conversation(store: RunStore, task: str, sample: int) -> list[tuple[str, str]]:
    """The output of each start of a command-line agent: the name of its file and its text."""
    folder = store.folder / TRANSCRIPTS / task
    texts = []
    for path in sorted(folder.glob(f"sample_{sample}.*.txt"), key=lambda p: (len(p.name), p.name)):
        text = path.read_text(encoding="utf-8", errors="replace")
        texts.append((path.name, inert_text(text, MAX_CONVERSATION)))
    return texts


def _plots(records: Sequence[TurnRecord], minutes: dict[int, float]) -> list[Markup]:
    """The speedup of the best submission so far by submission, and by minute where it is known."""
    reached = []
    for count, record in enumerate(records, start=1):
        best = best_turn(records[:count])
        reached.append((record.turn, speedup_bound(best.evaluation) if best else 0.0))
    if not any(speedup for _, speedup in reached):
        return []
    plots = [_plot(reached, "submissions")]
    timed = [(minutes[turn], speedup) for turn, speedup in reached if turn in minutes]
    if timed:
        plots.append(_plot(timed, "minutes"))
    return plots


def _plot(points: Sequence[tuple[float, float]], label: str) -> Markup:
    says = f"best speedup by {label}"
    return Markup(step_plot(points, label, "speedup of the best so far", 1.0, says))

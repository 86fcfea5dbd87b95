"""`python -m benchmarks writer-keys`: what keys of GRPO and forms of the reward are worth.

All runs continue from one checkpoint of SFT with equal budgets, prompts and draws, and differ in
one key. GRPO sees each graph once, so every sample is the policy's reply to a graph that it was not
trained on. Samples are compared by one reward, whatever a run was paid.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.figures import BenchmarkEntry, Subject
from benchmarks.marks import filled
from benchmarks.renewal import MACHINE, NewEntry, entry_maker, store
from benchmarks.writer import estimate_entry
from kernel_gym.analysis.estimators import Estimate, paired
from kernel_gym.commands.common import note, one_line_errors
from kernel_gym.errors import InputError
from kernel_gym.executors import Executor, make_executor
from kernel_gym.records import Outcome
from kernel_gym.rewards import Context, get_reward
from kernel_gym.storage.secret import SECRET, kept_secret
from kernel_gym.training.config import TrainConfig, make_config, read_config
from kernel_gym.training.scoring import Scored, Scorer
from kernel_gym.training.train import START, Training

SUBJECT = "training-keys"
PAGE = Path("docs/training-experiments.md")
COMMAND = "python -m benchmarks writer-keys runs/writer_gpu/sft runs/keys"
CONFIG = Path("kernel_gym/training/configs/writer_gpu.toml")
GRPO = {"steps": 10, "prompts": 6, "generations": 8, "save_every": 2}
"""The budget of each run: 60 of the 96 graphs, each in one step."""
COMPARED = "kernel-opt"
"""The reward that samples are compared by."""
VARIANTS: dict[str, tuple[str, dict[str, dict[str, object]]]] = {
    "default": ("the defaults", {}),
    "scale-none": ('`grpo.scale = "none"`', {"grpo": {"scale": "none"}}),
    "kevin": ('`gym.reward = "kevin"`', {"gym": {"reward": "kevin"}}),
    "milestones": ('`gym.reward = "cuda-agent"`', {"gym": {"reward": "cuda-agent"}}),
    "binary": ('`gym.reward = "kernelbench-fast-p"`', {"gym": {"reward": "kernelbench-fast-p"}}),
}
"""The runs by name: how a table names them, and the keys that differ from the configuration."""
SAMPLES = "samples"


@dataclass(frozen=True)
class Sample:
    """One reply of one step, as all runs are compared.

    Attributes:
        task: The task id.
        right: Whether it is right on all shapes.
        reward: The reward that samples are compared by; None if the machine failed.
        paid: The reward that the run was paid; None likewise.
    """

    task: str
    right: bool
    reward: float | None
    paid: float | None


class NotingScorer(Scorer):
    """A scorer that also writes what a batch was worth, one file for each draw."""

    def __call__(
        self,
        batch: Sequence[tuple[str, str]],
        contexts: Sequence[Context] | None = None,
        *,
        draw: str,
    ) -> list[Scored]:
        """Scores a batch and writes `samples/DRAW.json` in the run's folder."""
        scored = super().__call__(batch, contexts, draw=draw)
        folder = self.ledger.parent / SAMPLES
        folder.mkdir(exist_ok=True)
        text = json.dumps([asdict(_sample(one)) for one in scored])
        (folder / f"{draw.replace(' ', '-')}.json").write_text(text + "\n", encoding="utf-8")
        return scored


def _sample(one: Scored) -> Sample:
    reward = None
    if one.evaluation is not None and one.evaluation.outcome is not Outcome.INFRA:
        reward = get_reward(COMPARED)(one.evaluation, Context().of(one.source)).value
    right = one.evaluation is not None and one.evaluation.outcome is Outcome.PASSED
    return Sample(one.task, right, reward, one.reward)


def writer_keys(
    sft: Annotated[Path, typer.Argument(help="The checkpoint that all runs continue from.")],
    out: Annotated[Path, typer.Argument(help="The folder of the runs; finished steps are kept.")],
    only: Annotated[list[str] | None, typer.Option(help="Train these runs alone.")] = None,
    machine: Annotated[str, typer.Option(help="Where they ran, a key of machines.json.")] = MACHINE,
    workers: Annotated[int, typer.Option(min=1, help="Parallel evaluations.")] = 2,
) -> None:
    """Train the runs that are not finished, and store their figures once all are there.

    With --only nothing is stored, so that runs can be trained side by side.

    Example: python -m benchmarks writer-keys runs/writer_gpu/sft runs/keys
    """
    with one_line_errors():
        if unknown := set(only or ()) - set(VARIANTS):
            raise InputError(f"--only {min(unknown)}: expected one of {', '.join(VARIANTS)}")
        for name in only or VARIANTS:
            note(f"run {name}")
            train(name, sft, out, workers)
        if only:
            return
        runs = {name: read_samples(out / name) for name in VARIANTS}
        results = figures(runs, entry_maker(SUBJECT, machine))
        store(SUBJECT, results)
        text = keys_page(PAGE.read_text(encoding="utf-8"), results)
        PAGE.write_text(text, encoding="utf-8")
    for entry in results.entries:
        typer.echo(f"{entry.metric}: {entry.value} {entry.unit} {entry.interval or ''}")


def train(name: str, sft: Path, out: Path, workers: int) -> None:
    """Trains one run by GRPO, without assessments; a run that was stopped continues."""
    config = config_of(name, out)
    folder = Path(config.out)
    gym, secret = config.gym, kept_secret(out / SECRET)
    arguments: dict[str, Any] = {"device": gym.device, "seed": gym.seed, "workers": workers}
    with make_executor(gym.executor, **arguments, secret=secret) as executor:
        training = _training(config, executor, folder.exists())
        shutil.copytree(sft, folder / START, dirs_exist_ok=True)
        try:
            training.train_grpo()
        finally:
            training.journal.close()


def _training(config: TrainConfig, executor: Executor, resume: bool) -> Training:
    training = Training(config, executor, resume, note)
    training.scorer = NotingScorer(executor, get_reward(config.gym.reward), training.folder)
    return training


def config_of(name: str, out: Path) -> TrainConfig:
    """Returns the configuration of a run."""
    data = json.loads(json.dumps(asdict(read_config(CONFIG)))) | {"out": str(out / name)}
    data["grpo"] |= GRPO | VARIANTS[name][1].get("grpo", {})
    data["gym"] |= VARIANTS[name][1].get("gym", {})
    return make_config(data)


def read_samples(run: Path) -> dict[str, list[Sample]]:
    """Returns the samples of a run by step."""
    paths = (run / SAMPLES).glob("step-*.json")
    rows = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    return {step: [Sample(**row) for row in own] for step, own in rows.items()}


def figures(runs: Mapping[str, Mapping[str, Sequence[Sample]]], new_entry: NewEntry) -> Subject:
    """Returns the figures of the second half of the steps that all runs have.

    Args:
        runs: Samples by step, by run; the first run is what the others are compared with.
        new_entry: Makes an entry of this subject.

    Raises:
        InputError: The runs have fewer than two steps in common.
    """
    steps = set.intersection(*(set(samples) for samples in runs.values()))
    order = sorted(steps, key=lambda step: int(step.rpartition("-")[2]))
    if len(order) < 2:
        raise InputError(f"the runs have {len(order)} steps in common, expected at least 2")
    late = order[len(order) // 2 :]
    groups = {name: _groups(samples, late) for name, samples in runs.items()}
    first = next(iter(groups.values()))
    count = f"steps {len(order) - len(late) + 1} to {len(order)}, {len(first)} graphs"
    entries: list[BenchmarkEntry] = []
    for name, own in groups.items():
        title = VARIANTS[name][0]
        entries += _of_run(name, f"{title}; {count}", own, first, new_entry)
    alike = [float(len({s.paid for s in group}) == 1) for group in _all_groups(runs["default"])]
    metric = "Groups of samples that were all paid the same, with the defaults"
    entries.append(_entry(new_entry, "default-alike", metric, "of groups", _mean(alike)))
    return Subject(title="Keys of GRPO (writer_gpu.toml, seed 0)", entries=tuple(entries))


def keys_page(text: str, subject: Subject) -> str:
    """Returns the page with a new table, of one row for each run.

    Args:
        text: The page as it is.
        subject: The figures.

    Raises:
        InputError: The page lacks its mark.
    """
    stored = {entry.id.removeprefix("keys-"): entry for entry in subject.entries}
    columns = ("right", "right-gain", "reward", "reward-gain")
    lines = [
        "| run | correct replies | minus the defaults | mean reward | minus the defaults |",
        "|---|---|---|---|---|",
    ]
    for name in [id.removesuffix("-right") for id in stored if id.endswith("-right")]:
        title = stored[f"{name}-right"].metric.partition(", ")[2].partition("; ")[0]
        cells = [_cell(stored.get(f"{name}-{column}")) for column in columns]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return filled(PAGE, text, SUBJECT, COMMAND, "\n".join(lines) + "\n")


def _cell(entry: BenchmarkEntry | None) -> str:
    if entry is None:
        return ""
    interval = entry.interval
    ends = f" ({interval.low:.3f} to {interval.high:.3f})" if interval else ""
    return f"{entry.value:.3f}{ends}"


def _of_run(
    name: str,
    title: str,
    own: Mapping[str, list[Sample]],
    first: Mapping[str, list[Sample]],
    new_entry: NewEntry,
) -> Iterator[BenchmarkEntry]:
    values = {"right": ("Correct samples", "of samples"), "reward": ("Mean reward", "reward")}
    for value, (metric, unit) in values.items():
        ours, theirs = (
            [_mean_of(group, value) for group in part.values()] for part in (own, first)
        )
        text = f"{metric}, {title}"
        yield _entry(new_entry, f"{name}-{value}", text, unit, _mean(ours))
        if own is not first:
            text = f"{metric}, {title}, minus the defaults"
            difference = paired(theirs, ours)
            yield _entry(new_entry, f"{name}-{value}-gain", text, "", difference, paired_tasks=True)


def _groups(
    samples: Mapping[str, Sequence[Sample]], steps: Sequence[str]
) -> dict[str, list[Sample]]:
    """Returns the samples of each graph of some steps, in the order of their names."""
    groups: dict[str, list[Sample]] = {}
    for step in steps:
        for sample in samples[step]:
            groups.setdefault(f"{step} {sample.task}", []).append(sample)
    return dict(sorted(groups.items()))


def _all_groups(samples: Mapping[str, Sequence[Sample]]) -> list[list[Sample]]:
    return list(_groups(samples, sorted(samples)).values())


def _mean_of(group: Sequence[Sample], value: str) -> float:
    known = [float(getattr(one, value)) for one in group if one.reward is not None]
    return sum(known) / len(known) if known else 0.0


def _mean(values: Sequence[float]) -> Estimate:
    return paired([0.0] * len(values), values)


def _entry(
    new_entry: NewEntry,
    name: str,
    metric: str,
    unit: str,
    estimate: Estimate,
    paired_tasks: bool = False,
) -> BenchmarkEntry:
    def named(id: str, **fields: object) -> BenchmarkEntry:
        return new_entry(id=f"keys-{id}", command=COMMAND, **fields)

    return estimate_entry(named, name, metric, unit, estimate, paired_tasks=paired_tasks)

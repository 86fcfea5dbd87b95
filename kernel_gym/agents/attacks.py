"""Plays the attacks of the exploit suite as confined agents, and looks for what they gained."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kernel_gym.agents.desk import Recorder
from kernel_gym.agents.launch import NOT_CONFINED
from kernel_gym.agents.play import AgentPlay, Manner
from kernel_gym.agents.presets import Preset
from kernel_gym.agents.process import Limits
from kernel_gym.executors import Executor
from kernel_gym.exploits.attacks import REACHED, Attack
from kernel_gym.records import Outcome
from kernel_gym.rewards import get_reward
from kernel_gym.storage.json_lines import read_lines
from kernel_gym.storage.run_records import AgentStart, RunConfig, TurnRecord
from kernel_gym.storage.run_store import CONFIG, STARTS, TRANSCRIPTS, WORKSPACES, RunStore
from kernel_gym.storage.secret import SECRET
from kernel_gym.tasks import get_task

SUBMISSIONS = 3
LIMITS = Limits(seconds=600)
"""Only a guard: no script of the suite waits, but a busy machine takes a minute to evaluate."""
REWARD = "kernel-opt"
LEFT = "kernel-gym-attack"
"""The name of what an attack leaves where others may find it."""
SHARED = ("/tmp", "/var/tmp", "/dev/shm")
HONEST = Attack(
    "an honest agent afterwards",
    get_task("triton2triton/softmax"),
    frozenset({Outcome.PASSED}),
    "nothing: the judge still works",
    "./check",
)


@dataclass(frozen=True)
class Findings:
    """Results of an attack: its records, and the rules that it broke.

    Attributes:
        attack: The attack.
        outcomes: The outcomes of its submissions and of its verdict.
        gains: What it got that it must not get, as sentences.
    """

    attack: Attack
    outcomes: tuple[str, ...]
    gains: tuple[str, ...]

    @property
    def right(self) -> bool:
        """Whether it gained nothing."""
        return not self.gains


def play_attacks(executor: Executor, attacks: Iterable[Attack]) -> Iterator[Findings]:
    """Plays each attack in a run of its own, and an honest agent after them.

    Args:
        executor: Evaluates what they submit. All of them share it.
        attacks: The attacks.
    """
    with TemporaryDirectory(prefix="kernel-gym-attacks-") as folder:
        for number, attack in enumerate((*attacks, HONEST)):
            yield play_attack(executor, attack, Path(folder) / str(number) / "run")


def play_attack(
    executor: Executor, attack: Attack, folder: Path, confined: bool = True
) -> Findings:
    """Plays an attack.

    Args:
        executor: Evaluates what it submits.
        attack: The attack.
        folder: The run folder. It must not exist.
        confined: Whether the agent is confined; without it, the attack shows what is open.
    """
    config = RunConfig(
        policy=f"agent:{attack.name}",
        suite=attack.task.id,
        tasks=(attack.task.id,),
        device=executor.device,
        reward=REWARD,
        turns=SUBMISSIONS + 1,
    )
    store = RunStore.start(folder, config, secret=executor.secret)
    before = _files(folder)
    made: list[TurnRecord] = []
    manner = Manner(Preset(command=attack.command), LIMITS, confined)
    recorder = Recorder(store, get_reward(REWARD), made.append)
    AgentPlay(recorder, executor, manner).play([attack.task])
    outcomes = tuple(str(record.evaluation.outcome) for record in made)
    gains = (*_paid(attack, made), *_changed(folder, before), *_reached(folder), *_left(folder))
    return Findings(attack, outcomes, gains)


def _paid(attack: Attack, made: list[TurnRecord]) -> Iterator[str]:
    """Records that it must not have."""
    for record in made:
        outcome = record.evaluation.outcome
        if outcome not in attack.expected:
            yield f"submission {record.turn} is {outcome}: {record.evaluation.message}"
    if not made and not attack.empty:
        yield "the kernel file was not judged"
    if len(made) > SUBMISSIONS + 1:
        yield f"it has {len(made)} records, expected at most {SUBMISSIONS + 1}"


def _files(folder: Path) -> dict[str, bytes]:
    """The files of a run that do not change while it is played."""
    return {name: (folder / name).read_bytes() for name in (SECRET, CONFIG)}


def _changed(folder: Path, before: dict[str, bytes]) -> Iterator[str]:
    """Files of the judge that it changed; the records are written again at the end of a run."""
    if _files(folder) != before:
        yield f"it changed {SECRET} or {CONFIG}"
    if RunStore(folder).unfinished():
        yield "its episode did not end"


def _reached(folder: Path) -> Iterator[str]:
    """Yields the parts of its output that it must not contain."""
    for start in read_lines(folder / STARTS, AgentStart):
        if start.status == NOT_CONFINED:
            yield f"start {start.number}: {start.reason}"
    key = json.loads((folder / SECRET).read_bytes())["secret"]
    for path in (folder / TRANSCRIPTS).rglob("*.txt"):
        text = path.read_text(encoding="utf-8", errors="replace")
        yield from (line for line in text.splitlines() if line.startswith(REACHED))
        if key in text:
            yield "it printed the secret of the run"


def _left(folder: Path) -> Iterator[str]:
    """Yields the remains of it: processes, and files that others may find."""
    place = str(folder.resolve() / WORKSPACES)
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            where = os.readlink(f"/proc/{process}/cwd")
        except OSError:
            continue  # it ended, or belongs to somebody else
        if where.startswith(place):
            yield f"its process {process} still runs"
    for shared in SHARED:
        if os.path.lexists(f"{shared}/{LEFT}"):
            yield f"it left {shared}/{LEFT}"

"""A population of kernels over any other policy: a MAP-Elites archive and a bandit of strategies.

The episodes of a task share one archive. It keeps the fastest right kernel of each cell, where a
cell is what bounds a kernel and how fast it is (Mouret and Clune, 2015, "Illuminating search spaces
by mapping elites"). Each turn takes a kernel of the archive and a strategy, and asks the other
policy to change that kernel by that strategy. Strategies are drawn by UCB1 (Auer, Cesa-Bianchi and
Fischer, 2002): the mean gain plus `sqrt(2 ln n / n_s)`, where a gain is 1 if the new kernel is
right and faster than its parent, else 0.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.episodes.history import sure_speedup
from kernel_gym.feedback import feedback
from kernel_gym.inert import fenced, inert_text
from kernel_gym.policies.base import ChatMessage, Conversation, Policy, Response, Run
from kernel_gym.policies.options import Options
from kernel_gym.policies.reflective import MAX_SOURCE
from kernel_gym.policies.registry import make_policy, register_policy
from kernel_gym.profiles import bottleneck
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.storage.json_lines import drop_cut_off
from kernel_gym.storage.run_store import POPULATION, RunStore
from kernel_gym.tasks import get_task

STRATEGIES = {
    "traffic": "Move fewer bytes: fuse passes over the data, keep values in registers or LDS.",
    "access": "Make accesses wider and contiguous: more elements a lane, aligned vectors.",
    "tiling": "Change block sizes, the mapping of programs to data, and the number of warps.",
    "latency": "Hide latency: more loads in flight, software pipelining, more waves.",
    "arithmetic": "Spend fewer instructions: cheaper formulas, matrix instructions, hoisting.",
    "launches": "Use fewer launches: one kernel instead of several, persistent programs.",
    "rewrite": "Leave this design: write another algorithm from the definition.",
}
"""The instruction that a turn may give, by name."""
BINS_PER_DOUBLING = 2
"""Cells of the archive for each doubling of the speedup."""
EXPLOIT = 0.5
"""Probability that a turn starts from the fastest kernel, and not from a random cell."""
MIN_GAIN = 1.02
"""A new kernel is faster than its parent from this factor on."""

_Key = tuple[str, int, int]
"""Task id, sample and turn."""
Cell = tuple[str, int]
"""The limit of a kernel, and the bin of its speedup."""


@dataclass(frozen=True)
class Elite:
    """A right kernel and its record."""

    source: str
    evaluation: Evaluation

    @property
    def speed(self) -> float:
        """Lower bound of its speedup on seen and unseen shapes."""
        return sure_speedup(self.evaluation)


@dataclass(frozen=True)
class Choice:
    """The request of a turn: the strategy, and the speed of the parent (0 without one)."""

    strategy: str
    parent: float


class Population(Policy):
    """Asks another policy to change kernels of an archive.

    Choices are kept in the run folder, and a resumed run builds the archive from its records.

    Args:
        policy: Writes kernels; it must read messages.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.prompt, self.sampling = policy.prompt, policy.sampling
        self.streams = policy.streams
        self.archives: dict[str, dict[Cell, Elite]] = {}
        self.tries: dict[str, int] = dict.fromkeys(STRATEGIES, 0)
        self.gains: dict[str, int] = dict.fromkeys(STRATEGIES, 0)
        self._choices: dict[_Key, Choice] = {}
        self._seen: set[_Key] = set()
        self._file: Path | None = None

    def begin(self, run: Run) -> None:
        """Reads the choices in the run folder, and the kernels of its records."""
        self.policy.begin(run)
        self._file = run.folder / POPULATION
        drop_cut_off(self._file)
        text = self._file.read_text(encoding="utf-8") if self._file.exists() else ""
        for line in text.splitlines():
            entry = json.loads(line)
            self._choices[tuple(entry["turn"])] = Choice(entry["strategy"], entry["parent"])
        store = RunStore(run.folder)
        for record in store.records():
            key = (record.task, record.sample, record.turn)
            self.absorb(key, store.source(record), record.evaluation)

    def reply(self, conversations: Sequence[Conversation], /) -> list[Response]:
        """Takes what was evaluated into the archive, then asks for all."""
        return self.policy.reply(self._asked(conversations))

    def request(self, conversations: Sequence[Conversation], /) -> list[Future[Response]]:
        """As :meth:`reply`, through the other policy's :meth:`request`."""
        return self.policy.request(self._asked(conversations))

    def _asked(self, conversations: Sequence[Conversation]) -> list[Conversation]:
        """The prompts, after what was evaluated is in the archive."""
        for chat in conversations:
            episode = chat.episode
            for number, turn in enumerate(episode.turns, start=1):
                key = (episode.task.id, episode.sample, number)
                self.absorb(key, turn.source, turn.evaluation)
        return [Conversation(chat.episode, (self._ask(chat),)) for chat in conversations]

    def absorb(self, key: _Key, source: str, evaluation: Evaluation) -> None:
        """Takes a submission into the archive and the bandit, once.

        Args:
            key: Task id, sample and turn of the submission.
            source: Its source.
            evaluation: Its record.
        """
        if key in self._seen or evaluation.outcome is Outcome.INFRA:
            return
        self._seen.add(key)
        elite = Elite(source, evaluation)
        right = evaluation.outcome is Outcome.PASSED
        if (choice := self._choices.get(key)) is not None:
            self.tries[choice.strategy] += 1
            faster = elite.speed > MIN_GAIN * choice.parent
            self.gains[choice.strategy] += int(right and faster)
        if right:
            archive = self.archives.setdefault(key[0], {})
            cell = cell_of(evaluation)
            if cell not in archive or archive[cell].speed < elite.speed:
                archive[cell] = elite

    def strategy(self) -> str:
        """The strategy with the highest upper confidence bound; untried ones first, in order."""
        total = sum(self.tries.values())

        def bound(name: str) -> float:
            tries = self.tries[name]
            if tries == 0:
                return math.inf
            return self.gains[name] / tries + math.sqrt(2 * math.log(total) / tries)

        return max(STRATEGIES, key=bound)

    def parent(self, key: _Key) -> Elite | None:
        """The kernel that a turn starts from; None while no kernel of the task is right."""
        archive = self.archives.get(key[0], {})
        if not archive:
            return None
        draw = random.Random(repr(key))
        if draw.random() < EXPLOIT:
            return max(archive.values(), key=lambda elite: elite.speed)
        return archive[draw.choice(sorted(archive))]

    def _ask(self, chat: Conversation) -> ChatMessage:
        """The prompt of a turn. Without a right kernel it is that of the task and the feedback."""
        episode = chat.episode
        key = (episode.task.id, episode.sample, len(episode.turns) + 1)
        parts = [chat.messages[0]["content"]]
        parent = self.parent(key)
        if parent is None:
            if episode.turns:
                last = episode.turns[-1]
                parts += ["The last submission:", _shown(last.source), last.feedback]
            return ChatMessage(role="user", content="\n\n".join(parts))
        name = self.strategy()
        self._keep(key, Choice(name, parent.speed))
        parts += [
            f"A right kernel, {parent.speed:.3g}x as fast as the baseline:",
            _shown(parent.source),
            feedback(get_task(episode.task.id), parent.evaluation),
            f"Write a faster one by this strategy. {STRATEGIES[name]}",
        ]
        return ChatMessage(role="user", content="\n\n".join(parts))

    def _keep(self, key: _Key, choice: Choice) -> None:
        self._choices[key] = choice
        if self._file is not None:
            entry = {"turn": key, "strategy": choice.strategy, "parent": choice.parent}
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


def cell_of(evaluation: Evaluation) -> Cell:
    """The cell of a right kernel: what bounds it, and the bin of its sure speedup."""
    speed = max(sure_speedup(evaluation), 1e-3)
    return bottleneck(evaluation) or "unknown", math.floor(BINS_PER_DOUBLING * math.log2(speed))


def _shown(source: str) -> str:
    return fenced(inert_text(source, MAX_SOURCE))


@register_policy("population")
def population(policy: str, options: Options) -> Population:
    """The population over another policy.

    Args:
        policy: The name of a policy.
        options: Options of the other policy.

    Raises:
        PolicyError: The policy is unknown.
    """
    return Population(make_policy(policy, options))

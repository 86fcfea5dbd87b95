"""A reflective agent over any other policy, after GEAK (arXiv 2507.23194).

Generator, evaluator, reflector and optimizer: each turn the policy is first asked what its last
kernel's feedback means, then for a kernel, with what has been learnt. Turns are the sequential
scaling and samples the parallel one: `--turns 10 --samples 4`, best of all. The evaluator is the
gym.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from math import sqrt
from pathlib import Path

from kernel_gym.episodes.episode import Episode, Turn
from kernel_gym.inert import fenced, inert_text, quoted
from kernel_gym.policies.base import (
    Conversation,
    Message,
    Policy,
    PolicyError,
    Reply,
    Response,
)
from kernel_gym.policies.options import Options
from kernel_gym.records import Outcome
from kernel_gym.storage.json_lines import drop_cut_off
from kernel_gym.storage.run_records import Sampling
from kernel_gym.storage.run_store import REFLECTIONS
from kernel_gym.tasks import Task, get_task, task_ids
from kernel_gym.tasks.guide import guide

MAX_SOURCE = 32_000
"""Characters of a submission in a prompt."""
_TOKEN = re.compile(r"\w+|[^\w\s]")

_Key = tuple[str, int, int]
"""Task, sample and turn."""


@dataclass(frozen=True)
class Modules:
    """What the agent is made of; each can be switched off, to see what it is worth.

    Attributes:
        knowledge: The guide of the architecture is in the prompt.
        example: One kernel of another problem is shown, the most similar one.
        reflector: The policy explains feedback to itself before it writes again.
        optimizer: Correct kernels are shown by speed, and not the last submission alone.
        debugger: A failed submission is shown, to be mended; else each try after it begins anew.
        debug_limit: Failures in a row after which an idea is given up for a new one; 0 for never.
        history: Correct kernels shown, at most.
    """

    knowledge: bool = True
    example: bool = True
    reflector: bool = True
    optimizer: bool = True
    debugger: bool = True
    debug_limit: int = 5
    history: int = 5


class Reflective:
    """Asks another policy twice a turn: to reflect, and to write.

    Reflections are kept in memory and, once :meth:`remember` has named a folder, on disk: a resumed
    run has those from before, and pays for none of them twice.

    Args:
        policy: What reflects and writes; one that reads messages.
        modules: What is switched on.
        arch: The architecture whose guide is used.
    """

    def __init__(
        self, policy: Policy, modules: Modules | None = None, arch: str = "gfx942"
    ) -> None:
        self.policy, self.modules, self.arch = policy, modules or Modules(), arch
        self.prompt = getattr(policy, "prompt", "full")
        self._reflections: dict[_Key, Reply] = {}
        self._memory: Path | None = None

    @property
    def sampling(self) -> Sampling | None:
        """How the policy's replies are drawn, where it draws any."""
        return getattr(self.policy, "sampling", None)

    @classmethod
    def over(cls, name: str, options: Options | None = None) -> Reflective:
        """The agent over the policy of that name, less the modules named before it.

        Args:
            name: A policy, or `no-MODULE,no-MODULE:` and a policy, such as `no-reflector:search`.
            options: The policy's.

        Raises:
            PolicyError: No such policy or module.
        """
        from kernel_gym.policies.make import make_policy

        switches, _, rest = name.partition(":")
        if not switches.startswith("no-"):
            return cls(make_policy(name, options))
        off = {word.removeprefix("no-"): False for word in switches.split(",")}
        known = [f.name for f in fields(Modules) if isinstance(f.default, bool)]
        for word in off:
            if word not in known:
                raise PolicyError(f"policy 'reflective': no module {word!r}; {', '.join(known)}")
        return cls(make_policy(rest, options), replace(Modules(), **off))

    def remember(self, folder: Path) -> None:
        """Reads the reflections of a run, and keeps those to come there.

        Args:
            folder: The run folder. A line that was cut off by a crash is reflected upon again.
        """
        self._memory = folder / REFLECTIONS
        drop_cut_off(self._memory)
        text = self._memory.read_text(encoding="utf-8") if self._memory.exists() else ""
        for line in text.splitlines():
            found = json.loads(line)
            self._reflections[tuple(found["turn"])] = Reply(**found["reply"])

    def reply(self, conversations: Sequence[Conversation]) -> list[Response]:
        """Reflects on all that have a turn behind them, then writes for all."""
        spent = self._reflect([chat for chat in conversations if chat.episode.turns])
        asked = [Conversation(chat.episode, (_user(self.ask(chat)),)) for chat in conversations]
        replies = self.policy.reply(asked)
        return [
            _and(reply, spent.get(_key(chat.episode))) if isinstance(reply, Reply) else reply
            for chat, reply in zip(conversations, replies, strict=True)
        ]

    def _reflect(self, conversations: Sequence[Conversation]) -> dict[_Key, Reply]:
        """The reflection on the last turn of each, whether it is new or not."""
        if not self.modules.reflector:
            return {}
        episodes = {_key(chat.episode): chat.episode for chat in conversations}
        new = {key: e for key, e in episodes.items() if key not in self._reflections}
        asked = [Conversation(e, (_user(_question(e)),)) for e in new.values()]
        replies = self.policy.reply(asked) if asked else []
        for key, reply in zip(new, replies, strict=True):
            if isinstance(reply, Reply):
                self._keep(key, reply)
        return {key: self._reflections[key] for key in episodes if key in self._reflections}

    def _keep(self, key: _Key, reply: Reply) -> None:
        self._reflections[key] = reply
        if self._memory is not None:
            with self._memory.open("a", encoding="utf-8") as memory:
                memory.write(json.dumps({"turn": key, "reply": asdict(reply)}) + "\n")

    def ask(self, chat: Conversation) -> str:
        """What the policy is asked to write: the task, what helps, and what has been tried."""
        episode = chat.episode
        parts = [self._task(chat)]
        idea = self._idea(episode)
        if self.modules.example:
            parts.append(_example(episode.task, _query(episode.task, idea)))
        right = sorted(filter(_right, episode.turns), key=_speed, reverse=True)
        if self.modules.optimizer and right:
            shown = right[: self.modules.history]
            parts.append("Correct kernels so far, the fastest first.")
            parts += [self._told(episode, turn) for turn in shown]
            parts.append("Find what limits the fastest, and write one that is faster still.")
        if idea and not (self.modules.optimizer and _right(idea[-1])):
            parts += ["The last submission:", self._told(episode, idea[-1])]
        elif episode.turns and not idea and self.modules.debugger:
            parts.append("The last idea failed too often. Leave it, and begin with another one.")
        return "\n\n".join(part for part in parts if part)

    def _task(self, chat: Conversation) -> str:
        """The prompt, with the guide of the architecture or without."""
        text, known = chat.messages[0]["content"], guide(self.arch, chat.episode.task.language)
        if not self.modules.knowledge:
            return text.replace(known, "") if known else text
        return text if known in text else f"{text}\n\n{known}"

    def _idea(self, episode: Episode) -> tuple[Turn, ...]:
        """The turns on the present idea: none once it has failed as often as it may."""
        if not self.modules.debugger and episode.turns and not _right(episode.turns[-1]):
            return ()
        first = failures = 0
        for number, turn in enumerate(episode.turns, start=1):
            failures = 0 if _right(turn) else failures + 1
            if failures and failures == self.modules.debug_limit:
                first, failures = number, 0
        return episode.turns[first:]

    def _told(self, episode: Episode, turn: Turn) -> str:
        """A submission, its speed, what came of it and what was thought of it."""
        number = episode.turns.index(turn) + 1
        kept = self._reflections.get((episode.task.id, episode.sample, number))
        thought = kept.text.strip() if kept else ""
        speed = f"Speedup {_speed(turn):.3g}x.\n" if _right(turn) else ""
        said = f"{speed}{_shown(turn.source)}\n{turn.feedback}"
        return f"{said}\nReflection:\n{quoted(thought)}" if thought else said


def _question(episode: Episode) -> str:
    """What the reflector is asked about the last turn."""
    turn = episode.turns[-1]
    what = (
        "It is correct. Say in a few sentences what its strategy is, what limits its speed, and "
        "what to change next."
        if _right(turn)
        else "It failed. Say in a few sentences why, and what has to change."
    )
    return f"A kernel for {episode.task.id}:\n{_shown(turn.source)}\n{turn.feedback}\n\n{what}"


def _shown(source: str) -> str:
    """A submission as a prompt may hold it."""
    return fenced(inert_text(source, MAX_SOURCE))


def _query(task: Task, idea: Sequence[Turn]) -> str:
    return idea[-1].source if idea else task.start_source or task.reference_source


def _example(task: Task, query: str) -> str:
    found = nearest(task, query)
    return f"A kernel for another problem, as an example:\n```\n{found}\n```" if found else ""


def nearest(task: Task, query: str) -> str:
    """The kernel of another problem, in the task's language, whose code is most like the query.

    Likeness is the cosine of the counts of tokens. The task's own problem is left out: its kernel
    is what a policy is to find, unless the task shows it.
    """
    asked = Counter(_TOKEN.findall(query))
    return max(
        (source for name, source in _kernels(task.language) if name != task.problem.name),
        key=lambda source: _likeness(asked, Counter(_TOKEN.findall(source))),
        default="",
    )


@lru_cache
def _kernels(language: str) -> tuple[tuple[str, str], ...]:
    """Each problem's name and kernel, of those that have one."""
    problems = {task.problem.name: task.problem for task in map(get_task, task_ids())}
    found = [(name, problem.kernel(language)) for name, problem in problems.items()]
    return tuple((name, source) for name, source in found if source)


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    product = sum(count * other[token] for token, count in one.items())
    lengths = sum(c * c for c in one.values()) * sum(c * c for c in other.values())
    return product / sqrt(lengths) if lengths else 0.0


def _right(turn: Turn) -> bool:
    return turn.evaluation.outcome is Outcome.PASSED


def _speed(turn: Turn) -> float:
    return turn.evaluation.speedup or 0.0


def _key(episode: Episode) -> _Key:
    """Which turn was the last of which episode."""
    return episode.task.id, episode.sample, len(episode.turns)


def _user(text: str) -> Message:
    return Message(role="user", content=text)


def _and(reply: Reply, reflection: Reply | None) -> Reply:
    """A reply that also carries what the reflection cost."""
    if reflection is None:
        return reply
    return replace(
        reply,
        prompt_tokens=reply.prompt_tokens + reflection.prompt_tokens,
        completion_tokens=reply.completion_tokens + reflection.completion_tokens,
        cost=reply.cost + reflection.cost,
    )

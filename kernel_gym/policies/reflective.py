"""A reflective agent over any other policy, after GEAK (arXiv 2507.23194).

It has a generator, an evaluator (the gym), a reflector and an optimizer. In each turn the policy
first explains the feedback on its last kernel, then writes a kernel with that explanation in its
prompt. Turns scale the search sequentially and samples in parallel: `--turns 10 --samples 4`.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from math import sqrt
from pathlib import Path

from kernel_gym.episodes.episode import Episode, Turn
from kernel_gym.episodes.history import passed, rank
from kernel_gym.feedback import feedback
from kernel_gym.inert import fenced, inert_text, quoted
from kernel_gym.policies.base import (
    ChatMessage,
    Conversation,
    Policy,
    PolicyError,
    Reply,
    Response,
    Run,
    answered,
)
from kernel_gym.policies.options import Options
from kernel_gym.policies.pace import chained
from kernel_gym.policies.registry import make_policy, register_policy
from kernel_gym.storage.json_lines import drop_cut_off
from kernel_gym.storage.run_store import REFLECTIONS
from kernel_gym.tasks import Task, get_task, task_ids
from kernel_gym.tasks.guide import topics_of, whole_guide

MAX_SOURCE = 32_000
"""Most characters of a submission in a prompt."""
_TOKEN = re.compile(r"\w+|[^\w\s]")

_Key = tuple[str, int, int]
"""Task id, sample and turn."""


@dataclass(frozen=True)
class Modules:
    """The parts of the agent. Each can be switched off to measure its effect.

    Attributes:
        knowledge: The prompt has the guide of the architecture.
        example: The prompt shows the most similar kernel of another problem.
        reflector: The policy explains the feedback before it writes again.
        optimizer: The prompt shows the correct kernels by speed, not only the last submission.
        debugger: The prompt shows a failed submission to be fixed; otherwise the next turn starts
            without it.
        profile: Feedback has the profile: compiled kernels, stalls, hottest lines and advice.
        debug_limit: Failures in a row after which the policy must try another idea; 0 for no limit.
        history: Most correct kernels in the prompt.
    """

    knowledge: bool = True
    example: bool = True
    reflector: bool = True
    optimizer: bool = True
    debugger: bool = True
    profile: bool = True
    debug_limit: int = 5
    history: int = 5


class Reflective(Policy):
    """Asks another policy twice in each turn: for a reflection, then for a kernel.

    After :meth:`begin` reflections are also kept on disk, so that a resumed run does not pay for
    them again.

    Args:
        policy: Writes reflections and kernels; it must read messages.
        modules: The parts that are switched on.
        arch: The architecture whose guide is used until :meth:`begin` names the device's.
    """

    def __init__(
        self, policy: Policy, modules: Modules | None = None, arch: str = "gfx942"
    ) -> None:
        self.policy, self.modules, self.arch = policy, modules or Modules(), arch
        self.prompt, self.sampling = policy.prompt, policy.sampling
        self.streams, self._lock = policy.streams, threading.Lock()
        self._reflections: dict[_Key, Reply] = {}
        self._memory: Path | None = None

    def begin(self, run: Run) -> None:
        """Reads the reflections in the run folder, and keeps new ones there.

        Args:
            run: The run. A reflection that a crash cut off is made again.
        """
        self.policy.begin(run)
        self.arch = run.arch
        self._memory = run.folder / REFLECTIONS
        drop_cut_off(self._memory)
        text = self._memory.read_text(encoding="utf-8") if self._memory.exists() else ""
        for line in text.splitlines():
            reflection = json.loads(line)
            self._reflections[tuple(reflection["turn"])] = Reply(**reflection["reply"])

    def reply(self, conversations: Sequence[Conversation], /) -> list[Response]:
        """Reflects on the last turn of each conversation that has one, then writes for all."""
        spent = self._reflect([chat for chat in conversations if chat.episode.turns])
        asked = [Conversation(chat.episode, (_user(self.ask(chat)),)) for chat in conversations]
        replies = self.policy.reply(asked)
        return [
            _with_cost(reply, spent.get(_key(chat.episode))) if isinstance(reply, Reply) else reply
            for chat, reply in zip(conversations, replies, strict=True)
        ]

    def request(self, conversations: Sequence[Conversation], /) -> list[Future[Response]]:
        """As :meth:`reply`; no conversation waits for another one if the other policy streams."""
        if not self.policy.streams:
            return super().request(conversations)
        return [self._request(chat) for chat in conversations]

    def _request(self, chat: Conversation) -> Future[Response]:
        """Reflects on the last turn of a conversation, if it has one, then writes."""
        key = _key(chat.episode)
        if not (self.modules.reflector and chat.episode.turns) or key in self._reflections:
            return self._write(chat)
        question = Conversation(chat.episode, (_user(self._question(chat.episode)),))

        def go_on(reflection: Response) -> Future[Response]:
            if isinstance(reflection, Reply):
                self._keep(key, reflection)
            return self._write(chat)

        return chained(self.policy.request([question])[0], go_on)

    def _write(self, chat: Conversation) -> Future[Response]:
        """Asks for a kernel; the reply has the cost of the reflection before it."""
        spent = self._reflections.get(_key(chat.episode)) if self.modules.reflector else None
        asked = Conversation(chat.episode, (_user(self.ask(chat)),))

        def add(reply: Response) -> Future[Response]:
            return answered(_with_cost(reply, spent) if isinstance(reply, Reply) else reply)

        return chained(self.policy.request([asked])[0], add)

    def _reflect(self, conversations: Sequence[Conversation]) -> dict[_Key, Reply]:
        """The reflection on the last turn of each conversation, new or known."""
        if not self.modules.reflector:
            return {}
        episodes = {_key(chat.episode): chat.episode for chat in conversations}
        new = {key: e for key, e in episodes.items() if key not in self._reflections}
        asked = [Conversation(e, (_user(self._question(e)),)) for e in new.values()]
        replies = self.policy.reply(asked) if asked else []
        for key, reply in zip(new, replies, strict=True):
            if isinstance(reply, Reply):
                self._keep(key, reply)
        return {key: self._reflections[key] for key in episodes if key in self._reflections}

    def _keep(self, key: _Key, reply: Reply) -> None:
        reply = replace(reply, tokens=None)  # those of its kernel count
        self._reflections[key] = reply
        if self._memory is not None:
            with self._lock, self._memory.open("a", encoding="utf-8") as memory:
                memory.write(json.dumps({"turn": key, "reply": asdict(reply)}) + "\n")

    def ask(self, chat: Conversation) -> str:
        """The prompt for a kernel: the task, what helps, and what has been tried."""
        episode = chat.episode
        parts = [self._task(chat)]
        idea = self._idea(episode)
        if self.modules.example:
            parts.append(_example(episode.task, _query(episode.task, idea)))
        right = sorted(filter(passed, episode.turns), key=rank, reverse=True)
        if self.modules.optimizer and right:
            shown = right[: self.modules.history]
            parts.append("Correct kernels so far, the best first.")
            parts += [self._described(episode, turn) for turn in shown]
            parts.append("Find what limits the best one, and write one that is faster still.")
        if idea and not (self.modules.optimizer and passed(idea[-1])):
            parts += ["The last submission:", self._described(episode, idea[-1])]
        elif episode.turns and not idea and self.modules.debugger:
            parts.append("The last idea failed too often. Leave it, and begin with another one.")
        return "\n\n".join(part for part in parts if part)

    def _task(self, chat: Conversation) -> str:
        """The prompt of the task, with or without the guide of the architecture."""
        task = chat.episode.task
        text = chat.messages[0]["content"]
        known = whole_guide(self.arch, task.written_in, topics_of(task.problem))
        if not self.modules.knowledge:
            return text.replace(known, "") if known else text
        return text if known in text else f"{text}\n\n{known}"

    def _idea(self, episode: Episode) -> tuple[Turn, ...]:
        """The turns on the current idea; none if it has failed too often."""
        if not self.modules.debugger and episode.turns and not passed(episode.turns[-1]):
            return ()
        first = failures = 0
        for number, turn in enumerate(episode.turns, start=1):
            failures = 0 if passed(turn) else failures + 1
            if failures and failures == self.modules.debug_limit:
                first, failures = number, 0
        return episode.turns[first:]

    def _question(self, episode: Episode) -> str:
        """The prompt for a reflection on the last turn."""
        turn = episode.turns[-1]
        what = (
            "It is correct. Say in a few sentences what its strategy is, what limits its speed, "
            "and what to change next."
            if passed(turn)
            else "It failed. Say in a few sentences why, and what has to change."
        )
        text = f"{_shown(turn.source)}\n{self._feedback(episode.task, turn)}"
        return f"A kernel for {episode.task.id}:\n{text}\n\n{what}"

    def _feedback(self, task: Task, turn: Turn) -> str:
        """The feedback on a turn, with or without the profile and the advice from it."""
        if self.modules.profile:
            return turn.feedback
        bare = turn.evaluation.model_copy(update={"kernels": ()})
        return feedback(task, bare).partition("\n\nNext:\n")[0]

    def _described(self, episode: Episode, turn: Turn) -> str:
        """A submission with its speedup, its feedback and the reflection on it."""
        number = episode.turns.index(turn) + 1
        reflection = self._reflections.get((episode.task.id, episode.sample, number))
        thought = reflection.text.strip() if reflection else ""
        speed = f"Speedup {turn.evaluation.speedup or 0.0:.3g}x.\n" if passed(turn) else ""
        text = f"{speed}{_shown(turn.source)}\n{self._feedback(episode.task, turn)}"
        return f"{text}\nReflection:\n{quoted(thought)}" if thought else text


@register_policy("reflective")
def reflective(policy: str, options: Options) -> Reflective:
    """The agent over another policy, with some modules switched off.

    Args:
        policy: The name of a policy, or `no-MODULE,no-MODULE:` and the name, such as
            `no-reflector:search`.
        options: Options of the other policy.

    Raises:
        PolicyError: The policy or a module is unknown.
    """
    switches, _, name = policy.partition(":")
    if not switches.startswith("no-"):
        return Reflective(make_policy(policy, options))
    off = {word.removeprefix("no-"): False for word in switches.split(",")}
    known = [f.name for f in fields(Modules) if isinstance(f.default, bool)]
    for word in off:
        if word not in known:
            raise PolicyError(f"policy 'reflective': no module {word!r}; {', '.join(known)}")
    return Reflective(make_policy(name, options), replace(Modules(), **off))


def _shown(source: str) -> str:
    """A submission in the form that is safe in a prompt."""
    return fenced(inert_text(source, MAX_SOURCE))


def _query(task: Task, idea: Sequence[Turn]) -> str:
    return idea[-1].source if idea else task.start_source or task.reference_source


def _example(task: Task, query: str) -> str:
    kernel = nearest(task, query)
    return f"A kernel for another problem, as an example:\n```\n{kernel}\n```" if kernel else ""


def nearest(task: Task, query: str) -> str:
    """The kernel of another problem in the task's language that is most similar to the query.

    The similarity is the cosine of the token counts. The task's own problem is excluded, since its
    kernel is what the policy has to write.
    """
    wanted = Counter(_TOKEN.findall(query))
    return max(
        (source for name, source in _kernels(task.written_in) if name != task.problem.name),
        key=lambda source: _similarity(wanted, Counter(_TOKEN.findall(source))),
        default="",
    )


@lru_cache
def _kernels(language: str) -> tuple[tuple[str, str], ...]:
    """The name and kernel of each problem that has a kernel in a language."""
    problems = {task.problem.name: task.problem for task in map(get_task, task_ids())}
    kernels = [(name, problem.kernel(language)) for name, problem in problems.items()]
    return tuple((name, source) for name, source in kernels if source)


def _similarity(tokens: Counter[str], other: Counter[str]) -> float:
    product = sum(count * other[token] for token, count in tokens.items())
    lengths = sum(c * c for c in tokens.values()) * sum(c * c for c in other.values())
    return product / sqrt(lengths) if lengths else 0.0


def _key(episode: Episode) -> _Key:
    """The key of the last turn of an episode."""
    return episode.task.id, episode.sample, len(episode.turns)


def _user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def _with_cost(reply: Reply, reflection: Reply | None) -> Reply:
    """A reply with the tokens and cost of the reflection added to its own."""
    if reflection is None:
        return reply
    return replace(
        reply,
        prompt_tokens=reply.prompt_tokens + reflection.prompt_tokens,
        completion_tokens=reply.completion_tokens + reflection.completion_tokens,
        cost=reply.cost + reflection.cost,
    )

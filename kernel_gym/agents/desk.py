"""The desk: takes the submissions of one agent on one task, within a budget.

The desk is on the judge's side. It evaluates each source, writes it to a run folder and answers
with the feedback of the policy. An agent reaches it through a socket, a service or MCP and never
holds the budget or a verdict itself.

An episode has `submissions + 1` turns: those of the agent, and the verdict, which evaluates the
file that the agent leaves behind.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from kernel_gym.episodes.episode import Episode
from kernel_gym.episodes.history import speedup_bound
from kernel_gym.episodes.session import turn_seed
from kernel_gym.judge.protocol import MAX_SOURCE_BYTES
from kernel_gym.policies.base import Reply
from kernel_gym.policies.recording import record_turn, recorded_episode
from kernel_gym.profiles import profile_of
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.rewards import Reward
from kernel_gym.storage.run_records import TurnRecord
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import Task

Answer = dict[str, object]
"""The answer to a request of an agent, as JSON. `error` is "" unless the request was refused."""


class Pool(Protocol):
    """Anything that evaluates submissions in the background."""

    def submit(self, task_id: str, source: str, seed: int | None, /) -> Future[Evaluation]:
        """Queues one evaluation, with a seed of its own unless that is None."""
        ...


class Recorder:
    """Writes turns to a store from several threads.

    Args:
        store: The run.
        reward: Scores evaluations.
        on_turn: Called with each new turn.
    """

    def __init__(
        self, store: RunStore, reward: Reward, on_turn: Callable[[TurnRecord], None] | None = None
    ) -> None:
        self.store, self.reward = store, reward
        self._on_turn = on_turn or (lambda record: None)
        self.lock = threading.Lock()
        """Held while the store is read or written."""

    def record(self, episode: Episode, reply: Reply, evaluation: Evaluation) -> Episode:
        """Writes a turn and returns the longer episode."""
        with self.lock:
            record, longer = record_turn(self.store, self.reward, episode, reply, evaluation)
            self._on_turn(record)
        return longer


class Desk:
    """Takes the submissions of one episode. Threads may share it; it evaluates one at a time.

    Args:
        task: The task.
        recorder: Writes the turns. The run has one turn more than the agent has submissions.
        pool: Evaluates sources.
        sample: The number of the episode among those of its task, from 1.
        on_record: Called with the number of each turn when it is recorded.
    """

    def __init__(
        self,
        task: Task,
        recorder: Recorder,
        pool: Pool,
        sample: int = 1,
        on_record: Callable[[int], None] = lambda turn: None,
    ) -> None:
        self.task, self.sample, self._on_record = task, sample, on_record
        self._recorder, self._pool = recorder, pool
        self._lock = threading.Lock()
        self._closed = False
        self._judged, self._judging_since = 0.0, 0.0
        with recorder.lock:
            self.episode = recorded_episode(recorder.store, task, sample)
        self.budget = recorder.store.config.turns - 1
        """Submissions that the agent has in all."""

    @property
    def left(self) -> int:
        """Submissions that the agent has left."""
        return 0 if self._closed else max(0, self.budget - len(self.episode.turns))

    @property
    def judging_seconds(self) -> float:
        """Seconds in which the judge worked or waited for a worker, the current one included."""
        since = self._judging_since
        return self._judged + (time.monotonic() - since if since else 0.0)

    def show(self) -> Answer:
        """The task's name and what is left."""
        return {"error": "", "task": self.task.id, "language": self.task.written_in} | self._state()

    def submit(self, source: object) -> Answer:
        """Evaluates a source. A source that was submitted before gets its earlier answer.

        Args:
            source: Any value from the agent; all but a text of legal length is refused.
        """
        problem = source_problem(source)
        if problem or not isinstance(source, str):
            return self._refusal(problem)
        with self._lock:
            known = self._number(source)
            if known is not None:
                return self._answer(known)
            if self.left < 1:
                why = "the episode is over" if self._closed else "the budget is used up"
                return self._refusal(
                    f"{why}: {len(self.episode.turns)} of {self.budget} submissions were made"
                )
            self._evaluate(source, "")
            return self._answer(len(self.episode.turns) - 1)

    def profile(self, source: object) -> Answer:
        """The profile of a source as data. A source that is new costs a submission."""
        answer = self.submit(source)
        if answer["error"]:
            return answer
        number = answer["submission"]
        assert isinstance(number, int)
        return self._state() | {
            "error": "",
            "submission": number,
            "outcome": answer["outcome"],
            "profile": profile_of(self.episode.turns[number - 1].evaluation),
        }

    def last(self) -> Answer:
        """The answer to the last submission, as soon as it is evaluated."""
        with self._lock:
            if not self.episode.turns:
                return self._refusal("nothing was submitted")
            return self._answer(len(self.episode.turns) - 1)

    def best(self) -> Answer:
        """The best right submission so far, with its source."""
        best = self.episode.best
        if best is None:
            return self._state() | {"error": "", "source": "", "best_speedup": 0.0}
        return self._state() | {"error": "", "source": best.source}

    def verdict(self, source: str | None, problem: str = "") -> Evaluation | None:
        """Ends the episode: evaluates the file that the agent leaves behind.

        Args:
            source: The content of the file; None if there is none.
            problem: Why there is none, or what else went wrong.

        Returns:
            The record of the fresh evaluation; None without a source.
        """
        with self._lock:
            self._closed = True
            if source is None:
                reason = problem or "no kernel file was left"
                with self._recorder.lock:
                    self._recorder.store.end(self.task.id, self.sample, reason)
                return None
            evaluation = self._evaluate(source, problem)
            if len(self.episode.turns) <= self.budget:
                with self._recorder.lock:
                    self._recorder.store.end(self.task.id, self.sample, problem)
            return evaluation

    def close(self) -> None:
        """Refuses further submissions, after the one that runs."""
        self._closed = True

    def _evaluate(self, source: str, problem: str) -> Evaluation:
        seed = self._recorder.store.config.seed
        if seed is not None:
            seed = turn_seed(seed, len(self.episode.turns))
        self._judging_since = started = time.monotonic()
        try:
            evaluation = self._pool.submit(self.task.id, source, seed).result()
        finally:
            self._judging_since = 0.0
            self._judged += time.monotonic() - started
        reply = Reply("", source, problem=problem)
        self.episode = self._recorder.record(self.episode, reply, evaluation)
        with self._recorder.lock:
            self._on_record(len(self.episode.turns))
        return evaluation

    def _number(self, source: str) -> int | None:
        """The place of an earlier submission of a source that the machine did not fail on."""
        for number, turn in enumerate(self.episode.turns):
            if turn.source == source and turn.evaluation.outcome is not Outcome.INFRA:
                return number
        return None

    def _answer(self, number: int) -> Answer:
        turn = self.episode.turns[number]
        return self._state() | {
            "error": "",
            "submission": number + 1,
            "outcome": str(turn.evaluation.outcome),
            "passed": turn.evaluation.outcome is Outcome.PASSED,
            "reward": turn.reward.value,
            "speedup": speedup_bound(turn.evaluation),
            "feedback": turn.feedback,
            "profile": profile_of(turn.evaluation),
        }

    def _refusal(self, error: str) -> Answer:
        return self._state() | {"error": error}

    def _state(self) -> Answer:
        best = self.episode.best
        return {
            "submissions": self.budget,
            "left": self.left,
            "best_speedup": speedup_bound(best.evaluation) if best else 0.0,
        }


def source_problem(source: object) -> str:
    """Returns the objection to a source of an agent, or "" if there is none."""
    if not isinstance(source, str):
        return f"found a source of type {type(source).__name__}, expected text"
    try:
        size = len(source.encode("utf-8"))
    except UnicodeEncodeError:
        return "found a lone surrogate in the source, expected UTF-8"
    if size > MAX_SOURCE_BYTES:
        return f"found a source of {size} bytes, expected at most {MAX_SOURCE_BYTES}"
    return ""

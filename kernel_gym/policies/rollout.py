"""Plays a policy: the turns of an episode in sequence, many episodes in parallel.

The policy answers all waiting episodes in one call, while evaluations run in the background.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Protocol

from kernel_gym.episodes.chat import converse
from kernel_gym.episodes.episode import Episode, Prompt
from kernel_gym.policies.base import Conversation, Policy, Reply, Run, Scripted
from kernel_gym.policies.recording import record_turn, recorded_episode
from kernel_gym.records import Evaluation
from kernel_gym.rewards import Reward
from kernel_gym.storage.run_store import RunStore, TurnRecord
from kernel_gym.tasks import Task

REPLIES_AHEAD = 64
"""Most replies asked for in one call if the pool has less room. A model writes a large batch
faster than many small ones, but a killed run loses the replies that were not evaluated."""


class SubmissionPool(Protocol):
    """Anything that evaluates submissions in the background."""

    room: int
    """Number of submissions that it holds before :meth:`submit` blocks."""

    def submit(self, task_id: str, source: str, /) -> Future[Evaluation]:
        """Queues one evaluation."""
        ...


class Rollout:
    """Plays a policy on tasks through a pool and writes every turn to a store.

    Turns that the store has already are not played again. Each result is on disk before the next
    one is awaited, so that an interrupted or killed run can be resumed and loses only the work in
    progress.

    Args:
        policy: The policy.
        pool: Evaluates submissions.
        reward: Scores evaluations.
        store: Receives the turns. Its configuration has the turns of an episode and the episodes
            of a task.
        on_turn: Called with each new turn.
        on_end: Called at the end of each episode with its task and its number of turns.
        prompt: Writes the first message of each conversation; without it, conversations have no
            messages.
    """

    def __init__(
        self,
        policy: Policy,
        pool: SubmissionPool,
        reward: Reward,
        store: RunStore,
        on_turn: Callable[[TurnRecord], None] = lambda record: None,
        on_end: Callable[[Task, int], None] = lambda task, turns: None,
        prompt: Prompt | None = None,
    ) -> None:
        self.prompt = prompt
        self.policy, self.pool, self.reward, self.store = policy, pool, reward, store
        self.on_turn, self.on_end = on_turn, on_end
        self._waiting: deque[Episode] = deque()
        self._ready: deque[tuple[Episode, Reply]] = deque()
        self._pending: dict[Future[Evaluation], tuple[Episode, Reply]] = {}
        self._finished: SimpleQueue[Future[Evaluation]] = SimpleQueue()

    def play(self, tasks: Iterable[Task]) -> None:
        """Plays all episodes of all tasks.

        Args:
            tasks: Tasks that the run's configuration names.
        """
        samples = range(1, self.store.config.samples + 1)
        self.policy.begin(Run(self.store.folder, self.store.config.device))
        try:
            self._waiting.extend(self._unfinished(tasks, samples))
            while self._waiting or self._ready or self._pending:
                if len(self._ready) < self.pool.room:
                    self._ask()
                self._submit()
                if self._pending:
                    self._take()
        finally:
            self.store.finish()

    def _ask(self) -> None:
        """Asks the policy for the next turn of waiting episodes; ends those that are over."""
        most = max(self.pool.room, REPLIES_AHEAD)
        going: list[Episode] = []
        while self._waiting and len(going) < most:
            episode = self._waiting.popleft()
            if len(episode.turns) < self.store.config.turns:
                going.append(episode)
            else:
                self.on_end(episode.task, len(episode.turns))
        replies = self.policy.reply([self._converse(e) for e in going]) if going else []
        for episode, reply in zip(going, replies, strict=True):
            if isinstance(reply, Reply):
                self._ready.append((episode, reply))
            else:
                reason = reply.reason if reply else ""
                self.store.end(episode.task.id, episode.sample, reason)
                self.on_end(episode.task, len(episode.turns))

    def _submit(self) -> None:
        """Submits as many replies as the pool takes without blocking."""
        while self._ready and len(self._pending) < self.pool.room:
            episode, reply = self._ready.popleft()
            future = self.pool.submit(episode.task.id, reply.source)
            self._pending[future] = (episode, reply)
            future.add_done_callback(self._finished.put)

    def _take(self) -> None:
        """Waits for a result, and records it and all other results that are ready."""
        episodes = [self._next()]
        while not self._finished.empty():
            episodes.append(self._next())
        self._waiting.extendleft(reversed(episodes))  # finish episodes before new ones start

    def _next(self) -> Episode:
        future = self._finished.get()
        episode, reply = self._pending.pop(future)
        record, longer = record_turn(self.store, self.reward, episode, reply, future.result())
        self.on_turn(record)
        return longer

    def _converse(self, episode: Episode) -> Conversation:
        if self.prompt is None or isinstance(self.policy, Scripted):
            return Conversation(episode)
        return converse(episode, self.prompt)

    def _unfinished(self, tasks: Iterable[Task], samples: range) -> Iterator[Episode]:
        """The episodes that are not over, with the turns that the store has."""
        for task in tasks:
            for sample in samples:
                if self.store.is_over(task.id, sample):
                    self.on_end(task, len(self.store.turns(task.id, sample)))
                else:
                    yield recorded_episode(self.store, task, sample)

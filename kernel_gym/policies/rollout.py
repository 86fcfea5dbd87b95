"""Plays a policy: the turns of an episode in sequence, many episodes in parallel.

Replies are evaluated as they come, and each episode continues as soon as its own turn has ended.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from kernel_gym.episodes.chat import converse
from kernel_gym.episodes.episode import Episode, Prompt
from kernel_gym.policies.base import Conversation, Policy, Reply, Response, Run, Scripted
from kernel_gym.policies.kept_replies import KeptReplies
from kernel_gym.policies.recording import record_turn, recorded_episode
from kernel_gym.records import Evaluation
from kernel_gym.rewards import Reward
from kernel_gym.storage.run_records import TurnRecord
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import Task

log = logging.getLogger(__name__)
REPLIES_AHEAD = 64
"""Most replies asked for ahead if the pool has less room. A model writes a large batch faster than
many small ones."""
MAX_SILENT_SECONDS = 60.0
"""Seconds that a reply may take before a line says so, and seconds between two such lines."""


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
    one is awaited, and so is each reply of a model, so that an interrupted or killed run can be
    resumed and pays for no reply twice.

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
        self._asked: dict[Future[Response], tuple[Episode, float]] = {}
        self._ready: deque[tuple[Episode, Reply]] = deque()
        self._pending: dict[Future[Evaluation], tuple[Episode, Reply]] = {}
        self._finished: SimpleQueue[Future[Any]] = SimpleQueue()
        self._noted = 0.0

    def play(self, tasks: Iterable[Task]) -> None:
        """Plays all episodes of all tasks.

        Args:
            tasks: Tasks that the run's configuration names.
        """
        samples = range(1, self.store.config.samples + 1)
        self._kept = KeptReplies(self.store.folder)
        self.policy.begin(Run(self.store.folder, self.store.config.device))
        try:
            self._waiting.extend(self._unfinished(tasks, samples))
            while self._waiting or self._asked or self._ready or self._pending:
                if len(self._ready) < self.pool.room:
                    self._ask()
                self._submit()
                if self._asked or self._pending:
                    self._take()
            self._kept.clear()
        finally:
            for future in self._asked:
                future.cancel()
            self.store.finish()

    def _ask(self) -> None:
        """Asks the policy for the next turn of waiting episodes; ends those that are over."""
        most = max(self.pool.room, REPLIES_AHEAD) - len(self._asked) - len(self._ready)
        going: list[Episode] = []
        while self._waiting and len(going) < most:
            episode = self._waiting.popleft()
            if len(episode.turns) >= self.store.config.turns:
                self.on_end(episode.task, len(episode.turns))
            elif reply := self._kept.take(episode):
                self._ready.append((episode, reply))
            else:
                going.append(episode)
        replies = self.policy.request([self._converse(e) for e in going]) if going else []
        for episode, future in zip(going, replies, strict=True):
            self._asked[future] = episode, time.monotonic()
            if not isinstance(self.policy, Scripted):
                future.add_done_callback(partial(self._keep, episode))
            future.add_done_callback(self._finished.put)

    def _keep(self, episode: Episode, future: Future[Response]) -> None:
        """Writes a reply to disk, in the thread that has it."""
        if not future.cancelled() and not future.exception():
            reply = future.result()
            if isinstance(reply, Reply):
                self._kept.keep(episode, reply)

    def _replied(self, future: Future[Response]) -> None:
        """Takes the policy's answer to an episode: a submission, or its end."""
        episode, _ = self._asked.pop(future)
        reply = future.result()
        if isinstance(reply, Reply):
            self._ready.append((episode, reply))
        else:
            self.store.end(episode.task.id, episode.sample, reply.reason if reply else "")
            self.on_end(episode.task, len(episode.turns))

    def _submit(self) -> None:
        """Submits as many replies as the pool takes without blocking."""
        while self._ready and len(self._pending) < self.pool.room:
            episode, reply = self._ready.popleft()
            future = self.pool.submit(episode.task.id, reply.source)
            self._pending[future] = (episode, reply)
            future.add_done_callback(self._finished.put)

    def _take(self) -> None:
        """Waits for a reply or a result, and takes all others that are ready too."""
        arrived = [self._next()]
        while not self._finished.empty():
            arrived.append(self._finished.get())
        episodes = []
        for future in arrived:
            if future in self._asked:
                self._replied(future)
            else:
                episodes.append(self._evaluated(future))
        self._waiting.extendleft(reversed(episodes))  # finish episodes before new ones start
        self._note()

    def _next(self) -> Future[Any]:
        """The next reply or result; says from time to time that replies are awaited."""
        while True:
            try:
                return self._finished.get(timeout=MAX_SILENT_SECONDS if self._asked else None)
            except Empty:
                self._note()

    def _note(self) -> None:
        """Logs how many replies are late, at most once in a while."""
        now = time.monotonic()
        late = [e for e, since in self._asked.values() if now - since >= MAX_SILENT_SECONDS]
        if late and now - self._noted >= MAX_SILENT_SECONDS:
            self._noted = now
            log.warning(
                "waiting for the model: no reply for %.0f s to %d of %d requests, "
                "such as %s, sample %d",
                MAX_SILENT_SECONDS,
                len(late),
                len(self._asked),
                late[0].task.id,
                late[0].sample,
            )

    def _evaluated(self, future: Future[Evaluation]) -> Episode:
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

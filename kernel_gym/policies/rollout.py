"""Plays a policy: the turns of a task one after another, the tasks side by side.

A policy that generates is asked for all episodes that wait for it at once, while evaluations run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Protocol

from kernel_gym.episodes.conversation import Prompt, converse
from kernel_gym.episodes.episode import Episode, Turn
from kernel_gym.feedback import feedback
from kernel_gym.hidden import without_hidden
from kernel_gym.policies import Conversation, Policy, Reply, Scripted
from kernel_gym.records import Evaluation
from kernel_gym.rewards import Context, Reward, RewardResult
from kernel_gym.storage.run_store import RunStore, TurnRecord
from kernel_gym.tasks import Task

REPLIES_AHEAD = 64
"""Replies asked for at once, at most, where the pool has less room: a model writes many side by
side. A run that is killed loses those that were not evaluated."""


class Pool(Protocol):
    """Anything that evaluates submissions in the background."""

    room: int
    """Submissions that it holds before it blocks."""

    def submit(self, task_id: str, source: str, /) -> Future[Evaluation]:
        """Queues one evaluation."""
        ...


class Rollout:
    """Plays a policy on tasks through a pool and writes every turn to a store.

    Turns that the store holds already are not played again. An interruption, a kill included, loses
    what is under way and nothing else: a result is on disk before the next is waited for, and the
    run can be resumed.

    Args:
        policy: What submits.
        pool: What evaluates.
        reward: What scores.
        store: Where the turns go; its configuration says how many a task, and how often
            each task is played.
        on_turn: Called after each new turn.
        on_end: Called with each task whose episode is over.
        prompt: How tasks are put to a policy that reads; without one it gets no messages.
    """

    def __init__(
        self,
        policy: Policy,
        pool: Pool,
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
        """Plays every task to its end.

        Args:
            tasks: The tasks, each of which the run's configuration names.
        """
        samples = range(1, self.store.config.samples + 1)
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
        """Asks the policy for the next turn of those who wait; ends episodes that are over."""
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
        """Queues as many replies as the pool takes without blocking."""
        while self._ready and len(self._pending) < self.pool.room:
            episode, reply = self._ready.popleft()
            future = self.pool.submit(episode.task.id, reply.source)
            self._pending[future] = (episode, reply)
            future.add_done_callback(self._finished.put)

    def _take(self) -> None:
        """Waits for a result and records it, and those that came with it."""
        episodes = [self._next()]
        while not self._finished.empty():
            episodes.append(self._next())
        self._waiting.extendleft(reversed(episodes))  # an episode that has begun is ended first

    def _next(self) -> Episode:
        future = self._finished.get()
        episode, reply = self._pending.pop(future)
        return self._record(episode, reply, future.result())

    def _converse(self, episode: Episode) -> Conversation:
        if self.prompt is None or isinstance(self.policy, Scripted):
            return Conversation(episode)
        return converse(episode, self.prompt)

    def _unfinished(self, tasks: Iterable[Task], samples: range) -> Iterator[Episode]:
        """The episodes that are not over, as far as the store has them."""
        for task in tasks:
            for sample in samples:
                if self.store.is_over(task.id, sample):
                    self.on_end(task, len(self.store.turns(task.id, sample)))
                else:
                    yield self._recorded(task, sample)

    def _recorded(self, task: Task, sample: int) -> Episode:
        """The episode as far as the store has it."""
        episode = Episode(task, sample=sample)
        for record in self.store.turns(task.id, sample):
            result = RewardResult(record.reward, record.terms)
            text = _told(record.problem, feedback(task, record.evaluation))
            episode = episode.after(
                Turn(self.store.source(record), without_hidden(record.evaluation), result, text)
            )
        return episode

    def _record(self, episode: Episode, reply: Reply, evaluation: Evaluation) -> Episode:
        """Scores and stores one turn."""
        task, number, source = episode.task, len(episode.turns) + 1, reply.source
        result = self.reward(evaluation, _context(episode).of(source))
        record = TurnRecord(
            task=task.id,
            turn=number,
            source=self.store.source_path(task.id, number, task.language, episode.sample),
            reward=result.value,
            terms=dict(result.terms),
            evaluation=evaluation,
            sample=episode.sample,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost=reply.cost,
            problem=reply.problem,
        )
        self.store.append(record, source)
        self.on_turn(record)
        told = _told(reply.problem, feedback(task, evaluation))
        return episode.after(Turn(source, without_hidden(evaluation), result, told, reply.text))


def _told(problem: str, text: str) -> str:
    """The feedback, with what was wrong with the reply before it."""
    return f"{problem}\n{text}" if problem else text


def _context(episode: Episode) -> Context:
    """What the turns so far say about the next."""
    context = Context()
    for turn in episode.turns:
        context = context.after(turn.evaluation)
    return context

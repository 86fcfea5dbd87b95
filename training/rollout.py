"""Plays a policy: the turns of a task one after another, the tasks side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Protocol

from kernel_gym.feedback import feedback
from kernel_gym.records import Evaluation
from kernel_gym.rewards import Context, Reward, RewardResult
from kernel_gym.store import RunStore, TurnRecord
from kernel_gym.tasks import Task
from kernel_gym.training.episode import Episode, Turn
from kernel_gym.training.policies import Policy


class Pool(Protocol):
    """Anything that evaluates submissions in the background."""

    def submit(self, task_id: str, source: str, /) -> Future[Evaluation]:
        """Queues one evaluation."""
        ...


class Rollout:
    """Plays a policy on tasks through a pool and writes every turn to a store.

    Turns that the store holds already are not played again. An interruption loses the evaluations
    under way and nothing else: the run can be resumed.

    Args:
        policy: What submits.
        pool: What evaluates.
        reward: What scores.
        store: Where the turns go; its configuration says how many a task.
        on_turn: Called after each new turn.
        on_end: Called with each task whose episode is over.
    """

    def __init__(
        self,
        policy: Policy,
        pool: Pool,
        reward: Reward,
        store: RunStore,
        on_turn: Callable[[TurnRecord], None] = lambda record: None,
        on_end: Callable[[Task, int], None] = lambda task, turns: None,
    ) -> None:
        self.policy, self.pool, self.reward, self.store = policy, pool, reward, store
        self.on_turn, self.on_end = on_turn, on_end
        self._pending: dict[Future[Evaluation], tuple[Episode, str]] = {}

    def play(self, tasks: Iterable[Task]) -> None:
        """Plays every task to its end.

        Args:
            tasks: The tasks, each of which the run's configuration names.
        """
        try:
            for task in tasks:
                self._advance(self._recorded(task))
            while self._pending:
                done, _ = wait(self._pending, return_when=FIRST_COMPLETED)
                for future in done:
                    episode, source = self._pending.pop(future)
                    self._advance(self._record(episode, source, future.result()))
        finally:
            self.store.finish()

    def _advance(self, episode: Episode) -> None:
        """Asks the policy for the next turn and queues it, or ends the episode."""
        source = None
        if len(episode.turns) < self.store.config.turns:
            source = self.policy.submit(episode)
        if source is None:
            self.on_end(episode.task, len(episode.turns))
            return
        self._pending[self.pool.submit(episode.task.id, source)] = (episode, source)

    def _recorded(self, task: Task) -> Episode:
        """The episode as far as the store has it."""
        episode = Episode(task)
        for record in self.store.turns(task.id):
            result = RewardResult(record.reward, record.terms)
            text = feedback(task, record.evaluation)
            episode = episode.after(
                Turn(self.store.source(record), record.evaluation, result, text)
            )
        return episode

    def _record(self, episode: Episode, source: str, evaluation: Evaluation) -> Episode:
        """Scores and stores one turn."""
        task, number = episode.task, len(episode.turns) + 1
        result = self.reward(evaluation, _context(episode).of(source))
        record = TurnRecord(
            task=task.id,
            turn=number,
            source=self.store.source_path(task.id, number, task.language),
            reward=result.value,
            terms=dict(result.terms),
            evaluation=evaluation,
        )
        self.store.append(record, source)
        self.on_turn(record)
        return episode.after(Turn(source, evaluation, result, feedback(task, evaluation)))


def _context(episode: Episode) -> Context:
    """What the turns so far say about the next."""
    context = Context()
    for turn in episode.turns:
        context = context.after(turn.evaluation)
    return context

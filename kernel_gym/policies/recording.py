"""Writes the turns of an episode to a run folder, and reads an episode back from it."""

from __future__ import annotations

from kernel_gym.episodes.episode import Episode
from kernel_gym.policies.base import Reply
from kernel_gym.records import Evaluation
from kernel_gym.rewards import Reward, RewardResult
from kernel_gym.storage.run_records import TurnRecord
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import Task


def recorded_episode(store: RunStore, task: Task, sample: int) -> Episode:
    """An episode with the turns that a store has.

    Args:
        store: The run.
        task: A task of the run.
        sample: The number of the episode among those of its task, from 1.
    """
    episode = Episode(task, sample=sample)
    for record in store.turns(task.id, sample):
        result = RewardResult(record.reward, record.terms)
        source = store.source(record)
        episode = episode.after(source, record.evaluation, result, problem=record.problem)
    return episode


def record_turn(
    store: RunStore, reward: Reward, episode: Episode, reply: Reply, evaluation: Evaluation
) -> tuple[TurnRecord, Episode]:
    """Scores the next turn of an episode and writes it to a store.

    Args:
        store: The run.
        reward: Scores the evaluation.
        episode: The episode before the turn.
        reply: The reply with the submission.
        evaluation: The whole record of the submission.

    Returns:
        The record of the turn, which is on disk, and the longer episode.
    """
    task, number, source = episode.task, len(episode.turns) + 1, reply.source
    result = reward(evaluation, episode.context.of(source))
    record = TurnRecord(
        task=task.id,
        turn=number,
        source=store.source_path(task.id, number, task.language, episode.sample),
        reward=result.value,
        terms=dict(result.terms),
        evaluation=evaluation,
        sample=episode.sample,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        cost=reply.cost,
        problem=reply.problem,
    )
    if reply.tokens is not None:
        store.append_tokens(record, reply.tokens)
    store.append(record, source)
    longer = episode.after(source, evaluation, result, text=reply.text, problem=reply.problem)
    return record, longer

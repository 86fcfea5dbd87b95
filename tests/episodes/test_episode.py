"""Episodes: the content of a turn, the context of the next reward, and the best submission."""

import dataclasses

import pytest

from kernel_gym.analysis.summary import summarise_task
from kernel_gym.episodes.edits import editable
from kernel_gym.episodes.episode import Episode
from kernel_gym.episodes.history import best_turn, reward_context
from kernel_gym.feedback import feedback
from kernel_gym.hidden import without_hidden
from kernel_gym.records import Outcome, Stage
from kernel_gym.rewards import Context, RewardResult
from kernel_gym.storage.run_records import TurnRecord
from kernel_gym.tasks import get_task
from tests.records import failure, passing

TASK = get_task("triton2triton/softmax")
WRONG = failure(Outcome.WRONG_VALUES, Stage.TRAIN)
SURE = passing(1.5, 1.5).model_copy(update={"speedup_low": 1.4})
LUCKY = passing(3.0, 3.0).model_copy(update={"speedup_low": 1.1})
SHAPE_BOUND = passing(2.306, 0.306)
GOOD = passing(2.306, 2.352)
REWARD = RewardResult(0.5)


def played(*evaluations, rewards=()):
    episode = Episode(TASK)
    earned = [RewardResult(reward) for reward in rewards] or [REWARD] * len(evaluations)
    for number, (evaluation, reward) in enumerate(zip(evaluations, earned, strict=True)):
        episode = episode.after(f"source {number}", evaluation, reward)
    return episode


def record(number, evaluation, reward=0.5):
    return TurnRecord(
        task=TASK.id, turn=number, source="", reward=reward, terms={}, evaluation=evaluation
    )


def test_a_longer_episode_leaves_the_shorter_one_as_it_was():
    short = played(WRONG)
    longer = short.after("source", SURE, REWARD)
    assert (len(short.turns), len(longer.turns)) == (1, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        short.turns = ()


def test_a_turn_has_its_feedback_and_nothing_that_identifies_hidden_workloads():
    (turn,) = played(SURE).turns
    assert turn.feedback == feedback(TASK, SURE)
    assert turn.evaluation == without_hidden(SURE) != SURE


def test_a_problem_of_the_reply_precedes_the_feedback():
    (turn,) = Episode(TASK).after("x", WRONG, REWARD, problem="The reply is empty.").turns
    assert turn.feedback == f"The reply is empty.\n{feedback(TASK, WRONG)}"


def test_the_context_is_that_of_the_whole_records():
    evaluations = (WRONG, LUCKY, SURE, WRONG)
    records = [record(*numbered) for numbered in enumerate(evaluations, start=1)]
    assert played(*evaluations).context == reward_context(records) == Context(1.4)
    assert Episode(TASK).context == Context()


def test_the_best_submission_has_the_highest_reward_wherever_it_is_asked_for():
    evaluations, rewards = (GOOD, SHAPE_BOUND, WRONG), (0.1, 0.4, 0.9)
    episode = played(*evaluations, rewards=rewards)
    assert episode.best is episode.turns[1]
    assert editable(episode) == "source 1"
    numbered = zip((1, 2, 3), evaluations, rewards, strict=True)
    summary = summarise_task(TASK.id, [record(*one) for one in numbered])
    assert (summary.best_turn, summary.unseen_speedup) == (2, 0.306)


def test_a_masked_reward_ranks_last():
    assert played(GOOD, SURE, rewards=(None, 0.0)).best.evaluation.speedup == 1.5


def test_of_equal_rewards_the_kernel_for_all_shapes_is_the_best():
    episode = played(SHAPE_BOUND, GOOD)
    assert episode.best is episode.turns[1]


def test_of_equal_rewards_the_highest_lower_bound_is_the_best():
    evaluations = (LUCKY, SURE, WRONG)
    episode = played(*evaluations)
    assert episode.best is episode.turns[1]
    assert editable(episode) == "source 1"
    records = [record(*numbered) for numbered in enumerate(evaluations, start=1)]
    summary = summarise_task(TASK.id, records)
    assert (summary.best_turn, summary.speedup) == (2, 1.5)


def test_of_equal_submissions_the_first_is_the_best_and_a_wrong_one_never_is():
    episode = played(WRONG, SURE, SURE)
    assert episode.best is episode.turns[1]
    assert played(WRONG).best is None
    assert best_turn([]) is None


def test_a_chat_has_the_reply_or_the_source_and_then_the_feedback():
    episode = played(WRONG).after("y", SURE, REWARD, text="Here:\n```\ny\n```")
    messages = episode.messages(lambda task: f"write {task.id}")
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2 + ["user"]
    assert messages[0]["content"] == f"write {TASK.id}"
    assert messages[1]["content"] == "source 0"
    assert messages[3]["content"] == "Here:\n```\ny\n```"
    assert messages[4]["content"] == episode.turns[1].feedback

"""Rollouts: order, resumption and interruption. The pool here answers with records made by hand."""

import random
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from kernel_gym.policies import Policy, PolicyError, Reply, Scripted, rollout
from kernel_gym.policies.base import answered
from kernel_gym.policies.rollout import Rollout
from kernel_gym.rewards import get_reward
from kernel_gym.storage.run_store import REPLIES, RunStore
from kernel_gym.tasks import get_task
from tests.records import passing
from tests.storage.test_run_store import CONFIG

IDS = ("triton2triton/softmax", "torch2triton/softmax", "hip2hip/transpose")
TASKS = [get_task(task_id) for task_id in IDS]
CONFIG = CONFIG.model_copy(update={"tasks": IDS, "turns": 3})


class Counting(Scripted):
    """Submits its turn number; stops a task early when told to."""

    def __init__(self, stop=()):
        self.stop, self.asked = dict(stop), []

    def submit(self, episode):
        turn = len(episode.turns) + 1
        self.asked.append((episode.task.id, turn))
        return None if turn > self.stop.get(episode.task.id, 99) else f"turn {turn}"


class Recorded:
    """Answers out of order, and not at all after a number of answers."""

    room = 4

    def __init__(self, answers=10**6):
        self.threads, self.answers = ThreadPoolExecutor(3), answers

    def submit(self, task_id, source) -> Future:
        self.answers -= 1
        if self.answers < 0:
            raise KeyboardInterrupt
        evaluation = passing(1.5, 1.5, task=task_id)
        wait = random.random() / 100
        return self.threads.submit(lambda: __import__("time").sleep(wait) or evaluation)


def play(store, policy, pool=None, **kwargs):
    Rollout(policy, pool or Recorded(), get_reward(), store, **kwargs).play(TASKS)


def keys(store):
    return [(record.task, record.turn) for record in store.records()]


EVERY_TURN = [(task_id, turn) for task_id in IDS for turn in (1, 2, 3)]


def test_turns_of_a_task_come_in_order_and_the_file_is_sorted(tmp_path):
    store, policy, seen = RunStore.start(tmp_path, CONFIG), Counting(), []
    play(store, policy, on_turn=lambda record: seen.append((record.task, record.turn)))
    assert keys(store) == EVERY_TURN == keys(RunStore(tmp_path))
    assert sorted(seen) == sorted(EVERY_TURN)
    for task_id in IDS:
        assert [turn for task, turn in policy.asked if task == task_id] == [1, 2, 3]
    assert store.source(store.records()[1]) == "turn 2"


def test_a_policy_may_end_an_episode(tmp_path):
    store, ended = RunStore.start(tmp_path, CONFIG), {}
    policy = Counting(stop={IDS[1]: 1, IDS[2]: 0})
    play(store, policy, on_end=lambda task, turns: ended.update({task.id: turns}))
    assert ended == {IDS[0]: 3, IDS[1]: 1, IDS[2]: 0}
    assert len(keys(store)) == 4
    assert RunStore(tmp_path).unfinished() == []
    resumed, policy = RunStore.start(tmp_path, CONFIG, resume=True), Counting()
    play(resumed, policy)
    assert policy.asked == []


@pytest.mark.parametrize("answers", [1, 4, 8])
def test_an_interrupted_run_is_resumed_where_it_stopped(tmp_path, answers):
    store = RunStore.start(tmp_path, CONFIG)
    with pytest.raises(KeyboardInterrupt):
        play(store, Counting(), Recorded(answers))
    done = keys(store)
    assert len(done) <= answers
    resumed, policy = RunStore.start(tmp_path, CONFIG, resume=True), Counting()
    play(resumed, policy)
    assert keys(resumed) == EVERY_TURN
    assert not set(policy.asked) & set(done)


@pytest.mark.parametrize("room", [1, 2])
def test_results_are_on_disk_before_more_is_submitted_than_the_pool_has_room_for(tmp_path, room):
    class Narrow(Recorded):
        def submit(self, task_id, source):
            self.asked = getattr(self, "asked", 0) + 1
            assert len(RunStore(tmp_path).records()) >= self.asked - self.room
            return super().submit(task_id, source)

    pool = Narrow()
    pool.room = room
    store = RunStore.start(tmp_path, CONFIG)
    play(store, Counting(), pool)
    assert keys(store) == EVERY_TURN


def test_two_drivers_in_a_folder_leave_every_result_once(tmp_path):
    stores = [RunStore.start(tmp_path, CONFIG, resume=True) for _ in range(2)]
    policies = [Counting(stop={IDS[1]: 1}), Counting(stop={IDS[1]: 1})]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(play, stores, policies))
    expected = [key for key in EVERY_TURN if key[0] != IDS[1]] + [(IDS[1], 1)]
    finished = RunStore(tmp_path)
    assert sorted(keys(finished)) == sorted(expected)
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == len(expected)
    assert [end.task for end in finished.ends()] == [IDS[1]]


def test_a_finished_run_is_not_played_again(tmp_path):
    play(RunStore.start(tmp_path, CONFIG), Counting())
    policy = Counting()
    play(RunStore.start(tmp_path, CONFIG, resume=True), policy)
    assert policy.asked == []


class Reading(Policy):
    """Counts turns as the one above does, and keeps what it was given to read."""

    def __init__(self):
        self.batches, self.counting = [], Counting()

    def reply(self, chats):
        self.batches.append(chats)
        return self.counting.reply(chats)


def test_a_policy_is_asked_for_all_waiting_episodes_at_once_and_sees_the_chat(tmp_path):
    store, policy = RunStore.start(tmp_path, CONFIG), Reading()
    play(store, policy, prompt=lambda task: f"write {task.id}")
    first, *later = policy.batches
    assert [chat.messages[0]["content"] for chat in first] == [f"write {i}" for i in IDS]
    roles = [[m["role"] for m in chat.messages] for batch in later for chat in batch]
    assert sorted(map(len, roles)) == [3, 3, 3, 5, 5, 5]
    assert roles[-1] == ["user", "assistant", "user", "assistant", "user"]
    assert later[-1][0].messages[3]["content"] == "turn 2"


def test_a_task_is_played_as_often_as_samples_are_asked_for(tmp_path):
    config = CONFIG.model_copy(update={"samples": 2, "turns": 2})
    store = RunStore.start(tmp_path, config)
    with pytest.raises(KeyboardInterrupt):
        play(store, Counting(), Recorded(5))
    resumed, policy = RunStore.start(tmp_path, config, resume=True), Counting()
    left = 12 - len(resumed.records())
    play(resumed, policy)
    assert len(policy.asked) == left
    finished = [(r.task, r.sample, r.turn) for r in RunStore(tmp_path).records()]
    assert finished == [(task, k, turn) for task in IDS for k in (1, 2) for turn in (1, 2)]
    assert len({r.source for r in resumed.records()}) == 12
    assert [r.sample for r in resumed.turns(IDS[0], 2)] == [2, 2]


class Streaming(Policy):
    """Counts turns as the first one does; answers to some episodes come when a test wants it."""

    streams = True

    def __init__(self, held=()):
        self.held, self.asked = {task: Future() for task in held}, []

    def reply(self, chats):
        raise AssertionError("the rollout must not wait for all replies")

    def request(self, chats):
        return [self._one(chat.episode) for chat in chats]

    def _one(self, episode):
        self.asked.append((episode.task.id, len(episode.turns) + 1))
        if episode.task.id in self.held and not episode.turns:
            return self.held[episode.task.id]
        return answered(Reply("text", f"turn {len(episode.turns) + 1}", cost=0.5))


def test_one_late_reply_holds_up_no_other_episode(tmp_path):
    store, policy = RunStore.start(tmp_path, CONFIG), Streaming(held=IDS[:1])

    def answer_when_the_others_are_over(record):
        if len(store.records()) == 6:
            policy.held[IDS[0]].set_result(Reply("text", "late"))

    play(store, policy, on_turn=answer_when_the_others_are_over)
    assert keys(RunStore(tmp_path)) == EVERY_TURN
    assert policy.asked.index((IDS[1], 3)) < policy.asked.index((IDS[0], 2))
    assert not (tmp_path / REPLIES).exists()


def test_a_late_reply_is_named_after_a_while(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(rollout, "MAX_SILENT_SECONDS", 0.0)
    store, policy = RunStore.start(tmp_path, CONFIG), Streaming(held=IDS[:1])
    late = policy.held[IDS[0]]
    play(store, policy, on_turn=lambda r: late.done() or late.set_result(Reply("t", "late")))
    assert "waiting for the model: no reply for 0 s to 1 of " in caplog.text
    assert f"such as {IDS[0]}, sample 1" in caplog.text


def test_a_reply_that_a_killed_run_paid_for_is_evaluated_by_the_next_one(tmp_path):
    store, policy = RunStore.start(tmp_path, CONFIG), Streaming()
    with pytest.raises(KeyboardInterrupt):
        play(store, policy, Recorded(answers=0))
    assert len(policy.asked) == 3
    with (tmp_path / REPLIES).open("a") as replies:
        replies.write('{"task": "cut o')
    resumed, policy = RunStore.start(tmp_path, CONFIG, resume=True), Streaming()
    play(resumed, policy)
    assert keys(resumed) == EVERY_TURN
    assert not [turn for _, turn in policy.asked if turn == 1]
    assert {record.cost for record in resumed.records()} == {0.5}


def test_replies_in_flight_are_cancelled_when_a_run_ends_by_an_error(tmp_path):
    store, policy = RunStore.start(tmp_path, CONFIG), Streaming(held=IDS)
    policy.held[IDS[0]].set_exception(PolicyError("no server"))
    with pytest.raises(PolicyError, match="no server"):
        play(store, policy)
    assert all(policy.held[task].cancelled() for task in IDS[1:])

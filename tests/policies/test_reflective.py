"""The reflective agent over a policy that answers by script."""

from concurrent.futures import Future
from dataclasses import replace

import pytest

from kernel_gym.analysis.breakdown import run_metrics
from kernel_gym.episodes.episode import Episode, Turn
from kernel_gym.policies import (
    Conversation,
    Policy,
    PolicyError,
    Reply,
    Run,
    ScheduleSearch,
    make_policy,
)
from kernel_gym.policies.base import answered
from kernel_gym.policies.reflective import Modules, Reflective, nearest
from kernel_gym.policies.rollout import Rollout
from kernel_gym.records import Outcome, Stage
from kernel_gym.rewards import RewardResult, get_reward
from kernel_gym.storage.run_store import REFLECTIONS, RunStore
from kernel_gym.tasks import get_task
from kernel_gym.tasks.guide import guide, topics_of
from tests.records import failure, passing
from tests.storage.test_run_store import CONFIG

IDS = ("triton2triton/softmax", "torch2triton/gelu")
TASK = get_task(IDS[0])
WRONG = failure(Outcome.WRONG_VALUES, Stage.TRAIN)


def turn(source, evaluation=WRONG):
    return Turn(source, evaluation, RewardResult(0.0), f"feedback on {source}")


def episode(*turns):
    return Episode(TASK, turns)


RIGHT = (turn("slow", passing(1.5, 1.5)), turn("fast", passing(3.0, 3.0)), turn("bad"))


class Scripted(Policy):
    """Writes a kernel one better than the best in its prompt; reflects by naming it."""

    def __init__(self):
        self.batches = []

    def reply(self, chats):
        self.batches.append([chat.messages[-1]["content"] for chat in chats])
        return [self.answer(chat.messages[-1]["content"]) for chat in chats]

    def answer(self, text):
        if text.startswith("A kernel for"):
            return Reply("use level " + str(text.count("step") + 1), "", 5, 1, 0.5)
        levels = [int(word) for word in text.split("use level ")[1:] for word in word.split()[:1]]
        return Reply("", "step " * max(levels, default=0), 10, 2, 1.0)


class Ladder:
    """Takes only what has climbed four steps; more are faster."""

    room = 1

    def submit(self, task_id, source):
        steps = source.count("step")
        evaluation = passing(steps / 3, steps / 3, task=task_id) if steps > 3 else WRONG
        future = Future()
        future.set_result(evaluation.model_copy(update={"task": task_id}))
        return future


def play(folder, turns, modules=None):
    config = CONFIG.model_copy(update={"tasks": IDS, "turns": turns, "samples": 2})
    store, policy = RunStore.start(folder, config), Scripted()
    agent = Reflective(policy, modules)
    tasks = map(get_task, IDS)
    Rollout(agent, Ladder(), get_reward(), store, prompt=lambda task: f"write {task.id}").play(
        tasks
    )
    return run_metrics(store)


def test_ten_iterations_beat_one_and_do_not_without_the_reflector(tmp_path):
    one, ten = play(tmp_path / "1", 1), play(tmp_path / "10", 10)
    blind = play(tmp_path / "blind", 10, Modules(reflector=False))
    accuracies = [m["headline"]["execution_accuracy"]["value"] for m in (one, ten, blind)]
    assert accuracies == [0.0, 1.0, 0.0]
    assert ten["headline"]["geometric_speedup_of_correct"]["value"] > 2
    assert ten["usage"]["cost"] == 4 * (10 * 1.0 + 9 * 0.5)
    assert blind["usage"]["cost"] == 4 * 10 * 1.0


def said(modules, *turns):
    agent = Reflective(Scripted(), modules)
    chat = Conversation(episode(*turns), ({"role": "user", "content": "the task"},))
    return agent.ask(chat)


def test_the_history_is_sorted_by_speed_and_the_last_failure_follows():
    text = said(None, *RIGHT)
    order = [text.index(word) for word in ("the task", "```\nfast", "```\nslow", "```\nbad")]
    assert order == sorted(order)
    assert "Speedup 3x." in text


@pytest.mark.parametrize(
    ("off", "gone"),
    [
        ({"knowledge": False}, guide("gfx942", "triton", topics_of(TASK.problem))),
        ({"example": False}, "as an example"),
        ({"optimizer": False}, "the best first"),
        ({"debugger": False}, "```\nbad"),
        ({"history": 1}, "```\nslow"),
    ],
)
def test_a_module_switched_off_changes_what_is_asked(off, gone):
    assert gone in said(Modules(), *RIGHT)
    assert gone not in said(Modules(**off), *RIGHT)


def test_the_guide_is_there_once_and_can_be_taken_out_of_the_prompt():
    known = guide("gfx942", "triton", topics_of(TASK.problem))
    chat = Conversation(episode(), ({"role": "user", "content": f"task\n{known}\nrules"},))
    assert Reflective(Scripted()).ask(chat).count(known) == 1
    assert known not in Reflective(Scripted(), Modules(knowledge=False)).ask(chat)


@pytest.mark.parametrize(("limit", "kept"), [(3, False), (4, True), (0, True)])
def test_an_idea_is_given_up_after_so_many_failures(limit, kept):
    text = said(Modules(debug_limit=limit), turn("a"), turn("b"), turn("c"))
    assert ("```\nc" in text) == kept
    assert ("begin with another one" in text) != kept


def test_without_the_debugger_a_failure_leaves_the_prompt_as_it_was():
    modules = Modules(debugger=False)
    assert said(modules, *[turn("bad")] * 7) == said(modules, turn("bad")) == said(modules)


@pytest.mark.parametrize("limit", [0, 1])
def test_a_correct_kernel_is_never_given_up(limit):
    assert "```\nslow" in said(Modules(debug_limit=limit, optimizer=False), RIGHT[0])


def test_all_waiting_episodes_reflect_in_one_batch(tmp_path):
    policy = Scripted()
    agent = Reflective(policy)
    prompt = ({"role": "user", "content": "the task"},)
    chats = [Conversation(episode(*turns), prompt) for turns in ((), RIGHT, RIGHT[:1])]
    agent.reply(chats)
    assert [len(batch) for batch in policy.batches] == [2, 3]


def test_no_conversation_waits_for_the_reflection_on_another_one():
    class Streaming(Scripted):
        streams = True
        first = Future()

        def request(self, chats):
            (chat,) = chats
            done = answered(self.reply(chats)[0])
            return [self.first if chat.episode.sample == 9 else done]

    policy = Streaming()
    agent = Reflective(policy)
    prompt = ({"role": "user", "content": "the task"},)
    late = replace(episode(*RIGHT[:1]), sample=9)
    chats = [Conversation(one, prompt) for one in (late, episode(*RIGHT))]
    held, other = agent.request(chats)
    assert other.result().source
    assert not held.done()
    held.cancel()
    assert policy.first.cancelled()


def test_the_example_is_the_most_similar_kernel_but_never_the_tasks_own():
    gelu = get_task("triton2triton/gelu").start_source
    assert nearest(TASK, gelu) == gelu
    own = TASK.start_source
    assert nearest(TASK, own) not in ("", own)


def test_it_is_made_over_a_policy_by_name_with_modules_switched_off():
    assert make_policy("reflective:search").modules == Modules()
    agent = make_policy("reflective:no-reflector,no-example:search")
    assert agent.modules == Modules(reflector=False, example=False)
    assert isinstance(agent.policy, ScheduleSearch)
    with pytest.raises(PolicyError, match="no module 'guide'; knowledge, example"):
        make_policy("reflective:no-guide:search")


def test_reflections_survive_an_interruption_and_are_paid_for_once(tmp_path):
    chat = Conversation(episode(*RIGHT), ({"role": "user", "content": "the task"},))
    first, second = Scripted(), Scripted()
    agent = Reflective(first)
    agent.begin(Run(tmp_path, "sim:gfx942"))
    (reply,) = agent.reply([chat])
    with (tmp_path / REFLECTIONS).open("a") as memory:
        memory.write('{"turn": ["cut off')
    resumed = Reflective(second)
    resumed.begin(Run(tmp_path, "sim:gfx942"))
    (again,) = resumed.reply([chat])
    assert (len(first.batches), len(second.batches)) == (2, 1)
    assert first.batches[-1] == second.batches[-1]
    assert "Reflection:\n| use level" in second.batches[-1][0]
    assert again.cost == reply.cost == 1.5
    assert (tmp_path / REFLECTIONS).read_text().count("\n") == 1

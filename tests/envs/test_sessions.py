"""Sessions: one episode under every door."""

import asyncio

import pytest

from kernel_gym.envs.sessions import Sessions
from kernel_gym.episodes.session import EpisodeOver, MaskedEvaluation
from kernel_gym.executors.inline import InlineExecutor
from kernel_gym.exploits.loader import load_exploits
from kernel_gym.records import Evaluation, Outcome, Stage
from kernel_gym.tasks import get_task
from tests.test_architecture import ROOT

TASK = "triton2triton/softmax"
DEVICE = "sim:gfx942"
GOOD = get_task(TASK).start_source
HACK = "c06_copy_all_but_one_row.py"


@pytest.fixture
def begin():
    def begin(seed=1, task=None, **kwargs):
        return Sessions(task=TASK, device=DEVICE, **kwargs).begin(task, seed=seed)

    return begin


def test_the_best_submission_counts(begin):
    session = begin(max_turns=3)
    steps = []
    for source in ("x(", GOOD, "x("):
        assert not session.over
        steps.append(session.submit(source))
    assert session.over
    assert steps[-1].done
    rewards = [step.reward for step in steps]
    assert session.reward == max(rewards) == rewards[1] > 0.12
    with pytest.raises(EpisodeOver, match="after 3 submissions"):
        session.submit(GOOD)


def test_increments_sum_to_the_reward_and_a_repeated_kernel_adds_nothing(begin):
    session = begin(max_turns=4)
    steps = [session.submit(source) for source in ("x(", GOOD, GOOD, GOOD)]
    assert sum(step.increment for step in steps) == pytest.approx(session.reward)
    assert [step.increment for step in steps[2:]] == [0.0, 0.0]
    assert steps[1].evaluation == steps[2].evaluation
    assert steps[1].reward == steps[3].reward


def test_discounted_increments_sum_to_the_discounted_reward(begin):
    session = begin(max_turns=3, discount=0.5)
    steps = [session.submit(source) for source in ("x(", GOOD, "y(")]
    paid = sum(0.5**number * step.increment for number, step in enumerate(steps))
    assert paid == pytest.approx(0.5**3 * session.reward)


def test_nothing_makes_up_for_a_hack(begin):
    exploits = {e.name: e for e in load_exploits(ROOT / "kernel_gym" / "exploits" / "suite")}
    hack = exploits[HACK]
    session = begin(task=hack.task.id, max_turns=3)
    steps = [
        session.submit(s) for s in (hack.task.start_source, hack.source, hack.task.start_source)
    ]
    assert [step.evaluation.outcome for step in steps] == ["passed", "hack", "passed"]
    assert session.reward == -1.0 < steps[0].reward
    assert sum(step.increment for step in steps) == pytest.approx(-1.0)


def test_no_submission_earns_what_failing_earns(begin):
    for preset in ("kernel-opt", "cuda-agent"):
        silent, failing = begin(reward=preset), begin(reward=preset)
        failing.submit("")
        assert silent.final_reward() == failing.reward == silent.final_reward()
        assert silent.over


def test_turns_draw_anew_and_the_episode_repeats(begin):
    def seeds(seed):
        session = begin(seed=seed, max_turns=3)
        return [session.submit(source).evaluation.seed for source in ("x(", "y(", "x(")]

    first = seeds(5)
    assert first[0] == first[2] != first[1]
    assert first == seeds(5) != seeds(6)


class Broken(InlineExecutor):
    """A machine that fails."""

    def evaluate(self, task_id, source, seed=None):
        record = super().evaluate(task_id, source, seed).model_dump()
        return Evaluation(**record | {"outcome": Outcome.INFRA, "stage": Stage.SCREEN})


def test_a_failing_machine_gives_no_number():
    with Broken(DEVICE) as executor:
        session = Sessions(executor, task=TASK, max_turns=1).begin(seed=0)
        step = session.submit("x(")
    assert step.done
    assert step.masked
    assert (step.reward, step.increment, step.episode_reward, session.reward) == (None,) * 4
    with pytest.raises(MaskedEvaluation, match="leave this rollout out"):
        step.number()


def test_a_hundred_sessions_side_by_side_do_not_mix():
    with Sessions("local", task=TASK, device=DEVICE, max_turns=2, workers=2) as sessions:

        async def play(number):
            session = sessions.begin(seed=number)
            await session.submit_async(f"x{number}(")
            return session, await session.submit_async(f"y{number}(")

        async def together():
            return await asyncio.gather(*(play(number) for number in range(100)))

        played = asyncio.run(together())
    for number, (session, _) in enumerate(played):
        assert [turn.source for turn in session.episode.turns] == [f"x{number}(", f"y{number}("]
    assert len({session.steps[0].evaluation.seed for session, _ in played}) == 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"feedback_chars": 12}, "expected 13 or more"),
        ({"max_turns": 0}, "max_turns"),
        ({"discount": 1.5}, "discount"),
        ({"reward": "kernel_opt"}, "kernel-opt"),
    ],
)
def test_a_mistake_is_told(begin, arguments, message):
    with pytest.raises(ValueError, match=message):
        begin(**arguments)

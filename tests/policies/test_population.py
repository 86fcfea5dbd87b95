"""The population and the stop rule, over policies that answer by script."""

import json

import pytest

from kernel_gym.episodes.episode import Episode
from kernel_gym.policies import Conversation, Policy, PolicyError, Reply, Run, Stop, make_policy
from kernel_gym.policies.population import STRATEGIES, Population, cell_of
from kernel_gym.policies.rollout import Rollout
from kernel_gym.policies.speed_of_light import UntilLight, share_of_light
from kernel_gym.records import KernelFacts
from kernel_gym.rewards import get_reward
from kernel_gym.storage.run_store import POPULATION, RunStore
from kernel_gym.tasks import get_task
from tests.policies.test_reflective import IDS, TASK, WRONG, Ladder, episode, turn
from tests.records import passing
from tests.storage.test_run_store import CONFIG


def bound(evaluation, by):
    facts = KernelFacts(name="k", vgprs=1, sgprs=1, bound_by=by, seconds=1.0)
    return evaluation.model_copy(update={"kernels": (facts,)})


class Climber(Policy):
    """Writes a kernel one step longer than the one in its prompt; three steps are the first."""

    def __init__(self):
        self.prompts = []

    def reply(self, chats):
        self.prompts += [chat.messages[-1]["content"] for chat in chats]
        texts = [chat.messages[-1]["content"] for chat in chats]
        return [Reply("", "step " * max(4, text.count("step ") + 1)) for text in texts]


def play(folder, policy, turns=4, resume=False):
    config = CONFIG.model_copy(update={"tasks": IDS, "turns": turns, "samples": 2})
    store = RunStore.start(folder, config, resume=resume)
    Rollout(policy, Ladder(), get_reward(), store, prompt=lambda task: f"write {task.id}").play(
        map(get_task, IDS)
    )
    return store


def test_an_archive_keeps_the_fastest_of_each_cell():
    population = Population(Climber())
    speeds = [("hbm", 1.0), ("hbm", 1.1), ("hbm", 4.0), ("latency", 1.05), ("hbm", 1.05)]
    for number, (by, speed) in enumerate(speeds, 1):
        population.absorb((TASK.id, 1, number), f"k{number}", bound(passing(speed, speed), by))
    population.absorb((TASK.id, 1, 9), "wrong", WRONG)
    archive = population.archives[TASK.id]
    assert {cell: elite.source for cell, elite in archive.items()} == {
        ("hbm", 0): "k2",
        ("hbm", 4): "k3",
        ("latency", 0): "k4",
    }
    starts = {population.parent((TASK.id, 1, n)).source for n in range(40)}
    assert starts == {"k2", "k3", "k4"}
    assert population.parent(("triton2triton/gelu", 1, 1)) is None
    assert cell_of(passing(2.0, 2.0)) == ("hbm", 2)


def test_the_bandit_tries_each_strategy_and_returns_to_the_best(tmp_path):
    population = Population(Climber())
    names = list(STRATEGIES)
    drawn = []
    for number in range(1, 200):
        name = population.strategy()
        drawn.append(name)
        population.tries[name] += 1
        population.gains[name] += int(name == "tiling" or number % 5 == 0)
    assert drawn[: len(names)] == names
    assert drawn.count("tiling") > 80
    assert all(drawn.count(name) > 3 for name in names)


def test_kernels_of_all_samples_meet_in_one_archive_and_get_faster(tmp_path):
    policy = Climber()
    population = Population(policy)
    store = play(tmp_path, population)
    speeds = [r.evaluation.speedup for r in store.turns(IDS[0])]
    assert max(speeds) > speeds[0]
    assert any("Write a faster one by this strategy." in text for text in policy.prompts)
    choices = [json.loads(line) for line in (tmp_path / POPULATION).read_text().splitlines()]
    assert {task for task, _, _ in (choice["turn"] for choice in choices)} == set(IDS)
    assert sum(population.tries.values()) <= len(choices)


def test_a_resumed_population_has_the_same_archive(tmp_path):
    first = Population(Climber())
    play(tmp_path, first)
    again = Population(Climber())
    again.begin(Run(tmp_path, "sim:gfx942"))
    assert sum(again.tries.values()) >= sum(first.tries.values()) > 0
    for task, archive in first.archives.items():  # the last turns are in the records only
        fastest = max(elite.speed for elite in archive.values())
        assert max(elite.speed for elite in again.archives[task].values()) >= fastest
        assert archive.keys() <= again.archives[task].keys()


def light(seconds, roofline=1e-6, launch=2e-6):
    evaluation = passing(2.0, 2.0)
    results = tuple(
        result.model_copy(
            update={
                "candidate_seconds": seconds,
                "roofline_seconds": roofline,
                "launch_seconds": launch,
                "launches": 1,
            }
        )
        for result in evaluation.workloads
    )
    return evaluation.model_copy(update={"workloads": results})


@pytest.mark.parametrize(("seconds", "share"), [(3e-6, 1.0), (6e-6, 0.5), (1e-6, 1.0)])
def test_the_share_counts_one_launch(seconds, share):
    assert share_of_light(light(seconds)) == pytest.approx(share)


def test_an_episode_near_the_speed_of_light_ends():
    rule = UntilLight(Climber())
    near, far, new = (
        Conversation(episode(turn("a", light(3.1e-6))), ()),
        Conversation(episode(turn("b", light(9e-6))), ({"role": "user", "content": "x"},)),
        Conversation(Episode(TASK), ({"role": "user", "content": "x"},)),
    )
    stop, *others = rule.reply([near, far, new])
    assert stop == Stop("the best kernel runs at 97% of the speed of light")
    assert all(isinstance(reply, Reply) for reply in others)
    assert len(rule.policy.prompts) == 2


def test_names_make_both():
    assert isinstance(make_policy("population:search"), Population)
    rule = make_policy("until-light:0.8:population:search")
    assert (rule.enough, type(rule.policy)) == (0.8, Population)
    assert make_policy("until-light:search").enough == 0.9
    with pytest.raises(PolicyError, match="expected 0 to 1"):
        make_policy("until-light:7:search")

"""`KernelTune-v0` on the simulator, and a bandit that learns it."""

import ast
import importlib.util
import itertools
import json
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.utils.env_checker import check_env

import kernel_gym  # noqa: F401
from kernel_gym.executors import make_executor
from kernel_gym.tasks import get_tuning, tunable_names

DEVICE = "sim:gfx942"
EXAMPLES = Path(__file__).parents[2] / "examples"
GOOD = {"gelu": (2, 3, 0), "layer_norm": (2, 3, 1), "matmul": (0, 0, 3, 1, 0), "softmax": (2, 3, 1)}


@pytest.fixture
def make():
    made = []

    def make(problem="layer_norm", **kwargs):
        task = f"triton2triton/{problem}"
        made.append(gymnasium.make("KernelTune-v0", task=task, device=DEVICE, **kwargs))
        return made[-1]

    yield make
    for env in made:
        env.close()


def test_check_env_is_clean(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make("softmax").unwrapped)


@pytest.mark.parametrize("name", tunable_names())
def test_every_choice_renders_to_a_source_of_its_own(name):
    tuning = get_tuning(name)
    choices = itertools.product(*(range(len(values)) for values in tuning.space.values()))
    sources = [tuning.render(choice) for choice in choices]
    assert len(set(sources)) == len(sources)
    assert "$" not in "".join(sources)
    ast.parse(sources[0])


@pytest.mark.parametrize("name", tunable_names())
def test_a_good_schedule_passes(make, name):
    env = make(name)
    env.reset(seed=0)
    observation, reward, _, _, info = env.step(np.array(GOOD[name]))
    assert info["outcome"] == "passed"
    assert observation in env.observation_space
    assert reward > 0.15


def test_an_episode_is_repeatable_and_remembers_its_best(make):
    def play():
        env = make(max_turns=2)
        trace = [env.reset(seed=0), env.step(np.array([2, 3, 1])), env.step(np.array([0, 0, 0]))]
        return json.dumps(trace, default=lambda value: np.asarray(value).tolist())

    assert play() == play()
    (first, info), good, bad = json.loads(play())
    assert info["space"]["WARPS"] == [1, 2, 4, 8]
    assert first[-3:] == [0, 0, 0]
    assert good[0][-2] == bad[0][-2] > 0
    assert bad[2]


def test_bad_arguments_and_actions_are_refused(make):
    with pytest.raises(KeyError, match="unknown schedule space 'transpose'"):
        make("transpose")
    with pytest.raises(ValueError, match="max_turns"):
        make(max_turns=0)
    with pytest.raises(ValueError, match="in hip, expected one in triton"):
        gymnasium.make("KernelTune-v0", task="hip2hip/transpose", device=DEVICE)
    env = make().unwrapped
    with pytest.raises(ResetNeeded):
        env.step([0, 0, 0])
    with pytest.raises(ValueError, match="unknown reset option 'task'"):
        env.reset(options={"task": "x"})
    env.reset(seed=0)
    with pytest.raises(InvalidAction, match="expected a choice"):
        env.step([9, 0, 0])
    assert gymnasium.make(env.spec.to_json() and env.spec, render_mode="ansi").unwrapped


@pytest.mark.sweep
def test_a_bandit_learns_and_beats_random(make):
    spec = importlib.util.spec_from_file_location("bandit", EXAMPLES / "bandit.py")
    bandit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bandit)
    env = make(max_turns=3)
    best = bandit.learn(env, steps=6, seed=0)
    env.reset(seed=0)
    learnt = env.step(best)[1]
    env.action_space.seed(0)
    env.reset(seed=0)
    at_random = [env.step(env.action_space.sample())[1] for _ in range(3)]
    assert learnt >= max(at_random)
    assert learnt > sum(at_random) / 3 + 0.02


def test_a_flat_action_is_the_number_of_a_schedule(make):
    deep, flat = make(), make(flat=True)
    sizes = deep.action_space.nvec.tolist()
    assert flat.action_space == gymnasium.spaces.Discrete(int(np.prod(sizes)))
    orders = itertools.product(*map(range, sizes))
    choice = GOOD["layer_norm"]
    number = list(orders).index(choice)
    for env in (deep, flat):
        env.reset(seed=0)
    assert flat.step(number)[4]["schedule"] == deep.step(np.array(choice))[4]["schedule"]
    for action in (-1, int(np.prod(sizes)), np.array([1, 2])):
        with pytest.raises(InvalidAction):
            flat.step(action)


def test_a_flat_env_is_one_of_gymnasiums(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(flat=True).unwrapped, skip_render_check=True)


def test_a_secret_is_kept_in_a_file_and_an_executor_has_its_own(tmp_path):
    env = gymnasium.make("KernelTune-v0", device="sim:gfx942", secret=tmp_path / "secret.json")
    kept = env.unwrapped.secret.sha256
    again = gymnasium.make("KernelTune-v0", device="sim:gfx942", secret=tmp_path / "secret.json")
    assert kept == again.unwrapped.secret.sha256
    with make_executor("inline", device="sim:gfx942") as executor:
        env = gymnasium.make("KernelTune-v0", executor=executor)
        assert env.unwrapped.device_name == "sim:gfx942"
        with pytest.raises(ValueError, match="its own secret"):
            gymnasium.make("KernelTune-v0", executor=executor, secret=tmp_path / "secret.json")

"""`KernelOpt-v0` on the simulator, for real."""

import json
import pickle
import random
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.utils.env_checker import check_env

import kernel_gym  # noqa: F401
from kernel_gym.devices.sim import planned_session
from kernel_gym.storage.secret import process_secret, read_secret
from kernel_gym.tasks import get_task, load_suite

TASK = "triton2triton/softmax"
DEVICE = "sim:gfx942"
WRONG = "def softmax(x):\n    return x\n"


@pytest.fixture
def make():
    """Makes environments on the simulator and closes them."""
    made = []

    def build(**kwargs):
        kwargs = {"task": TASK, "device": DEVICE} | kwargs
        made.append(gymnasium.make("KernelOpt-v0", **kwargs))
        return made[-1]

    yield build
    for env in made:
        env.close()


def test_check_env_is_clean(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make().unwrapped)


def test_made_by_module_and_id():
    env = gymnasium.make("kernel_gym:KernelOpt-v0", task=TASK, device=DEVICE)
    assert env.unwrapped.spec.nondeterministic
    env.close()


def test_spec_is_plain_data(make):
    env = make(max_turns=2)
    assert json.loads(env.spec.to_json())["kwargs"]["task"] == TASK
    again = gymnasium.make(pickle.loads(pickle.dumps(env.spec)))
    assert again.unwrapped.observation_space["turn"].n == 3
    again.close()


def test_the_baseline_is_rewarded_and_remembered(make):
    env = make(max_turns=2)
    observation, info = env.reset(seed=1)
    assert observation["feedback"] == "" == observation["best_source"]
    assert info == {"task": TASK, "device": DEVICE}
    source = get_task(TASK).start_source
    observation, reward, terminated, truncated, info = env.step(source)
    assert (info["outcome"], terminated, truncated) == ("passed", False, False)
    assert reward == pytest.approx(0.15, abs=0.02)
    assert observation["best_source"] == source
    assert observation["best_speedup"] == pytest.approx(1.0, rel=0.05)
    assert "modelled" in observation["feedback"]
    assert "wall_seconds" not in info["evaluation"]
    observation, reward, terminated, _, info = env.step(WRONG)
    assert terminated
    assert reward < 0.2
    assert info["outcome"] != "passed"
    assert observation["best_source"] == source
    assert observation["turn"] == 2


def test_equal_seeds_give_equal_episodes(make):
    def play():
        env = make(task="quickstart", max_turns=2)
        trace = [env.reset(seed=5)]
        source = get_task(trace[0][1]["task"]).start_source or "nothing"
        trace += [env.step(source), env.step(WRONG)]
        return json.dumps(trace, default=lambda value: np.asarray(value).tolist())

    assert play() == play()


def test_other_turns_draw_other_unseen_workloads(make):
    env = make(max_turns=2)
    env.reset(seed=0)
    seeds = {env.step(source)[4]["evaluation"]["seed"] for source in ("x(", "y(")}
    assert len(seeds) == 2


def test_a_repeated_source_is_not_drawn_again(make):
    env = make(max_turns=2)
    env.reset(seed=0)
    source = get_task(TASK).start_source
    one, other = env.step(source)[4], env.step(source)[4]
    assert one["evaluation"] == other["evaluation"]
    assert (one["increment"], other["increment"]) == (one["episode_reward"], 0.0)


@pytest.mark.sweep
def test_a_closed_environment_leaves_nothing_open():
    code = "import gymnasium, kernel_gym\n"
    code += f"env = gymnasium.make('KernelOpt-v0', task={TASK!r}, device={DEVICE!r})\n"
    code += "env.reset(seed=0), env.step('x = 1'), env.close()\n"
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "ResourceWarning" not in done.stderr


def test_deterministic_turns_are_evaluated_once(make):
    env = make(deterministic=True)
    env.reset(seed=0)
    one, other = env.step("x(")[4], env.step("x(")[4]
    assert one["evaluation"] == other["evaluation"]
    assert one["evaluation"]["seed"] == 0


def test_rewards_are_chosen_by_name_file_or_function(make, tmp_path):
    table = tmp_path / "mine.toml"
    table.write_text("[terms]\ncompiled = 3.0\n[ungated]\nimprovement = 1.0\n")
    rewards = ("agentkernelarena", str(table), lambda evaluation: len(evaluation.message))
    values = []
    for reward in rewards:
        env = make(reward=reward)
        env.reset(seed=0)
        values.append(env.step(WRONG)[1])
    assert values[:2] == [20.0, 3.0]
    assert values[2] > 0


def test_tasks_are_drawn_from_the_suite_by_seed(make):
    env = make(task="quickstart")
    drawn = [env.reset(seed=seed)[1]["task"] for seed in range(20)]
    assert drawn == [env.reset(seed=seed)[1]["task"] for seed in range(20)]
    assert len(set(drawn)) > 1
    assert set(drawn) <= {task.id for task in load_suite("quickstart").tasks}


def test_options_choose_the_task(make):
    env = make(task="quickstart")
    _, info = env.reset(options={"task": TASK})
    assert info["task"] == TASK
    _, info = env.reset(options={"task": {TASK: 1.0, "triton2triton/gelu": 0.0}})
    assert info["task"] == TASK
    with pytest.raises(ValueError, match="unknown reset option 'shape'; known: 'task'"):
        env.reset(options={"shape": [1]})


def test_a_random_text_policy_never_raises(make):
    env = make(max_turns=5)
    env.action_space.seed(0)
    done = True
    for _ in range(100):
        if done:
            env.reset()
        observation, reward, done, truncated, info = env.step(env.action_space.sample())
        assert observation in env.observation_space
        assert reward <= 0.1
        assert not truncated
        assert info["outcome"] not in ("passed", "infra")


@pytest.mark.parametrize(
    "source", ["", "\x00", "\ud800 lone surrogate", "é" * 70_000, "(" * 5000, "# ∑\n"]
)
def test_odd_text_is_a_submission_like_any_other(make, source):
    env = make(max_turns=1)
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step(source)
    assert terminated
    assert reward <= 0.1
    assert info["outcome"] != "infra"


def test_what_is_not_text_raises(make):
    env = make().unwrapped
    with pytest.raises(ResetNeeded):
        env.step("x")
    env.reset(seed=0)
    with pytest.raises(InvalidAction, match="expected source text as str, found int"):
        env.step(3)


def test_an_ended_episode_needs_a_reset(make):
    env = make(max_turns=1).unwrapped
    env.reset(seed=0)
    env.step("")
    with pytest.raises(ResetNeeded):
        env.step("")


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"task": "triton2triton/softmaxx"}, "triton2triton/softmax"),
        ({"task": "quickstat"}, "quickstart"),
        ({"reward": "kernel_opt"}, "kernel-opt"),
        ({"device": "sim:gfx943"}, "sim:gfx942"),
    ],
)
def test_unknown_names_list_near_matches(make, kwargs, message):
    with pytest.raises((ValueError, KeyError), match=message):
        make(**kwargs)


@pytest.mark.parametrize(("kwargs"), [{"max_turns": 0}, {"max_turns": -1}])
def test_bad_arguments_are_refused(kwargs):
    with pytest.raises(ValueError, match=next(iter(kwargs))):
        gymnasium.make("KernelOpt-v0", task=TASK, device=DEVICE, **kwargs)


def test_rendering_shows_the_last_turn(make, capsys):
    env = make(render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == f"{TASK}  turn 0 of 3"
    env.step(WRONG)
    assert "turn 1 of 3" in env.render()
    assert not capsys.readouterr().out
    human = make(render_mode="human")
    human.reset(seed=0)
    assert "turn 0 of 3" in capsys.readouterr().out


def test_vector_envs_carry_the_text():
    envs = gymnasium.make_vec(
        "KernelOpt-v0", num_envs=2, vectorization_mode="sync", task=TASK, device=DEVICE
    )
    observation, _ = envs.reset(seed=0)
    assert all("softmax" in text for text in observation["task"])
    source = get_task(TASK).start_source
    observation, rewards, _, _, info = envs.step((source, WRONG))
    assert rewards[0] > rewards[1]
    assert info["outcome"][0] == "passed"
    envs.close()


@pytest.mark.parametrize("module", ["kernel_gym", "kernel_gym.cli", "kernel_gym.envs"])
def test_importing_the_package_stays_light(module):
    heavy = ["torch", "triton", "ray", "trl", "transformers", "matplotlib"]
    code = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_candidate_that_hangs_costs_its_own_evaluation_only(make, monkeypatch):
    monkeypatch.setattr(planned_session, "CALL_SECONDS", 3.0)
    env = make(max_turns=2)
    env.reset(seed=random.Random(0).randrange(100))
    info = env.step("def softmax(x):\n    while True:\n        pass\n")[4]
    assert info["outcome"] == "timeout"
    assert env.step(get_task(TASK).start_source)[4]["outcome"] == "passed"


def test_a_file_with_a_secret_repeats_an_episode_where_the_process_is_another(tmp_path):
    def seeds_and_secret(**kwargs):
        env = gymnasium.make("KernelOpt-v0", task=TASK, device="sim:gfx942", **kwargs)
        env.reset(seed=0)
        info = env.step("broken(")[4]["evaluation"]
        env.close()
        return info["seed"], info["secret_sha256"]

    path = tmp_path / "run" / "secret.json"
    first = seeds_and_secret(secret=str(path))
    assert first == seeds_and_secret(secret=str(path))
    assert first[1] == read_secret(path).sha256
    own = seeds_and_secret()
    assert own == (first[0], process_secret().sha256)
    assert seeds_and_secret(deterministic=True) == (0, "")
    with pytest.raises(ValueError, match="no secret"):
        gymnasium.make("KernelOpt-v0", task=TASK, secret=str(path), deterministic=True)

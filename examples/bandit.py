"""A bandit for `KernelTune-v0`: one table of mean rewards a schedule parameter.

    python examples/bandit.py --task triton2triton/layer_norm --steps 40

It takes each parameter for independent of the others, tries every value, and comes back to the good
ones (UCB). Nothing in it knows kernels: any learner for Gymnasium's `MultiDiscrete` does as well.
"""

import argparse

import gymnasium
import numpy as np

import kernel_gym  # noqa: F401  (registers the environments)


def learn(env: gymnasium.Env, steps: int, seed: int = 0, explore: float = 0.15) -> np.ndarray:
    """Plays `steps` turns and returns the action that it believes in."""
    random = np.random.default_rng(seed)
    sizes = env.action_space.nvec
    total, count = [np.zeros(n) for n in sizes], [np.zeros(n) for n in sizes]
    best_action, best_reward, over = None, -np.inf, True
    for step in range(1, steps + 1):
        if over:
            env.reset(seed=seed)
        with np.errstate(divide="ignore", invalid="ignore"):
            bounds = [
                np.where(c > 0, t / c + explore * np.sqrt(np.log(step) / c), np.inf)
                for t, c in zip(total, count, strict=True)
            ]
        action = np.array([random.choice(np.flatnonzero(b == b.max())) for b in bounds])
        _, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        if info["masked"]:
            continue
        for table, counts, value in zip(total, count, action, strict=True):
            table[value] += reward
            counts[value] += 1
        if reward > best_reward:
            best_action, best_reward = action, reward
    return best_action


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="triton2triton/layer_norm")
    parser.add_argument("--steps", type=int, default=40)
    arguments = parser.parse_args()
    env = gymnasium.make("KernelTune-v0", task=arguments.task, render_mode="human")
    action = learn(env, arguments.steps)
    print("best schedule:", env.unwrapped.tuning.schedule(action))

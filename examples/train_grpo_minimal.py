"""GRPO in one file: a policy of a few logits learns the launch of a kernel.

    python examples/train_grpo_minimal.py --task triton2triton/layer_norm --steps 8

The policy is a table of logits, one row for each schedule parameter (block size, warps, ...). A
step draws a group of schedules and evaluates the kernels that they make. It raises the probability
of those that earned more than the mean of their group (GRPO, arXiv:2402.03300). To train on whole
kernels, replace the table with a language model and `draw` with its sampling, or use
`kernel-gym train`.
"""

import argparse

import torch
from torch.distributions import Categorical

import kernel_gym
from kernel_gym.tasks import Tuning, get_tuning


class Policy(torch.nn.Module):
    """Independent choices, one for each parameter of a schedule."""

    def __init__(self, tuning: Tuning) -> None:
        super().__init__()
        sizes = [len(values) for values in tuning.space.values()]
        self.logits = torch.nn.ParameterList(torch.zeros(size) for size in sizes)

    def draw(self, count: int) -> torch.Tensor:
        """Draws choices, int64[count, parameters]."""
        return torch.stack([Categorical(logits=row).sample((count,)) for row in self.logits], 1)

    def log_probability(self, choices: torch.Tensor) -> torch.Tensor:
        """Returns the log probability of each choice, float32[count]."""
        columns = zip(self.logits, choices.T, strict=True)
        return sum(Categorical(logits=row).log_prob(column) for row, column in columns)


def advantages(rewards: list[float | None]) -> torch.Tensor:
    """Standardises the rewards of a group. A masked reward (None) gets an advantage of 0."""
    valid = torch.tensor([reward is not None for reward in rewards])
    values = torch.tensor([reward or 0.0 for reward in rewards])
    mean = values[valid].mean() if valid.any() else 0.0
    spread = values[valid].std(correction=0) if valid.any() else 0.0
    return torch.where(valid, (values - mean) / (spread + 1e-4), 0.0)


def train(task_id: str, device: str, steps: int, group: int, rate: float, seed: int) -> Policy:
    """Trains a policy on one task and prints the mean reward of each step."""
    torch.manual_seed(seed)
    task = kernel_gym.get_task(task_id)
    tuning = get_tuning(task.problem.name)
    policy = Policy(tuning)
    optimizer = torch.optim.Adam(policy.parameters(), lr=rate)
    reward = kernel_gym.get_reward("kernel-opt")
    cache: dict[tuple[int, ...], float | None] = {}  # equal seeds: a schedule always earns the same
    with kernel_gym.Evaluator(device, seed=seed) as evaluator:
        for step in range(1, steps + 1):
            choices = policy.draw(group)
            for choice in {tuple(row) for row in choices.tolist()} - cache.keys():
                evaluation = evaluator.evaluate(task, tuning.render(choice))
                cache[choice] = reward(evaluation).value
            rewards = [cache[tuple(row)] for row in choices.tolist()]
            loss = -(advantages(rewards) * policy.log_probability(choices)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            valid = [value for value in rewards if value is not None]
            mean = sum(valid) / max(1, len(valid))
            print(f"step {step}: mean reward {mean:.3f}, best {max(valid, default=0.0):.3f}")
    best = [int(row.argmax()) for row in policy.logits]
    print("most likely schedule:", tuning.schedule(best))
    return policy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="triton2triton/layer_norm")
    parser.add_argument("--device", default="sim:gfx942")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--group", type=int, default=8, help="schedules in a step")
    parser.add_argument("--rate", type=float, default=0.3, help="learning rate")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    train(**{("task_id" if name == "task" else name): v for name, v in vars(options).items()})

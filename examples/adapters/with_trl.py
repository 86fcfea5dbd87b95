"""TRL 1.16: the environment factory and the reward function, played without a model.

trainer = GRPOTrainer(..., train_dataset=Dataset.from_list(ROWS), environment_factory=FACTORY)
trainer = GRPOTrainer(..., reward_funcs=KernelReward(executor))

python examples/adapters/with_trl.py
"""

from functools import partial

from kernel_gym.envs.adapters.trl import KernelTools
from kernel_gym.envs.adapters.trl_reward import KernelReward
from kernel_gym.executors import make_executor
from kernel_gym.tasks import get_task

TASK, DEVICE = "triton2triton/softmax", "sim:gfx942"
REPLY = get_task(TASK).start_source
FACTORY = partial(KernelTools, task=TASK, device=DEVICE, max_turns=1)
ROWS = [{"prompt": [{"role": "user", "content": ""}], "task": TASK}]


def episode() -> None:
    tools = FACTORY()
    tools.reset(**ROWS[0])
    tools.submit_kernel(REPLY)
    print(f"environment: reward {tools.get_reward():.3f}")
    with make_executor("inline", device=DEVICE) as executor:
        (reward,) = KernelReward(executor)(completions=[REPLY], task=[TASK])
    print(f"function: reward {reward:.3f}")


if __name__ == "__main__":
    episode()

"""OpenRLHF 0.11: the reward function, called without a model.

Its dataset has the prompt in `input` and the task id in `label`.

    python -m openrlhf.cli.train_ppo_ray \
        --reward.remote_url kernel_gym/envs/adapters/openrlhf.py      # single replies
    python -m openrlhf.cli.train_ppo_ray \
        --train.agent_func_path kernel_gym/envs/adapters/openrlhf.py  # several turns

    KERNEL_GYM_DEVICE=sim:gfx942 python examples/adapters/with_openrlhf.py
"""

from kernel_gym.envs.adapters.openrlhf import reward_func
from kernel_gym.tasks import get_task

TASK = "triton2triton/softmax"


def episode() -> None:
    prompt, reply = "the prompt of the row", get_task(TASK).start_source
    answer = reward_func([prompt + reply], [prompt], [TASK])
    print(f"reward {float(answer['rewards'][0]):.3f}, logs {sorted(answer['extra_logs'])}")


if __name__ == "__main__":
    episode()

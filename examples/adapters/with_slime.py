"""slime: the reward function, called without a model.

Its dataset has the prompt, and the task id as label.

    python train.py --custom-rm-path kernel_gym.envs.adapters.slime.custom_rm

    KERNEL_GYM_DEVICE=sim:gfx942 python examples/adapters/with_slime.py
"""

import asyncio
from types import SimpleNamespace

from kernel_gym.envs.adapters.slime import custom_rm
from kernel_gym.tasks import get_task

TASK = "triton2triton/softmax"


async def episode() -> None:
    # Has the attributes of slime.utils.types.Sample that the reward function reads.
    sample = SimpleNamespace(response=get_task(TASK).start_source, label=TASK, metadata={"seed": 0})
    print(f"reward {await custom_rm(None, sample):.3f}")


if __name__ == "__main__":
    asyncio.run(episode())

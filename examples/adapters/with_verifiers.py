"""verifiers 0.4 and prime-rl: a taskset of named tasks, and one of generated tasks without end.

vf-eval kernel_gym.envs.adapters.verifiers --model MODEL

KERNEL_GYM_DEVICE=sim:gfx942 python examples/adapters/with_verifiers.py
"""

import asyncio
from contextlib import asynccontextmanager
from itertools import islice
from types import SimpleNamespace

from kernel_gym.tasks import get_task

try:
    from kernel_gym.envs.adapters.verifiers import (
        KernelEnvConfig,
        KernelTaskset,
        KernelTasksetConfig,
        VerifiersKernelEnv,
    )
except ImportError as error:
    raise SystemExit(f"{error.name} is missing: pip install 'verifiers>=0.4,<0.5'") from None

TASK = "triton2triton/softmax"


class Scripted:
    """An agent of one reply, in place of a model."""

    trace = SimpleNamespace(record_reward=lambda name, value: print(f"reward {value:.3f}"))

    async def turn(self, prompt):
        return SimpleNamespace(last_reply=get_task(TASK).start_source, terminated=False)


@asynccontextmanager
async def interaction(task):
    yield Scripted()


def episode() -> None:
    (row,) = KernelTaskset(KernelTasksetConfig(tasks=(TASK,), seed=0))
    env = object.__new__(VerifiersKernelEnv)  # verifiers makes it with its harness and the model
    env.config = KernelEnvConfig(max_turns=1)
    asyncio.run(env.run(row, SimpleNamespace(player=SimpleNamespace(interaction=interaction))))
    endless = KernelTaskset(KernelTasksetConfig(depth=3))
    names = [task.data.kernel_task for task in islice(endless.load(), 3)]
    print(f"infinite: {endless.INFINITE}, {names}")


if __name__ == "__main__":
    episode()

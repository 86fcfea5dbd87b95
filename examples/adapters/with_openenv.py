"""OpenEnv 0.10: an episode over its protocol.

python -m kernel_gym.envs.adapters.openenv --task triton2triton/softmax --device sim:gfx942 &

python examples/adapters/with_openenv.py http://127.0.0.1:8000
"""

import sys

from kernel_gym.tasks import get_task

try:
    from kernel_gym.envs.adapters.openenv_client import KernelAction, KernelClient
except ImportError as error:
    raise SystemExit(f"{error.name} is missing: pip install 'openenv>=0.10,<0.11'") from None

TASK = "triton2triton/softmax"


def episode(url: str) -> None:
    with KernelClient(base_url=url).sync() as client:
        client.reset(seed=0, task=TASK)
        result = client.step(KernelAction(source=get_task(TASK).start_source))
        print(f"reward {result.reward:.3f}, done {result.done}")


if __name__ == "__main__":
    try:
        episode(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000")
    except ConnectionError as error:
        raise SystemExit(f"{error}; start the server first, with the command above") from None

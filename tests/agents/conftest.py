"""Real desks and workspaces on the simulator."""

import pytest

from kernel_gym.agents.desk import Desk, Recorder
from kernel_gym.executors import make_executor
from kernel_gym.rewards import get_reward
from kernel_gym.storage.run_records import RunConfig
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import get_task

TASK = "triton2triton/softmax"
DEVICE = "sim:gfx942"


@pytest.fixture(scope="session")
def pool():
    with make_executor("inline", device=DEVICE) as executor:
        yield executor


@pytest.fixture
def make_desk(tmp_path, pool):
    """Makes a desk of a new run, or of the one that the test began."""

    def make(submissions=3, task=TASK, seed=0):
        config = RunConfig(
            policy="agent",
            suite=task,
            tasks=(task,),
            device=DEVICE,
            reward="kernel-opt",
            turns=submissions + 1,
            seed=seed,
        )
        store = RunStore.start(tmp_path / "run", config, resume=True, secret=pool.secret)
        return Desk(get_task(task), Recorder(store, get_reward()), pool)

    return make

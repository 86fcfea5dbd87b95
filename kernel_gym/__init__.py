"""Reinforcement-learning environments for GPU-kernel optimisation on AMD GPUs.

Importing the package registers its Gymnasium environments by name. It loads neither PyTorch nor a
device: each public name below is imported from its module when it is first used (PEP 562).

Example:
    >>> import kernel_gym
    >>> task = kernel_gym.get_task("triton2triton/softmax")
    >>> evaluation = kernel_gym.evaluate(task, "not a kernel", device="sim:gfx942", seed=0)
    >>> str(evaluation.outcome)
    'compile_error'
    >>> kernel_gym.get_reward("kernel-opt")(evaluation).value
    0.02
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from kernel_gym.analysis.replay import replay, rescore
    from kernel_gym.errors import InputError
    from kernel_gym.evaluator import Evaluator, evaluate
    from kernel_gym.executors import make_executor
    from kernel_gym.policies import make_policy
    from kernel_gym.policies.evaluate import evaluate_policy
    from kernel_gym.records import Evaluation, Outcome
    from kernel_gym.rewards import get_reward, register_reward
    from kernel_gym.storage.run_store import RunStore
    from kernel_gym.tasks import Task, add_tasks_path, get_task, load_suite

__version__ = "0.1.0"

__all__ = [
    "Evaluation",
    "Evaluator",
    "InputError",
    "Outcome",
    "RunStore",
    "Task",
    "__version__",
    "add_tasks_path",
    "evaluate",
    "evaluate_policy",
    "get_reward",
    "get_task",
    "load_suite",
    "make_executor",
    "make_policy",
    "register_reward",
    "replay",
    "rescore",
]

_MODULES = {
    "analysis.replay": "replay rescore",
    "errors": "InputError",
    "evaluator": "Evaluator evaluate",
    "executors": "make_executor",
    "policies": "make_policy",
    "policies.evaluate": "evaluate_policy",
    "records": "Evaluation Outcome",
    "rewards": "get_reward register_reward",
    "storage.run_store": "RunStore",
    "tasks": "Task add_tasks_path get_task load_suite",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Imports a public name from the module that defines it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Lists the public names and what the module holds."""
    return sorted({*globals(), *__all__})


# A GPU's times differ from run to run, so the registration says that the environments are not
# deterministic. On the simulator equal seeds give equal observations, rewards and infos.
gymnasium.register(
    id="KernelOpt-v0",
    entry_point="kernel_gym.envs.kernel_opt:KernelOptEnv",
    vector_entry_point="kernel_gym.envs.vector:KernelOptVectorEnv",
    nondeterministic=True,
)
gymnasium.register(
    id="KernelTune-v0",
    entry_point="kernel_gym.envs.kernel_tune:KernelTuneEnv",
    nondeterministic=True,
)

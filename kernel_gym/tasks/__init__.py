"""What to solve: problems, tasks, workloads and the suites that list them.

Names are imported on first use. Code that only reads records needs the splits and kinds of
workloads but not PyTorch, which takes seconds to load.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel_gym.tasks.distributions import DISTRIBUTIONS, draw, draw_index
    from kernel_gym.tasks.names import Mode, UnknownName, problem_names, task_ids
    from kernel_gym.tasks.problem import (
        CATEGORIES,
        Axis,
        Check,
        Dims,
        Output,
        Problem,
        ScalarArg,
        Scale,
        TensorArg,
        Value,
        points,
    )
    from kernel_gym.tasks.prompting import prompt
    from kernel_gym.tasks.registry import (
        TasksPathError,
        add_tasks_path,
        get_problem,
        get_task,
        get_tuning,
        tunable_names,
    )
    from kernel_gym.tasks.sampling import (
        adversarial_workloads,
        make_inputs,
        train_workloads,
        unseen_workloads,
    )
    from kernel_gym.tasks.signature import c_prototype, python_prototype
    from kernel_gym.tasks.suite import Suite, SuiteError, load_suite, suites
    from kernel_gym.tasks.task import Task
    from kernel_gym.tasks.tuning import Tuning
    from kernel_gym.tasks.workload import UNSEEN_KINDS, Kind, Layout, Split, Workload

__all__ = [
    "CATEGORIES",
    "DISTRIBUTIONS",
    "UNSEEN_KINDS",
    "Axis",
    "Check",
    "Dims",
    "Kind",
    "Layout",
    "Mode",
    "Output",
    "Problem",
    "ScalarArg",
    "Scale",
    "Split",
    "Suite",
    "SuiteError",
    "Task",
    "TasksPathError",
    "TensorArg",
    "Tuning",
    "UnknownName",
    "Value",
    "Workload",
    "add_tasks_path",
    "adversarial_workloads",
    "c_prototype",
    "draw",
    "draw_index",
    "get_problem",
    "get_task",
    "get_tuning",
    "load_suite",
    "make_inputs",
    "points",
    "problem_names",
    "prompt",
    "python_prototype",
    "suites",
    "task_ids",
    "train_workloads",
    "tunable_names",
    "unseen_workloads",
]

_NAMES = {
    "distributions": "DISTRIBUTIONS draw draw_index",
    "problem": "CATEGORIES Axis Check Dims Output Problem ScalarArg Scale TensorArg Value points",
    "prompting": "prompt",
    "names": "Mode UnknownName problem_names task_ids",
    "registry": "TasksPathError add_tasks_path get_problem get_task get_tuning tunable_names",
    "sampling": "adversarial_workloads make_inputs train_workloads unseen_workloads",
    "signature": "c_prototype python_prototype",
    "suite": "Suite SuiteError load_suite suites",
    "task": "Task",
    "tuning": "Tuning",
    "workload": "UNSEEN_KINDS Kind Layout Split Workload",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Imports a public name from the module that defines it (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Returns the public names."""
    return __all__

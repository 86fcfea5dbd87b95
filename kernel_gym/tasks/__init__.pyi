# The public names, once: type checkers read this file, and the first use imports from it.
from .distributions import DISTRIBUTIONS as DISTRIBUTIONS, draw as draw, draw_index as draw_index
from .names import (
    Mode as Mode,
    UnknownName as UnknownName,
    problem_names as problem_names,
    task_ids as task_ids,
)
from .problem import (
    CATEGORIES as CATEGORIES,
    Axis as Axis,
    Check as Check,
    Dims as Dims,
    Output as Output,
    Problem as Problem,
    ScalarArg as ScalarArg,
    Scale as Scale,
    TensorArg as TensorArg,
    Value as Value,
    points as points,
)
from .prompting import prompt as prompt
from .registry import (
    TasksPathError as TasksPathError,
    add_tasks_path as add_tasks_path,
    get_problem as get_problem,
    get_task as get_task,
    get_tuning as get_tuning,
    tunable_names as tunable_names,
)
from .sampling import (
    adversarial_workloads as adversarial_workloads,
    make_inputs as make_inputs,
    train_workloads as train_workloads,
    unseen_workloads as unseen_workloads,
)
from .signature import c_prototype as c_prototype, python_prototype as python_prototype
from .suite import (
    Suite as Suite,
    SuiteError as SuiteError,
    load_suite as load_suite,
    suites as suites,
)
from .task import Task as Task
from .tuning import Tuning as Tuning
from .workload import (
    UNSEEN_KINDS as UNSEEN_KINDS,
    Kind as Kind,
    Layout as Layout,
    Split as Split,
    Workload as Workload,
)

# The public names, once: type checkers read this file, and the first use imports from it.
from .analysis.replay import replay as replay, rescore as rescore
from .errors import InputError as InputError
from .evaluator import Evaluator as Evaluator, evaluate as evaluate
from .executors import make_executor as make_executor
from .policies import make_policy as make_policy
from .policies.evaluate import evaluate_policy as evaluate_policy
from .programs.enabling import enable_simulation as enable_simulation
from .records import Evaluation as Evaluation, Outcome as Outcome
from .rewards import get_reward as get_reward, register_reward as register_reward
from .storage.run_store import RunStore as RunStore
from .tasks import (
    Task as Task,
    add_tasks_path as add_tasks_path,
    get_task as get_task,
    load_suite as load_suite,
)

__version__: str

"""Makes tasks of recorded calls from texts: an implementation, and tests that call it."""

from kernel_gym.imports.bench.import_bench import ImportBench
from kernel_gym.imports.readers.recording import problem_of, record
from kernel_gym.imports.recorded.problem import Origin
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.task import Task
from tests.imports.readers.suites import halves


def origin_of(implementation, functions):
    """Returns the facts that a reader would know of such a task."""
    words = ("tiny", functions[0], "Math", "a tiny task", "Make it faster.")
    return Origin(*words, implementation, tuple(functions))


def recorded_task(implementation, tests, functions, bench: ImportBench):
    """Records the calls that tests make, states workloads, and returns the task.

    Raises:
        UnsupportedTask: It cannot become a task.
    """
    text = halves(implementation, tests)
    options = {
        "style": "halves",
        "file": "tiny.py",
        "line": implementation.count("\n") + 1,
        "functions": list(functions),
    }
    origin = origin_of(implementation, functions)
    data = record(bench, origin, Mode.TRITON2TRITON, {"tiny.py": text.encode()}, options)
    return Task(problem_of(origin, data), Mode.TRITON2TRITON)

"""Commands that only read load nothing that takes seconds; found by what is imported, not timed."""

import subprocess
import sys

import pytest

import kernel_gym.tasks
from tests.test_store import CONFIG, RunStore, end_all, record

HEAVY = ("torch", "triton", "scipy", "matplotlib", "transformers", "ray", "jinja2")
LOADED = f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
RUN = f"""
import sys
from kernel_gym.cli import app
try:
    app(sys.argv[1:])
finally:
    {LOADED}
"""


def heavy(code, *arguments):
    """The heavy packages that are loaded when the code has run."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True).stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    store = RunStore.start(tmp_path_factory.mktemp("light") / "run", CONFIG)
    store.append(record(CONFIG.tasks[0], 1), "x")
    end_all(store)
    return store.folder


@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        ("--help", "[]"),
        ("bench --help", "[]"),
        ("rescore RUN --reward agentkernelarena --json", "[]"),
        ("compare RUN RUN", "['scipy']"),  # whose bootstrap makes the intervals
    ],
)
def test_commands_that_read_load_nothing_they_do_not_need(run, arguments, loaded):
    given = [str(run) if word == "RUN" else word for word in arguments.split()]
    assert heavy(RUN, *given) == loaded


def test_records_and_rewards_load_nothing_heavy():
    assert heavy(f"import sys, kernel_gym.rewards, kernel_gym.records\n{LOADED}") == "[]"
    assert heavy(f"import sys, kernel_gym.tasks as t\nt.draw\n{LOADED}") == "['torch']"


def test_every_public_name_of_tasks_is_there_and_no_other():
    found = {name: getattr(kernel_gym.tasks, name) for name in kernel_gym.tasks.__all__}
    assert dir(kernel_gym.tasks) == sorted(kernel_gym.tasks.__all__)
    assert set(kernel_gym.tasks._HOMES) == set(found)
    assert callable(found["prompt"])
    with pytest.raises(ImportError, match="cannot import name 'tasks_of'"):
        from kernel_gym.tasks import tasks_of  # noqa: F401

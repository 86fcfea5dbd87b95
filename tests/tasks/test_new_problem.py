"""A new problem is complete: it can be registered, and its values are right."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kernel_gym.tasks.new_problem import NewProblemError, new_problem

CHECK = """
import sys
from kernel_gym.tasks import Scale, get_task, make_inputs, prompt, train_workloads
from kernel_gym.tasks.registry import add_tasks_path
add_tasks_path(sys.argv[1])
task = get_task("triton2triton/my_silu")
workload = train_workloads(task.problem, Scale.SIM)[0]
inputs = make_inputs(task.problem, workload, 0)
task.problem.reference(**inputs)
assert "def my_silu(" in prompt(task, "a device")
print(type(task.problem).__name__)
"""


def test_a_new_problem_can_be_used(tmp_path):
    paths = new_problem("my_silu", tmp_path)
    assert sorted(path.name for path in paths) == ["baseline.py", "formula.py", "problem.py"]
    command = [sys.executable, "-c", CHECK, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "MySilu"


@pytest.mark.parametrize("name", ["softmax", "My-Name", "class", "../up", "a b", ""])
def test_a_name_that_cannot_be_one_is_refused(tmp_path, name):
    with pytest.raises(NewProblemError, match="name: "):
        new_problem(name, tmp_path)
    assert list(tmp_path.iterdir()) == []

"""On a GPU the judge draws inputs and computes the oracle there. The simulated one shows that no
tensor of the host comes between: PyTorch refuses that on both."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_gym.tasks.names import problem_names

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys
import kernel_gym
kernel_gym.enable_simulation(threads=1)
import torch
from kernel_gym.judge.expected import expect
from kernel_gym.tasks import get_task
from kernel_gym.tasks.problem import Scale
from kernel_gym.tasks.sampling import adversarial_workloads, train_workloads

failures = {}
for name in json.loads(sys.argv[1]):
    problem = get_task(name).problem
    workloads = train_workloads(problem, Scale.SIM)[:1]
    for workload in (*workloads, *adversarial_workloads(problem, Scale.SIM, "triton")):
        try:
            expect(problem, workload, 0, torch.device("cuda"))
        except RuntimeError as error:
            failures[f"{name} {workload.name}"] = str(error)
print(json.dumps(failures))
"""
FEW = ("rms_norm", "viterbi", "quantize_per_token_int8", "moe_topk_softmax", "rope")


def failures(problems):
    tasks = json.dumps([f"triton2triton/{problem}" for problem in problems])
    command = [sys.executable, "-c", PROGRAM, tasks]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_inputs_and_oracle_of_a_few_problems_are_made_on_a_gpu():
    assert failures(FEW) == {}


@pytest.mark.sweep
@pytest.mark.timeout(1800)
def test_inputs_and_oracle_of_all_problems_are_made_on_a_gpu():
    """Eight minutes."""
    assert failures(problem_names()) == {}

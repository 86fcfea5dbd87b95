"""AgentKernelArena: `evaluate_compilation` and `evaluate_correctness` of `src/evaluator.py`."""

from __future__ import annotations

from pathlib import Path

from kernel_gym.judges.adapters.scripted import ScriptedJudge
from kernel_gym.judges.adapters.texts import RUN_FORKED, SHAPES, names_of
from kernel_gym.judges.corpus import Candidate

SCRIPT = """
import json
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from src import evaluator_utils
from src.evaluator import evaluate_compilation, evaluate_correctness
from src.harness_guard import snapshot_workspace_harness, verify_workspace_harness

evaluator_utils.subprocess = forked
workspace = Path("workspace").resolve()
command = f"{sys.executable} scripts/task_runner.py"
config = {
    "task_type": "triton2triton",
    "source_file_path": ["source/candidate.py"],
    "compile_command": [command + " compile"],
    "correctness_command": [command + " correctness"],
}
snapshot = snapshot_workspace_harness(workspace)
accepted, why = evaluate_compilation(workspace, config)
if accepted:
    accepted, why = evaluate_correctness(workspace, config)
if accepted:
    verify_workspace_harness(snapshot)
Path("verdict.json").write_text(json.dumps({"accepted": accepted, "why": (why or "")[-300:]}))
"""


def write(candidate: Candidate, checkout: Path, folder: Path) -> None:
    """Writes a workspace with the candidate and a task runner like those of its tasks."""
    for name in ("source", "scripts"):
        (folder / "workspace" / name).mkdir(parents=True)
    (folder / "workspace/source/candidate.py").write_text(candidate.source)
    (folder / "workspace/source/definition.py").write_text(candidate.problem.source)
    names, number = names_of(candidate), len(candidate.problem.arguments)
    (folder / "workspace/scripts/task_runner.py").write_text(
        f"""import importlib.util
import os
import sys

import torch

TASK_DIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEST_SHAPES = {SHAPES}


def load(name):
    path = os.path.join(TASK_DIR, "source", name + ".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_correctness():
    candidate, definition = load("candidate"), load("definition")
    for i, shape in enumerate(TEST_SHAPES):
        torch.manual_seed(42 + i)
        {names}, = (torch.randn(shape, device="cuda") for _ in range({number}))
        output = candidate.run({names})
        torch.cuda.synchronize()
        ref = definition.reference({names})
        if not torch.allclose(output.float(), ref.float(), atol=1e-2, rtol=1e-2):
            return False
    return True


ok = hasattr(load("candidate"), "run") if sys.argv[1] == "compile" else run_correctness()
print(f"{{sys.argv[1]}}: {{'PASS' if ok else 'FAIL'}}")
sys.exit(0 if ok else 1)
"""
    )


ADAPTER = ScriptedJudge(
    name="agent-kernel-arena",
    repository="AMD-AGI/AgentKernelArena",
    settings=(
        "The adapter runs `evaluate_compilation` and `evaluate_correctness`. It then checks that "
        "the harness is unchanged. In the arena, each task brings its own harness. Our harness "
        "works like those of `triton2triton/vllm`. It loads the candidate into its own process, "
        "seeds each shape with 42 and the shape's number, calls the candidate before the "
        "definition, and compares with `allclose` at 1e-2. There are four shapes. The arena's "
        "commands run as children of a process that has loaded PyTorch. The adapter does not "
        "request the speedup, which is part of the score."
    ),
    needed=("src/evaluator.py", "src/harness_guard.py"),
    script=RUN_FORKED + SCRIPT,
    write=write,
)

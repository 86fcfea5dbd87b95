"""Audits what each version of Triton compiles, and prints a table of the faults it finds.

Each start kernel of a suite is evaluated under each version, on the simulator, with audits. The
versions are those in a folder (`pip install --no-deps --target DIR/3.6.0 triton==3.6.0`) and the
one that is installed.

    KERNEL_GYM_TRITONS=DIR python -m benchmarks.triton_hazards [SUITE]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SUITE = "quickstart"
ALONE = "KERNEL_GYM_TRITONS_ALONE"  # set in the processes that evaluate under one version


def main(arguments: list[str]) -> None:
    """Evaluates a suite under each version and prints a Markdown table."""
    suite = arguments[0] if arguments else SUITE
    if ALONE in os.environ:
        evaluate(suite)
        return
    folder = os.environ.get("KERNEL_GYM_TRITONS", "")
    paths = [str(path.resolve()) for path in sorted(Path(folder).iterdir())] if folder else []
    print("| Triton | Triton kernels | passed | not passed |\n|---|---|---|---|")
    for path in [*paths, ""]:
        print(row(suite, path), flush=True)


def row(suite: str, path: str) -> str:
    """Returns the row of the version that lies at a path; empty: the installed one."""
    environment = {**os.environ, ALONE: "1", **({"PYTHONPATH": path} if path else {})}
    command = [sys.executable, __file__, suite]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout)
    faults = "; ".join(result["faults"]) or "none"
    return f"| {result['triton']} | {result['tasks']} | {result['passed']} | {faults} |"


def evaluate(suite: str) -> None:
    """Evaluates the Triton start kernels of a suite and prints the outcomes as JSON."""
    import triton

    from kernel_gym.evaluator import Evaluator
    from kernel_gym.records import Outcome
    from kernel_gym.tasks import load_suite

    tasks = [task for task in load_suite(suite).tasks if task.language == "triton"]
    sources = {task: source for task in tasks if (source := task.baseline_source)}
    faults = []
    with Evaluator(device="sim:gfx942", seed=0) as evaluator:
        for task, source in sources.items():
            result = evaluator.evaluate(task, source)
            if result.outcome is not Outcome.PASSED:
                faults.append(f"{task.id}: {result.outcome.value}: {result.message[:120]}")
    passed = len(sources) - len(faults)
    summary = {"triton": triton.__version__, "tasks": len(sources), "passed": passed}
    print(json.dumps(summary | {"faults": faults}))


if __name__ == "__main__":
    main(sys.argv[1:])

"""SOL-ExecBench: its script `driver/templates/eval_driver.py`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from kernel_gym.judges.adapters.scripted import ScriptedJudge
from kernel_gym.judges.adapters.texts import SHAPES, module_with_function
from kernel_gym.judges.corpus import Candidate

SOURCE = "src/sol_execbench"
SCRIPT = """
import json, os, runpy, statistics, sys, types
from pathlib import Path

here = Path.cwd()
sys.modules["cupti"] = types.ModuleType("cupti")
sys.modules["cupti"].cupti = None
sys.path.insert(0, sys.argv[1] + "/src")
from sol_execbench.core.bench import timing

timing.bench_gpu_time_with_cupti = timing.bench_time_with_cuda_events
shown = os.dup(1)
out = os.open(here / "traces.jsonl", os.O_WRONLY | os.O_CREAT)
os.dup2(out, 1)
sys.argv = [str(here / "eval_driver.py")]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit:
    pass
traces = [json.loads(line)["evaluation"] for line in (here / "traces.jsonl").open()]
states = [trace["status"] for trace in traces]
expected = len((here / "workload.jsonl").read_text().splitlines())
verdict = {"accepted": states == ["PASSED"] * expected}
refused = [t for t in traces if t["status"] != "PASSED"]
verdict["why"] = "; ".join(t["status"] + " " + str(t.get("log", ""))[-120:] for t in refused)
if verdict["accepted"]:
    verdict["paid"] = statistics.geometric_mean(
        max(1e-9, trace["performance"]["speedup_factor"]) for trace in traces
    )
(here / "verdict.json").write_text(json.dumps(verdict))
"""


def documents(candidate: Candidate, spec: dict[str, object]) -> dict[str, Any]:
    """Returns definition, solution and workloads, as this family of judges has them.

    Args:
        candidate: The candidate.
        spec: Fields of the solution's specification besides the entry point.
    """
    tensor = {"shape": ["rows", "columns"], "dtype": "float32"}
    arguments = candidate.problem.arguments
    reference = module_with_function(candidate.problem.source, "reference", candidate, "run")
    entry = {"entry_point": "candidate.py::run", "destination_passing_style": False}
    return {
        "definition": {
            "name": "operation",
            "op_type": "operation",
            "axes": {"rows": {"type": "var"}, "columns": {"type": "var"}},
            "inputs": dict.fromkeys(arguments, tensor),
            "outputs": {"y": tensor},
            "reference": reference,
        },
        "solution": {
            "name": "candidate",
            "definition": "operation",
            "author": "corpus",
            "spec": entry | spec,
            "sources": [{"path": "candidate.py", "content": candidate.source}],
        },
        "workloads": [
            {
                "uuid": f"00000000-0000-4000-8000-{number:012d}",
                "axes": {"rows": rows, "columns": columns},
                "inputs": {name: {"type": "random"} for name in arguments},
            }
            for number, (rows, columns) in enumerate(SHAPES)
        ],
    }


def write(candidate: Candidate, checkout: Path, folder: Path) -> None:
    """Writes definition, workloads, solution and configuration."""
    driver = checkout / SOURCE / "driver/templates/eval_driver.py"
    shutil.copyfile(driver, folder / "eval_driver.py")
    texts = documents(candidate, {"languages": ["triton"], "target_hardware": ["LOCAL"]})
    lines = (json.dumps(workload) + "\n" for workload in texts["workloads"])
    (folder / "definition.json").write_text(json.dumps(texts["definition"]))
    (folder / "solution.json").write_text(json.dumps(texts["solution"]))
    (folder / "workload.jsonl").write_text("".join(lines))
    (folder / "config.json").write_text(json.dumps({"warmup_runs": 2, "iterations": 5}))
    (folder / "candidate.py").write_text(candidate.source)


ADAPTER = ScriptedJudge(
    name="sol-execbench",
    repository="NVIDIA/SOL-ExecBench",
    settings=(
        "The adapter runs `eval_driver.py` with its default tolerance (99 % of the elements within "
        "1e-2 and 1e-2) and its seed 200. It makes ten rounds of random inputs on four shapes. The "
        "clock is CUPTI, which AMD GPUs lack, so the driver's own function for CUDA events "
        "replaces it. There are 2 warm-up calls and 5 timed calls instead of 10 and 50, because "
        "modelled times repeat. The speedup is the geometric mean over the shapes."
    ),
    needed=(f"{SOURCE}/driver/templates/eval_driver.py", f"{SOURCE}/core/bench/timing.py"),
    script=SCRIPT,
    write=write,
)

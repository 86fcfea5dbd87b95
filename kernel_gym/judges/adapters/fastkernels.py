"""FastKernels: the worker of its `fastkernels/bench.py`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from kernel_gym.judges.adapters.scripted import ScriptedJudge
from kernel_gym.judges.adapters.texts import SHAPES, module_with_class
from kernel_gym.judges.corpus import Candidate

SCRIPT = """
import json, os, runpy, statistics, sys, types
from pathlib import Path

# The worker asks for these for every operator; they serve 8-bit floats and need CUDA packages.
linear = types.ModuleType("fastkernels.tasks.baseline.L1.fp8_linear")
linear.Fp8Linear = type("Fp8Linear", (), {})
loader = types.ModuleType("fastkernels.infra.weight_loader")
loader._postprocess_moe_fp8_weights = None
sys.modules |= {module.__name__: module for module in (linear, loader)}
here = Path.cwd()
sys.path.insert(0, str(here))
out = os.open(here / "results.jsonl", os.O_WRONLY | os.O_CREAT)
os.dup2(out, 1)
name = "fastkernels.tasks.baseline.L1.corpus_operation:Operation"
sys.argv = ["bench", "--worker", "--op", name, "--captures", str(here / "captures")]
sys.argv += ["--warmup", "2", "--iters", "5"]
try:
    runpy.run_module("fastkernels.bench", run_name="__main__", alter_sys=True)
except SystemExit:
    pass
results = [json.loads(line) for line in (here / "results.jsonl").open()]
states = [result["status"] for result in results]
report = json.loads((here / "captures/report.json").read_text())
cases = len(report["operators"][name]["forward"]["variants"])
if "SKIPPED" in states or "ModuleNotFoundError" in str(results):
    sys.exit(str(results))
refused = [result for result in results if result["status"] != "PASSED"]
verdict = {"accepted": len(results) == cases and not refused}
verdict["why"] = "; ".join(r["status"] + " " + str(r.get("detail", "")) for r in refused)
if verdict["accepted"]:
    paid = [result["speedup"] for result in results if result.get("speedup")]
    verdict["paid"] = statistics.geometric_mean(paid) if paid else None
(here / "verdict.json").write_text(json.dumps(verdict))
"""


def write(candidate: Candidate, checkout: Path, folder: Path) -> None:
    """Writes baseline, candidate and a report of captured shapes into a copy of the package."""
    package = folder / "fastkernels"
    unused = shutil.ignore_patterns("tasks", "__pycache__")
    shutil.copytree(checkout / "fastkernels", package, ignore=unused)
    for place, source, function in (
        ("baseline", candidate.problem.source, "reference"),
        ("candidate", candidate.source, "run"),
    ):
        level = package / "tasks" / place / "L1"
        level.mkdir(parents=True, exist_ok=True)
        text = module_with_class(source, function, candidate, "Operation")
        (level / "corpus_operation.py").write_text(text)
    variants = [
        {
            "count": 1,
            "args": {
                name: {"shape": list(shape), "dtype": "float32"}
                for name in candidate.problem.arguments
            },
        }
        for shape in SHAPES
    ]
    entry = {"init": None, "forward": {"variants": variants}}
    report = {"operators": {"fastkernels.tasks.baseline.L1.corpus_operation:Operation": entry}}
    (folder / "captures").mkdir()
    (folder / "captures" / "report.json").write_text(json.dumps(report))


ADAPTER = ScriptedJudge(
    name="fastkernels",
    repository="Snowflake-AI-Research/fastkernels",
    settings=(
        "The adapter runs `python -m fastkernels.bench --worker` on a copy of the package with one "
        "operator at level L1. This command makes three rounds of random inputs (its seeds 200 to "
        "202) on four shapes, requires 99 % of the elements within 1e-5 and 1e-3, and runs its "
        "checks against hacks. Its unused loaders of 8-bit weights need CUDA packages, so empty "
        "modules replace them. There are 2 warm-up calls and 5 timed calls instead of 10 and 50, "
        "because modelled times repeat. The speedup is the geometric mean over the shapes."
    ),
    needed=("fastkernels/bench.py", "fastkernels/capture.py"),
    script=SCRIPT,
    write=write,
)

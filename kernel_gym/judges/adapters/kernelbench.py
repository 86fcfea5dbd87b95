"""KernelBench: `eval_kernel_against_ref` of `src/kernelbench/eval.py`, after its static checker."""

from __future__ import annotations

import json
from pathlib import Path

from kernel_gym.judges.adapter import Reading, need, result_text
from kernel_gym.judges.adapters.texts import candidate_model, reference_model
from kernel_gym.judges.corpus import Candidate
from kernel_gym.judges.verdicts import JudgeAnswer

RESULT = "verdict.json"
DRIVER = """
import json, sys, types
from pathlib import Path

for name in ("datasets", "dotenv", "litellm", "openai", "requests", "tqdm"):
    try:
        __import__(name)
    except ImportError:
        stub = types.ModuleType(name)
        stub.load_dotenv = stub.completion = stub.OpenAI = stub.tqdm = lambda *a, **k: None
        sys.modules[name] = stub
sys.path.insert(0, sys.argv[1])
import torch
from kernelbench.eval import eval_kernel_against_ref
from kernelbench.kernel_static_checker import validate_kernel_static

source = Path("candidate.py").read_text()
allowed, errors, warnings = validate_kernel_static(source, backend="triton", precision="fp32")
verdict = {"static": errors, "correct": False, "speedup": None, "why": ""}
if allowed:
    result = eval_kernel_against_ref(
        Path("reference.py").read_text(), source, num_correct_trials=5, num_perf_trials=10,
        measure_performance=True, timing_method="cuda_event", device=torch.device("cuda:0"),
        backend="triton", precision=torch.float32,
    )
    if result is not None:
        verdict["correct"] = bool(result.compiled and result.correctness)
        verdict["why"] = str({k: str(v)[:200] for k, v in result.metadata.items()})
        if verdict["correct"] and result.runtime > 0:
            verdict["speedup"] = float(result.ref_runtime / result.runtime)
Path("verdict.json").write_text(json.dumps(verdict))
"""


class KernelBench:
    """Its evaluator with the settings of its script `run_and_check.py`."""

    name = "kernelbench"
    repository = "ScalingIntelligence/KernelBench"
    settings = (
        "The calls and settings of `scripts/run_and_check.py` with `backend=triton`: the static "
        "checker first, 5 trials of correctness, float32 with its tolerance of 1e-4, times by "
        "`cuda_event`. The script itself needs the package of a cloud service. 10 trials of time "
        "instead of 100: modelled times repeat, and each trial fills 256 MB. One shape, 64 x 256, "
        "as its problems have one; inputs by `torch.randn`. A flag of excessive speedup does not "
        "change its verdict."
    )

    def prepare(self, candidate: Candidate, checkout: Path, folder: Path) -> list[str]:
        """Writes `Model`, `ModelNew` and a script that calls the evaluator."""
        need(checkout, "src/kernelbench/eval.py", "src/kernelbench/kernel_static_checker.py")
        (folder / "reference.py").write_text(reference_model(candidate))
        (folder / "candidate.py").write_text(candidate_model(candidate))
        (folder / "driver.py").write_text(DRIVER)
        return ["driver.py", str(checkout / "src")]

    def read(self, folder: Path, output: str) -> Reading:
        """Reads what the evaluator returned."""
        try:
            verdict = json.loads(result_text(folder, RESULT))
            correct, paid = verdict["correct"], verdict["speedup"]
            why = "; ".join(map(str, verdict["static"])) or str(verdict["why"])
        except (ValueError, KeyError, TypeError):
            return Reading(JudgeAnswer.OPEN)
        if correct is not True:
            return Reading(JudgeAnswer.REFUSED, message=why)
        return Reading(JudgeAnswer.ACCEPTED, paid if isinstance(paid, float) else None, why)


ADAPTER = KernelBench()

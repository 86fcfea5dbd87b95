"""KernelBench: `eval_kernel_against_ref` of `src/kernelbench/eval.py`, after its static checker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kernel_gym.judges.adapters.scripted import ScriptedJudge
from kernel_gym.judges.adapters.texts import module_with_class, reference_model
from kernel_gym.judges.corpus import ITSELF, Candidate

SCRIPT = """
import json, sys, types
from pathlib import Path

for name in ("datasets", "dotenv", "litellm", "openai", "requests", "tqdm"):
    try:
        __import__(name)
    except ImportError:
        stub = types.ModuleType(name)
        stub.load_dotenv = stub.completion = stub.OpenAI = stub.tqdm = lambda *a, **k: None
        sys.modules[name] = stub
sys.path.insert(0, sys.argv[1] + "/src")
import torch
from kernelbench.eval import eval_kernel_against_ref
from kernelbench.kernel_static_checker import validate_kernel_static

source = Path("candidate.py").read_text()
allowed, errors, _ = validate_kernel_static(source, backend="triton", precision="fp32")
verdict = {"accepted": False, "why": "; ".join(errors)}
if allowed:
    result = eval_kernel_against_ref(
        Path("reference.py").read_text(), source, num_correct_trials=5, num_perf_trials=10,
        measure_performance=True, timing_method="cuda_event", device=torch.device("cuda:0"),
        backend="triton", precision=torch.float32,
    )
    if result is not None:
        verdict["accepted"] = bool(result.compiled and result.correctness)
        verdict["why"] = str({key: str(value)[:200] for key, value in result.metadata.items()})
        if verdict["accepted"] and result.runtime > 0:
            verdict["paid"] = float(result.ref_runtime / result.runtime)
Path("verdict.json").write_text(json.dumps(verdict))
"""


def write(candidate: Candidate, checkout: Path, folder: Path) -> None:
    """Writes `Model` and `ModelNew`."""
    text = module_with_class(candidate.source, "run", candidate, "ModelNew")
    (folder / "candidate.py").write_text(text)
    if (
        candidate.kind == ITSELF
    ):  # the judge executes the reference as text, and Triton needs a file
        (folder / "definition.py").write_text(candidate.problem.source)
        imported = replace(
            candidate.problem, source="import torch\nfrom definition import reference\n"
        )
        candidate = replace(candidate, problem=imported)
    (folder / "reference.py").write_text(reference_model(candidate))


ADAPTER = ScriptedJudge(
    name="kernelbench",
    repository="ScalingIntelligence/KernelBench",
    settings=(
        "The adapter uses the calls and settings of `scripts/run_and_check.py` with "
        "`backend=triton`. It runs the static checker first, then 5 correctness trials (with seeds "
        "drawn from its seed 42). It uses float32 with a tolerance of 1e-4, and times by "
        "`cuda_event`. The script itself needs a cloud service's package. There are 10 timing "
        "trials instead of 100, because modelled times repeat and each trial fills 256 MB. "
        "KernelBench's problems have one shape, so there is only 64 x 256. Inputs come from "
        "`torch.randn`. A flag for an excessive speedup does not change the verdict. A call that "
        "launches nothing has a modelled time of zero. The evaluator divides by this time, so "
        "there is no verdict."
    ),
    needed=("src/kernelbench/eval.py", "src/kernelbench/kernel_static_checker.py"),
    script=SCRIPT,
    write=write,
)

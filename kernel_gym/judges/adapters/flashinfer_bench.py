"""flashinfer-bench: its `DefaultEvaluator`, as its runners call it."""

from __future__ import annotations

import json
from pathlib import Path

from kernel_gym.judges.adapters.scripted import ScriptedJudge
from kernel_gym.judges.adapters.sol_execbench import documents
from kernel_gym.judges.corpus import Candidate

SCRIPT = """
import json, statistics, sys, types
from pathlib import Path

import torch


def by_events(fn, dry_run_iters, repeat_iters, input_args, **options):
    for _ in range(dry_run_iters):
        fn(*input_args)
    times = []
    for _ in range(repeat_iters):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        fn(*input_args)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return times


for name in ("flashinfer", "flashinfer.testing", "docstring_parser"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["flashinfer.testing"].bench_gpu_time_with_cupti = by_events
sys.path.insert(0, sys.argv[1])
from flashinfer_bench.bench.config import ResolvedEvalConfig
from flashinfer_bench.bench.evaluators.default import DefaultEvaluator
from flashinfer_bench.compile import BuilderRegistry
from flashinfer_bench.data import Definition, Solution, Workload

texts = json.loads(Path("documents.json").read_text())
definition, solution = Definition(**texts["definition"]), Solution(**texts["solution"])
config = ResolvedEvalConfig(warmup_runs=2, iterations=5)
device, states, paid, why = "cuda:0", [], [], ""
for workload in texts["workloads"]:
    base = DefaultEvaluator.build_baseline(definition, Workload(**workload), config, device)
    try:
        runnable = BuilderRegistry.get_instance().build(definition, solution)
    except Exception as error:
        states, why = ["COMPILE_ERROR"], str(error)
        break
    evaluation = DefaultEvaluator.evaluate(
        definition=definition, sol_runnable=runnable, inputs=base.inputs,
        ref_outputs=base.outputs, ref_mean_latency_ms=base.mean_latency_ms, cfg=config,
        log_path="log.txt", device=device,
    )
    states.append(evaluation.status.value)
    if evaluation.performance is not None:
        paid.append(evaluation.performance.speedup_factor)
    if evaluation.status.value != "PASSED":
        why = f"{workload['axes']}: {evaluation.status.value} {evaluation.correctness}"
        break
verdict = {"accepted": states == ["PASSED"] * len(texts["workloads"]), "why": why}
verdict["paid"] = statistics.geometric_mean(paid) if verdict["accepted"] else None
Path("verdict.json").write_text(json.dumps(verdict))
"""


def write(candidate: Candidate, checkout: Path, folder: Path) -> None:
    """Writes definition, workloads and solution."""
    texts = documents(candidate, {"language": "triton", "target_hardware": ["cuda"]})
    (folder / "documents.json").write_text(json.dumps(texts))


ADAPTER = ScriptedJudge(
    name="flashinfer-bench",
    repository="flashinfer-ai/flashinfer-bench",
    settings=(
        "The adapter runs `DefaultEvaluator` in one process, as the runners of flashinfer-bench "
        "do. It uses the defaults: three trials of random inputs without a seed, and atol and rtol "
        "of 1e-2 for all elements. The clock is a function of the package flashinfer, which needs "
        "CUDA, so PyTorch events replace it, without a cold cache. There are 2 warm-up calls and 5 "
        "timed calls instead of 10 and 50. There are four shapes, and the speedup is the geometric "
        "mean. A call that launches nothing has a modelled time of zero. The evaluator divides by "
        "this time, so there is no verdict."
    ),
    needed=("flashinfer_bench/bench/evaluators/default.py",),
    script=SCRIPT,
    write=write,
)

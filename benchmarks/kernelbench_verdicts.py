"""Evaluates candidates with KernelBench's own evaluator, for `compare_kernelbench.py`.

    python kernelbench_verdicts.py SRC ROWS OUT RUN BEGAN [warm | apart]

With `warm` or `apart` times are measured as KernelBench's scripts do. With `warm` one evaluation
comes before the clock starts. With `apart` the start of this process counts, since those scripts
start a process for each evaluation.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import types
from typing import Any

CORRECT_TRIALS, TIMED_TRIALS = 5, 100
"""As in KernelBench's scripts."""


def stub_missing() -> None:
    """Stands in for packages that KernelBench's modules import and evaluation does not need."""
    for name in ("datasets", "dotenv", "litellm", "openai", "requests", "tqdm"):
        try:
            __import__(name)
        except ImportError:
            stub: Any = types.ModuleType(name)
            stub.load_dotenv = stub.completion = stub.OpenAI = stub.tqdm = lambda *a, **k: None
            sys.modules[name] = stub


def evaluate(module: str, source: str, measure: bool) -> dict[str, Any]:
    """Returns the verdict and, if it was measured, the speedup."""
    import torch
    from kernelbench.eval import eval_kernel_against_ref

    try:
        result = eval_kernel_against_ref(
            module,
            source,
            num_correct_trials=CORRECT_TRIALS,
            num_perf_trials=TIMED_TRIALS,
            measure_performance=measure,
            timing_method="cuda_event",
            device=torch.device("cuda:0"),
            backend="triton",
        )
    except Exception as error:  # its scripts count what is raised as not compiled or not right
        return {"verdict": f"raised {type(error).__name__}"}
    if result is None or not result.compiled:
        return {"verdict": "not compiled"}
    if not result.correctness:
        return {"verdict": "incorrect"}
    timed = measure and result.runtime > 0
    return {"verdict": "correct", "speedup": result.ref_runtime / result.runtime if timed else None}


def main() -> None:
    """Writes a line for each candidate."""
    folder, rows, out, run, began = sys.argv[1:6]
    mode = sys.argv[6] if len(sys.argv) > 6 else ""
    stub_missing()
    sys.path.insert(0, folder)
    with open(rows) as file:
        listed = list(json.load(file).items())
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        if mode == "warm":
            module, source = listed[0][1]
            evaluate(module, source, True)
        begin = float(began) if mode == "apart" else time.time()
        for name, (module, source) in listed:
            line = {"run": run, "candidate": name, **evaluate(module, source, bool(mode))}
            line |= {"session": begin, "elapsed": time.time() - begin}
            with open(out, "a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()

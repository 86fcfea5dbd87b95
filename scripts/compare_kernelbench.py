"""Verdicts of kernel-gym and of KernelBench's own evaluator on the same candidates.

Ten problems in KernelBench's layout have a right, a wrong and a cheating candidate each: those of
`tests/tasks/importers/ten_modules.py`. A cheat computes with PyTorch beside a kernel that does
nothing useful. KernelBench's evaluator runs unchanged under `kernel-gym sim`.

    python scripts/compare_kernelbench.py KERNELBENCH --out verdicts.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEVICE = "sim:gfx942"
KINDS = ("right", "wrong", "cheating")
TRIALS = 5
"""Correctness trials of KernelBench's evaluator, as in its scripts."""
THEIRS = """
import json
import sys
import types

for name in ("dotenv", "litellm", "openai"):  # its helpers for models, which evaluation needs not
    try:
        __import__(name)
    except ImportError:
        stub = types.ModuleType(name)
        stub.load_dotenv = stub.completion = stub.OpenAI = lambda *a, **k: None
        sys.modules[name] = stub
sys.path.insert(0, sys.argv[1])
import torch
from kernelbench.eval import eval_kernel_against_ref

results = {}
for name, (module, source) in json.load(open(sys.argv[2])).items():
    result = eval_kernel_against_ref(
        module, source, num_correct_trials=int(sys.argv[4]), measure_performance=False,
        device=torch.device("cuda:0"), backend="triton",
    )
    results[name] = {
        "compiled": bool(result and result.compiled),
        "correct": bool(result and result.correctness),
    }
    json.dump(results, open(sys.argv[3], "w"))
"""
CHEAT = """
class ModelNew({base}):
    def forward(self, x):
        y = torch.empty_like(x)
        nothing[(1,)](y)
        return super().forward(x)


import triton
import triton.language as tl


@triton.jit
def nothing(y_ptr):
    tl.store(y_ptr, 0.0)
"""
Candidates = dict[str, tuple[str, str]]


def candidates() -> Candidates:
    """Returns module and source by `problem/kind`."""
    sys.path.insert(0, str(ROOT))
    from tests.tasks.importers.ten_modules import TEN

    rows = {}
    for name, row in TEN.items():
        body = row.module.partition("rows = 256")[0]
        cheat = f"{body}\n{CHEAT.format(base='Model')}"
        for kind, source in zip(KINDS, (row.triton, row.wrong_triton, cheat), strict=True):
            rows[f"{name}/{kind}"] = row.module, source
    return rows


def their_verdicts(checkout: Path, rows: Candidates, folder: Path) -> dict[str, str]:
    """Returns `correct`, `incorrect` or `not compiled` by candidate."""
    (folder / "rows.json").write_text(json.dumps(rows))
    (folder / "theirs.py").write_text(THEIRS)
    files = [checkout / "src", folder / "rows.json", folder / "out.json", str(TRIALS)]
    command = [sys.executable, folder / "theirs.py", *files]
    subprocess.run(
        [sys.executable, "-m", "kernel_gym", "sim", "--device", DEVICE, "--", *map(str, command)],
        check=True,
        cwd=ROOT,
    )
    results = json.loads((folder / "out.json").read_text())
    return {
        name: ("correct" if one["correct"] else "incorrect") if one["compiled"] else "not compiled"
        for name, one in results.items()
    }


def our_verdicts(rows: Candidates, folder: Path) -> dict[str, str]:
    """Returns the outcome by candidate, with the message of a refusal."""
    from kernel_gym.admission.import_bench import ImportBench
    from kernel_gym.admission.importing import import_suite
    from kernel_gym.evaluator import Evaluator
    from kernel_gym.tasks import get_task
    from kernel_gym.tasks.importers.kernelbench import TRITON
    from kernel_gym.tasks.names import IMPORTS

    os.environ[IMPORTS] = str(folder / "imports")
    level = folder / "checkout" / "KernelBench" / "level1"
    level.mkdir(parents=True)
    for name, (module, _) in rows.items():
        (level / f"{name.partition('/')[0]}.py").write_text(module)
    with ImportBench(DEVICE) as bench:
        list(import_suite(TRITON, folder / "checkout", [bench]))
    outcomes = {}
    with Evaluator(DEVICE, seed=1) as evaluator:
        for name, (_, source) in rows.items():
            task = get_task(f"kernelbench/level1/{name.partition('/')[0]}")
            outcomes[name] = str(evaluator.evaluate(task, source).outcome)
    return outcomes


def main() -> None:
    """Compares the verdicts, prints how often each pair occurs, and writes all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="a checkout of KernelBench")
    parser.add_argument("--out", type=Path, help="a JSON file for the verdicts")
    given = parser.parse_args()
    rows = candidates()
    with tempfile.TemporaryDirectory() as name:
        theirs = their_verdicts(given.checkout.resolve(), rows, Path(name))
        ours = our_verdicts(rows, Path(name))
    pairs = Counter((one.rpartition("/")[2], theirs[one], ours[one]) for one in rows)
    print("| candidate | KernelBench | kernel-gym | problems |")
    print("|---|---|---|--:|")
    for (kind, their, our), number in sorted(pairs.items()):
        print(f"| {kind} | {their} | `{our}` | {number} |")
    if given.out:
        verdicts = {one: {"kernelbench": theirs[one], "kernel_gym": ours[one]} for one in rows}
        given.out.write_text(json.dumps(verdicts, indent=1) + "\n")


if __name__ == "__main__":
    main()

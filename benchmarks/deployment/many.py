"""Makes packages of many problems from start kernels, and loads each in two ways.

    python -m benchmarks.deployment.many [--work FOLDER]

Each start kernel is judged. Its package is made with the word that it is faster, so that the kernel
runs. One process loads all packages by the stock client of Hugging Face's `kernels`, another one
imports their wheels. Both run the example call on the simulated GPU, compare with plain PyTorch,
and run `torch.library.opcheck`. It takes about five minutes of one core.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks/results/deployment/packages.json"
TASKS = (
    "torch2triton/add_layer_norm",
    "torch2triton/add_rms_norm",
    "torch2triton/bitnet_matmul",
    "torch2triton/causal_conv1d",
    "torch2triton/conv1d",
    "torch2triton/cross_entropy",
    "torch2triton/gather_rows",
    "torch2triton/geglu",
    "torch2triton/gelu",
    "torch2triton/gqa_attention",
    "torch2triton/l2_normalize",
    "torch2triton/layer_norm",
    "torch2triton/log_softmax",
    "torch2triton/moe_topk_softmax",
    "torch2triton/qk_norm_rope",
    "torch2triton/relu_squared",
    "torch2triton/rms_norm",
    "torch2triton/rope",
    "torch2triton/softmax",
    "torch2triton/swiglu",
    "torch2triton/cross_entropy_backward",
    "torch2triton/embedding_backward",
    "torch2triton/gelu_backward",
    "torch2triton/layer_norm_backward",
    "torch2triton/rms_norm_backward",
    "torch2triton/rope_backward",
    "torch2triton/softmax_backward",
    "torch2triton/swiglu_backward",
    "torch2hip/mish",
    "torch2hip/row_argmax",
    "torch2hip/silu",
    "torch2hip/transpose",
)
WAYS = ("get_local_kernel", "import")


def main() -> None:
    """Runs all tasks, and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(_try_all(options.work, options.child)))
        return
    with tempfile.TemporaryDirectory() as held:
        table = run(options.work or Path(held))
    rows = {"command": "python -m benchmarks.deployment.many", "packages": table}
    RESULT.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    works = sum(row["works"] for row in table)
    print(f"{RESULT}: {works} of {len(table)} packages work")


def run(work: Path, tasks: tuple[str, ...] = TASKS) -> list[dict[str, Any]]:
    """Returns one row for each task, with the reason if its package does not work."""
    rows = {task: _written(work, task) for task in tasks}
    for way in WAYS:
        command = [sys.executable, "-m", "kernel_gym", "sim", "--", sys.executable, "-m"]
        command += ["benchmarks.deployment.many", "--work", str(work), "--child", way]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
        for task, problem in json.loads(done.stdout.splitlines()[-1]).items():
            rows[task][way] = problem or "works"
    return [{"task": task, "works": _works(row), **row} for task, row in rows.items()]


def _works(row: dict[str, str]) -> bool:
    return not row["written"] and all(row.get(way) == "works" for way in WAYS)


def _written(work: Path, task_id: str) -> dict[str, str]:
    """Judges the start kernel and writes its package; returns why that was not possible."""
    from benchmarks.deployment.packages import ARCHITECTURE, DEVICE, SEED
    from kernel_gym.errors import InputError
    from kernel_gym.evaluator import Evaluator
    from kernel_gym.packages import write_package
    from kernel_gym.packages.evidence import evidence_of
    from kernel_gym.tasks import get_task

    task = get_task(task_id)
    source = task.kernel_source
    folder = work / task_id.replace("/", "+")
    with Evaluator(device=DEVICE, seed=SEED) as evaluator:
        evaluation = evaluator.evaluate(task, source)
    try:
        evidence = evidence_of(task, evaluation, source, DEVICE, ARCHITECTURE)
        sure = tuple(row.model_copy(update={"low": 2.0}) for row in evidence.workloads)
        evidence = evidence.model_copy(update={"workloads": sure})
        write_package(folder, task, source, evidence)
    except InputError as error:
        return {"written": str(error)}
    return {"written": ""}


def _try_all(work: Path, way: str) -> dict[str, str]:
    """Returns what is wrong with each package, in a process with a simulated GPU."""
    return {
        folder.name.replace("+", "/"): _tried(folder, way)
        for folder in sorted(work.iterdir())
        if (folder / "evidence.json").is_file()
    }


def _tried(folder: Path, way: str) -> str:
    """Returns what is wrong with a package; empty if it works."""
    import torch

    from kernel_gym.tasks import Check, get_problem

    try:
        module, entry = _loaded(folder, way)
        call = torch.load(folder / "tests/example.pt", weights_only=True)
        there = tuple(x.cuda() if isinstance(x, torch.Tensor) else x for x in call)
        if reason := module.reason(*there):
            return f"ran plain PyTorch: {reason}"
        ours, right = (_outputs(f(*there)) for f in (getattr(module, entry), module.reference))
        for value, expected, output in zip(ours, right, get_problem(entry).outputs, strict=True):
            if output.check is Check.CUSTOM:
                continue  # several answers are right
            torch.testing.assert_close(value, expected.to(value.dtype), rtol=2e-2, atol=2e-2)
        space = getattr(torch.ops, f"gpu_kernel_{entry}")
        torch.library.opcheck(getattr(space, entry).default, there)
    except Exception as error:
        text = (str(error).strip().splitlines() or [""])[0]
        return f"{type(error).__name__}: {text}"[:300]
    return ""


def _loaded(folder: Path, way: str) -> tuple[Any, str]:
    import importlib

    entry = folder.name.split("+")[1]
    if way == "get_local_kernel":
        from kernels import get_local_kernel

        return get_local_kernel(folder, backend="rocm", trust_remote_code=True), entry
    (wheel,) = (folder / "dist").glob("*.whl")
    place = tempfile.mkdtemp(dir=folder.parent, prefix="installed-")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    sys.path.insert(0, place)
    return importlib.import_module(f"gpu_kernel_{entry}"), entry


def _outputs(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


if __name__ == "__main__":
    main()

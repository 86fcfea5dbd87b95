"""Times the quickstart suite's Triton kernels on the GPU of this machine, before the GPU device is.

    python examples/time_on_gpu.py

Prints, for each task and its first four full-size train workloads, the geometric mean of the
speedup of the good example over the task's baseline: a first look, by `triton.testing.do_bench`,
and not what a reward rests on.
"""

import math
import os
import tempfile
from pathlib import Path

import torch
import triton
from triton.testing import do_bench

from kernel_gym.tasks import Scale, load_suite, make_inputs, train_workloads
from kernel_gym.tasks.task import kernel_path
from kernel_gym.worker import triton_module

CANDIDATES = Path(__file__).parent / "candidates"


def milliseconds(function, inputs):
    """Median time of one call."""
    return do_bench(lambda: function(*inputs), return_mode="median")


def speedup(task):
    """Geometric mean of baseline over good example on the first four train workloads."""
    start = triton_module.load(kernel_path(task.problem, "triton").read_text(), task.entry)
    baseline = start if task.baseline == "triton" else task.problem.reference
    good = triton_module.load((CANDIDATES / task.id / "3_good.py").read_text(), task.entry)
    logs = []
    for seed, workload in enumerate(train_workloads(task.problem, Scale.FULL)[:4]):
        values = make_inputs(task.problem, workload, seed).values()
        inputs = [v.cuda() if isinstance(v, torch.Tensor) else v for v in values]
        logs.append(math.log(milliseconds(baseline, inputs) / milliseconds(good, inputs)))
    return math.exp(sum(logs) / len(logs))


def main():
    """Prints one line a task."""
    if not torch.cuda.is_available():
        raise SystemExit("no GPU: this example times kernels on one")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder  # candidates are loaded from a file there
        for task in load_suite("quickstart").tasks:
            if task.language == "triton":
                print(f"{task.id:32s} {speedup(task):6.2f}x (measured)")


if __name__ == "__main__":
    main()

"""The packages of the table: one kernel for each operation of models, judged on the simulator."""

from __future__ import annotations

from pathlib import Path

from kernel_gym.devices import describe
from kernel_gym.evaluator import Evaluator
from kernel_gym.packages import write_package
from kernel_gym.packages.evidence import evidence_of
from kernel_gym.tasks import get_task

DEVICE, ARCHITECTURE, SEED = "sim:gfx942", "gfx942", 3
HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "kernel_gym/policies/examples"
SOURCES: dict[str, tuple[str, str]] = {
    "rms_norm": ("torch2triton", f"{HERE}/rms_norm.py"),
    "layer_norm": ("torch2triton", f"{EXAMPLES}/triton2triton/layer_norm/3_good.py"),
    "add_rms_norm": ("torch2triton", f"{EXAMPLES}/torch2triton/add_rms_norm/3_good.py"),
    "softmax": ("torch2triton", f"{EXAMPLES}/triton2triton/softmax/3_good.py"),
    "swiglu": ("torch2triton", f"{EXAMPLES}/torch2triton/swiglu/3_good.py"),
    "geglu": ("torch2triton", ""),
    "rope": ("torch2hip", f"{EXAMPLES}/torch2hip/rope/3_good.hip"),
    "cross_entropy": ("torch2triton", f"{EXAMPLES}/torch2triton/cross_entropy/3_good.py"),
    "gather_rows": ("torch2triton", f"{HERE}/gather_rows.py"),
    "conv1d": ("torch2triton", ""),
    "conv2d": ("torch2triton", f"{HERE}/conv2d.py"),
    "patch_embed": ("torch2triton", ""),
    "depthwise_conv2d": ("torch2triton", ""),
    "grouped_conv2d": ("torch2triton", ""),
    "causal_conv1d": ("torch2triton", ""),
    "moe_topk_softmax": ("torch2triton", ""),
    "gqa_attention": ("torch2triton", f"{HERE}/gqa_attention.py"),
    "cross_attention": ("torch2triton", ""),
    "bitnet_matmul": ("torch2triton", ""),
}
"""The mode and the source of each operation; without a source, Triton's start kernel."""


def write_packages(
    folder: Path, names: tuple[str, ...] = tuple(SOURCES), device: str = DEVICE
) -> None:
    """Judges the kernels of some operations and writes the packages that are not there yet."""
    architecture = describe(device).spec.arch
    for name in names:
        if (folder / name).exists():
            continue
        mode, path = SOURCES[name]
        task = get_task(f"{mode}/{name}")
        start = get_task(f"triton2triton/{name}").start_source or ""
        source = Path(path).read_text(encoding="utf-8") if path else start
        with Evaluator(device=device, seed=SEED) as evaluator:  # what it draws depends on its calls
            evaluation = evaluator.evaluate(task, source)
        evidence = evidence_of(task, evaluation, source, device, architecture)
        write_package(folder / name, task, source, evidence)

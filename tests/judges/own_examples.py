"""Examples of the judges' own repositories, in the folders that the adapters' scripts run in."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from kernel_gym.judges.adapters import fastkernels, reference_kernels
from kernel_gym.judges.corpus import Candidate

FILE = "data/TritonBench_G_v1/add_example.py"
Write = Callable[[Candidate, Path, Path], None]


def copied(*pairs: tuple[str, str]) -> Write:
    """Returns a writer that copies files of the checkout to places of the folder."""

    def write(candidate: Candidate, checkout: Path, folder: Path) -> None:
        for source, target in pairs:
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(checkout / source, folder / target)

    return write


def write_fastkernels(candidate: Candidate, checkout: Path, folder: Path) -> None:
    """Writes its baseline GELU as baseline and as candidate."""
    fastkernels.write(candidate, checkout, folder)
    tasks = "fastkernels/tasks"
    text = (checkout / tasks / "baseline/L1/gelu.py").read_text()
    for place in ("baseline", "candidate"):
        path = folder / tasks / place / "L1/corpus_operation.py"
        path.write_text(text.replace("class GELU", "class Operation"))


def write_reference_kernels(candidate: Candidate, checkout: Path, folder: Path) -> None:
    """Writes the submission that comes with the task `vectoradd_py`."""
    place = checkout / reference_kernels.FOLDER
    for name in ("eval.py", "utils.py"):
        shutil.copyfile(place / name, folder / name)
    for name in ("task.py", "reference.py", "submission.py"):
        shutil.copyfile(place / "vectoradd_py" / name, folder / name)
    (folder / "tests.txt").write_text("size: 127; seed: 4242\nsize: 128; seed: 5236")
    (folder / "benchmarks.txt").write_text("size: 256; seed: 5531")


def write_arena(candidate: Candidate, checkout: Path, folder: Path) -> None:
    """Writes the task `triton_apply_write` as it is."""
    task = checkout / "tasks/triton2triton/vllm/triton_apply_write"
    shutil.copytree(task, folder / "workspace")
    source = folder / "workspace/source/triton_apply_write.py"
    shutil.copyfile(source, source.with_name("candidate.py"))


PROMPTS = "src/kernelbench/prompts"
EXAMPLES: dict[str, Write] = {
    "agent-kernel-arena": write_arena,
    "fastkernels": write_fastkernels,
    "geak-eval": copied(
        (f"geak_eval/data/TritonBench/{FILE}", "generated.py"),
        (f"geak_eval/data/TritonBench/{FILE}", "gold.py"),
    ),
    "kernelbench": copied(
        (f"{PROMPTS}/model_ex_add.py", "reference.py"),
        (f"{PROMPTS}/model_new_ex_add_triton.py", "candidate.py"),
    ),
    "reference-kernels": write_reference_kernels,
}
"""By judge; the other judges have no example here."""

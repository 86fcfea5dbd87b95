"""Verifies a package: its files are those that were written, and a new verdict bears it out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernel_gym.evaluator import Evaluator
from kernel_gym.packages.evidence import EVIDENCE, Evidence, PackageError, read_evidence, sha256
from kernel_gym.packages.write import CANDIDATES, KERNEL
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.tasks import get_task

MIN_SPEEDUP_SHARE = 0.97
"""The share of a stated lower bound that a new verdict has to reach. The data of its draws are new,
and modelled times differ a little by data."""
MAX_FILE_BYTES = 64 << 20


@dataclass(frozen=True)
class Verification:
    """The result of a new verdict on a package.

    Attributes:
        evidence: What the package states.
        evaluation: The new record.
        differences: What differs from the evidence, in sentences; empty if it is borne out.
    """

    evidence: Evidence
    evaluation: Evaluation
    differences: tuple[str, ...]


def verify(folder: Path, device: str = "", seed: int | None = None) -> Verification:
    """Compares the files of a package with their digests, and judges its source again.

    Args:
        folder: The package.
        device: The device that judges; by default the evidence's.
        seed: The seed of the draws; None draws it from the system.

    Raises:
        PackageError: The package is malformed, or a file was changed, added or removed.
        UnknownDevice: There is no such device.
    """
    evidence = read_evidence(folder)
    if changed := changed_files(folder, evidence):
        raise PackageError(f"{folder}: {'; '.join(changed)}: the package was changed")
    task = get_task(evidence.task)
    source = _source(folder, f"{KERNEL}/{CANDIDATES[task.language]}", evidence)
    with Evaluator(device=device or evidence.device, seed=seed) as evaluator:
        evaluation = evaluator.evaluate(task, source)
    return Verification(evidence, evaluation, tuple(_differences(evidence, evaluation)))


def _source(folder: Path, name: str, evidence: Evidence) -> str:
    """Returns the text of the kernel, to the byte."""
    if name not in evidence.files:
        raise PackageError(f"{folder}: the evidence states no {name}, expected the kernel")
    content = (folder / name).read_bytes()
    if sha256(content) != evidence.source_sha256:
        raise PackageError(f"{folder}: the source is not the one that the evidence speaks of")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise PackageError(f"{folder}: {name} is no UTF-8 text") from None


def changed_files(folder: Path, evidence: Evidence) -> list[str]:
    """Returns the files of a package that are not those of its evidence, each with what it is."""
    present = {
        str(path.relative_to(folder)): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() or path.is_symlink()
    }
    present.pop(EVIDENCE, None)
    notes = [f"{name} is missing" for name in sorted(evidence.files.keys() - present.keys())]
    for name, path in present.items():
        if name not in evidence.files:
            compiled = ", and Python may run it instead of a source" * name.endswith(".pyc")
            notes.append(f"{name} is not of the package{compiled}")
        elif path.is_symlink() or path.stat().st_size > MAX_FILE_BYTES:
            notes.append(f"{name} is a link or too large")
        elif sha256(path.read_bytes()) != evidence.files[name]:
            notes.append(f"{name} has another content")
    return notes


def _differences(evidence: Evidence, evaluation: Evaluation) -> list[str]:
    if evaluation.outcome is not Outcome.PASSED:
        return [f"the outcome is {evaluation.outcome}, expected passed: {evaluation.message}"]
    pairs = {
        "the speed-up": (evaluation.speedup, evidence.speedup_low),
        "the speed-up on unseen workloads": (
            evaluation.unseen_speedup,
            evidence.unseen_speedup_low,
        ),
    }
    return [
        f"{name} is {speedup:.3f}, expected at least {stated:.3f}"
        for name, (speedup, stated) in pairs.items()
        if speedup is not None and speedup < MIN_SPEEDUP_SHARE * stated
    ]

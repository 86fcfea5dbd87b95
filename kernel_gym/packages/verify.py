"""Verifies a package: its files are those that were written, and a new verdict bears it out."""

from __future__ import annotations

import math
import statistics
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.devices import describe
from kernel_gym.evaluator import Evaluator
from kernel_gym.judge.protocol import RATIO_CLAMP
from kernel_gym.packages.evidence import (
    EVIDENCE,
    Evidence,
    Measured,
    PackageError,
    read_evidence,
    require_torch,
    sha256,
)
from kernel_gym.packages.write import CANDIDATES, EXAMPLE, kernel_folder, write_package
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.tasks import Split, Task, get_task

MIN_SPEEDUP_SHARE = 0.97
"""The share of a stated lower bound that a new verdict has to reach. The data of its draws are new,
and modelled times differ a little by data."""
MEAN_TOLERANCE = 1e-6
"""The relative difference of a stated mean and that of its rows, which have all digits."""
DEVIATIONS = 3.0
"""Standard deviations of a prediction interval: with nine rows 99 % of honest means are above."""
MAX_FILE_BYTES = 64 << 20
STATEMENTS = ("seed", "record_sha256", "versions", EXAMPLE)
"""Fields of the evidence, and a file with values alone, that nothing judges again."""


@dataclass(frozen=True)
class Verification:
    """The result of a new verdict on a package.

    Attributes:
        evidence: What the package states.
        evaluation: The new record.
        differences: What differs from the evidence, in sentences; empty if it is borne out.
        statements: Parts of the evidence that were not judged again, and stay the writer's word.
    """

    evidence: Evidence
    evaluation: Evaluation
    differences: tuple[str, ...]
    statements: tuple[str, ...]


def verify(folder: Path, device: str = "", seed: int | None = None) -> Verification:
    """Compares a package with its evidence, and judges its source again.

    The files have to be those that this version of kernel-gym writes for the evidence, so that code
    beside the kernel cannot differ. Each stated workload that the new verdict times is compared:
    all train ones, and unseen ones that the seed draws again.

    Args:
        folder: The package.
        device: The device that judges; by default the evidence's.
        seed: The seed of the draws; None draws it from the system.

    Raises:
        PackageError: The package is malformed, a file was changed, added or removed, or its task
            does not compare with plain PyTorch.
        UnknownDevice: There is no such device.
    """
    evidence = read_evidence(folder)
    if changed := changed_files(folder, evidence):
        raise PackageError(f"{folder}: {'; '.join(changed)}: the package was changed")
    task, backward = get_task(evidence.task), evidence.backward
    require_torch(task)
    source = kernel_source(folder, evidence)
    inner = kernel_source(folder, backward, "/backward") if backward else ""
    judge = device or evidence.device
    differences = [*_files_not_written(folder, task, source, evidence, inner)]
    with Evaluator(device=judge, seed=seed) as evaluator:
        evaluation = evaluator.evaluate(task, source)
        differences += _differences(evidence, evaluation, describe(judge).spec.arch)
        if backward is not None:
            again = evaluator.evaluate(get_task(backward.task), inner)
            wrong = _differences(backward, again, describe(judge).spec.arch)
            differences += [f"{backward.task}: {difference}" for difference in wrong]
    return Verification(evidence, evaluation, tuple(differences), _statements(evidence, evaluation))


def _files_not_written(
    folder: Path, task: Task, source: str, evidence: Evidence, inner: str
) -> Iterator[str]:
    """Writes the package again from its evidence, and yields the files that differ."""
    with tempfile.TemporaryDirectory(prefix="kernel-gym-verify-") as held:
        again = Path(held) / "package"
        files = write_package(again, task, source, evidence, inner).files
        for name in sorted(files.keys() | evidence.files.keys()):
            equal = files.get(name) == evidence.files.get(name) or name == EXAMPLE
            if not equal and not _same_wheel(folder / name, again / name):
                yield f"{name} is not what this version of kernel-gym writes for the evidence"


_UNREADABLE = (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""Errors of reading an archive that is cut, damaged, encrypted or of an unknown form."""


def _same_wheel(one: Path, other: Path) -> bool:
    """Returns whether two files are wheels of the same content, by whatever compressor."""
    try:
        with zipfile.ZipFile(one) as left, zipfile.ZipFile(other) as right:
            names = left.namelist()
            sizes = [[i.file_size for i in archive.infolist()] for archive in (left, right)]
            if names != right.namelist() or sizes[0] != sizes[1]:
                return False
            return all(left.read(name) == right.read(name) for name in names)
    except _UNREADABLE:
        return False


def kernel_source(folder: Path, evidence: Evidence, inside: str = "") -> str:
    """Returns the text of a kernel, to the byte.

    Args:
        folder: The package.
        evidence: What it says of the kernel.
        inside: The folder of the kernel in the variant for GPUs.

    Raises:
        PackageError: There is no such file, or it is another one.
    """
    name = f"{kernel_folder(evidence)}{inside}/{CANDIDATES[get_task(evidence.task).language]}"
    if not (folder / name).is_file():
        raise PackageError(f"{folder}: the evidence states no {name}, expected the kernel")
    content = (folder / name).read_bytes()
    if sha256(content) != evidence.source_sha256:
        raise PackageError(f"{folder}: the source is not the one that the evidence speaks of")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise PackageError(f"{folder}: {name} is no UTF-8 text") from None


def packaged_kernel(folder: Path) -> tuple[str, Evidence]:
    """Returns the source and the evidence of a package, to put the kernel into another package.

    Raises:
        PackageError: The package is malformed or was changed.
    """
    evidence = read_evidence(folder)
    if changed := changed_files(folder, evidence):
        raise PackageError(f"{folder}: {'; '.join(changed)}: the package was changed")
    return kernel_source(folder, evidence), evidence.model_copy(update={"files": {}})


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


def _differences(evidence: Evidence, evaluation: Evaluation, architecture: str) -> Iterator[str]:
    if evaluation.outcome is not Outcome.PASSED:
        yield f"the outcome is {evaluation.outcome}, expected passed: {evaluation.message}"
        return
    facts = {
        "protocol": (evaluation.protocol_version, evidence.protocol_version),
        "clock": (evaluation.clock, evidence.clock),
        "architecture": (architecture, evidence.architecture),
    }
    for name, (now, stated) in facts.items():
        if now != stated:
            yield f"the {name} is {now}, the evidence states {stated}"
    yield from _bound("the speed-up", evaluation.speedup, evidence.speedup_low, evidence.speedup)
    yield from _unseen(evidence, evaluation)
    yield from _workloads(evidence, evaluation)


def _unseen(evidence: Evidence, evaluation: Evaluation) -> Iterator[str]:
    """Compares the speed-up on unseen workloads, which are other ones with each seed.

    The mean of other sizes is another one, also of an honest kernel. So it may be as low as the
    spread of the stated rows lets expect, and the stated mean may not be above all new rows.
    """
    name, timed = "the speed-up on unseen workloads", _timed(evaluation)
    rows = [row for row in evidence.workloads if row.split is not Split.TRAIN]
    stated, mean = evidence.unseen_speedup, _mean(rows)
    if not math.isclose(mean, stated, rel_tol=MEAN_TOLERANCE):
        yield f"{name} is stated as {stated:.3f}, the mean of its rows is {mean:.3f}"
    low = evidence.unseen_speedup_low
    if any(_key(row) not in timed for row in rows):
        low = min(low, _low_of_other_draws(evidence.workloads, len(rows)))
        if (most := max(timed.values(), default=0.0)) < MIN_SPEEDUP_SHARE * mean:
            yield f"{name} is stated as {mean:.3f}, all timed again have at most {most:.3f}"
    yield from _bound(name, evaluation.unseen_speedup, low, stated)


def _mean(rows: Sequence[Measured]) -> float:
    """Returns the geometric mean of stated speed-ups, clamped as in rule 24; 0 without rows."""
    low, high = RATIO_CLAMP
    logs = [math.log(min(max(row.speedup, low), high)) for row in rows]
    return math.exp(statistics.fmean(logs)) if logs else 0.0


def _low_of_other_draws(rows: Sequence[Measured], count: int) -> float:
    """Returns a bound of the geometric mean over `count` other sizes, by the spread of all rows.

    It is the lower end of a prediction interval for the mean of logarithms, with `DEVIATIONS`.
    """
    low, high = RATIO_CLAMP
    logs = [math.log(min(max(row.low, low), high)) for row in rows]
    spread = statistics.stdev(logs) if len(logs) > 1 else 0.0
    return math.exp(
        statistics.fmean(logs) - DEVIATIONS * spread * math.sqrt(1 / len(logs) + 1 / count)
    )


def _bound(name: str, speedup: float | None, low: float, stated: float) -> Iterator[str]:
    """Compares a new speed-up with a stated one, and the stated one with its own lower bound."""
    if speedup is not None and speedup < MIN_SPEEDUP_SHARE * low:
        yield f"{name} is {speedup:.3f}, expected at least {low:.3f}"
    if low > stated:
        yield f"{name} is stated as {stated:.3f}, below its own lower bound {low:.3f}"


def _workloads(evidence: Evidence, evaluation: Evaluation) -> Iterator[str]:
    """Compares the stated workloads with those that the new verdict has timed."""
    timed = _timed(evaluation)
    stated = {_key(row) for row in evidence.workloads}
    for row in evidence.workloads:
        if (speedup := timed.get(_key(row))) is not None:
            yield from _bound(f"{row.split} workload {_sizes(row)}", speedup, row.low, row.speedup)
        elif row.split is Split.TRAIN:
            yield f"{row.split} workload {_sizes(row)}: the task times no such workload"
    for split, sizes in sorted(timed.keys() - stated):
        if split == Split.TRAIN:
            text = ", ".join(f"{name} {size}" for name, size in sizes)
            yield f"{split} workload {text}: the evidence leaves it out"


def _statements(evidence: Evidence, evaluation: Evaluation) -> tuple[str, ...]:
    timed = _timed(evaluation)
    rows = [row for row in evidence.workloads if _key(row) not in timed]
    unseen = [f"workload {_sizes(row)}" for row in rows if row.split is not Split.TRAIN]
    return (*STATEMENTS, *unseen)


def _timed(evaluation: Evaluation) -> dict[tuple[str, tuple[tuple[str, int], ...]], float]:
    return {
        (str(row.split), tuple(sorted(row.dims.items()))): row.speedup
        for row in evaluation.workloads
        if row.timed and row.speedup is not None
    }


def _key(row: Measured) -> tuple[str, tuple[tuple[str, int], ...]]:
    return str(row.split), tuple(sorted(row.dims.items()))


def _sizes(row: Measured) -> str:
    return ", ".join(f"{name} {size}" for name, size in row.dims.items())

"""A package of a kernel that was judged once on the simulator, and packages without a verdict."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.judge.protocol import PROTOCOL_VERSION
from kernel_gym.packages.evidence import Evidence, Measured, evidence_of
from kernel_gym.packages.write import write_package
from kernel_gym.records import Clock, source_digest
from kernel_gym.tasks import Scale, Split, get_task, train_workloads

TASK = "torch2triton/add_rms_norm"
DEVICE = "sim:gfx942"


@pytest.fixture(scope="session")
def judged():
    """A task, its start kernel and the record of it."""
    task = get_task(TASK)
    with Evaluator(device=DEVICE, seed=3) as evaluator:
        return task, task.kernel_source, evaluator.evaluate(task, task.kernel_source)


@pytest.fixture(scope="session")
def original(judged, tmp_path_factory):
    """A package that no test changes. Its wheel is unpacked in the folder `built` beside it."""
    task, source, evaluation = judged
    folder = tmp_path_factory.mktemp("packages") / "package"
    write_package(folder, task, source, evidence_of(task, evaluation, source, DEVICE, "gfx942"))
    return folder


@pytest.fixture
def package(original, tmp_path):
    """A folder with a package, `made`, and its wheel unpacked in `built`."""
    import shutil

    shutil.copytree(original, tmp_path / "made")
    (wheel,) = (tmp_path / "made/dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "built")
    return tmp_path


def write(folder: Path, task_id: str, source: str = "", low: float = 2.0) -> Path:
    """Writes a package of a source, by default the start kernel, that claims to be faster."""
    task = get_task(task_id)
    source = source or task.kernel_source
    rows = [
        Measured(dims=load.dims, split=Split.TRAIN, speedup=2.0, low=low, high=2.0)
        for load in train_workloads(task.problem, Scale.SIM)
    ]
    evidence = Evidence(
        task=task_id,
        protocol_version=PROTOCOL_VERSION,
        device="sim:gfx942",
        architecture="gfx942",
        clock=Clock.MODELLED,
        speedup=2.0,
        speedup_low=2.0,
        unseen_speedup=2.0,
        unseen_speedup_low=2.0,
        workloads=tuple(rows),
        seed=None,
        source_sha256=source_digest(source),
        record_sha256="",
        versions={},
    )
    write_package(folder, task, source, evidence)
    return folder


@pytest.fixture(scope="session", name="write")
def write_fixture():
    """The function that writes a package without a verdict."""
    return write

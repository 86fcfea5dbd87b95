"""Packages without a verdict, for tests of models: their kernels are faster by their own word."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_gym.judge.protocol import PROTOCOL_VERSION
from kernel_gym.packages.evidence import Evidence, Measured
from kernel_gym.packages.models import child
from kernel_gym.packages.write import write_package
from kernel_gym.records import Clock, source_digest
from kernel_gym.tasks import Scale, Split, get_task, train_workloads

pytest.importorskip("kernels")
pytest.importorskip("transformers")


def write(folder: Path, task_id: str, source: str = "") -> Path:
    """Writes a package of a source, by default the start kernel, that claims to be faster."""
    task = get_task(task_id)
    source = source or get_task(f"triton2triton/{task.problem.name}").start_source
    rows = [
        Measured(dims=load.dims, split=Split.TRAIN, speedup=2.0, low=2.0, high=2.0)
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


@pytest.fixture(scope="session")
def load(tmp_path_factory):
    """Loads the variant for CPUs of a problem's package."""
    place, made = tmp_path_factory.mktemp("models"), {}

    def loaded(problem):
        if problem not in made:
            folder = write(place / problem, f"torch2triton/{problem}")
            made[problem] = child.load(folder, "cpu")
        return made[problem]

    return loaded

"""A package of a kernel that was judged once on the simulator."""

from __future__ import annotations

import zipfile

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.packages.evidence import evidence_of
from kernel_gym.packages.write import write_package
from kernel_gym.tasks import get_task

TASK = "triton2triton/add_rms_norm"
DEVICE = "sim:gfx942"


@pytest.fixture(scope="session")
def judged():
    """A task, its start kernel and the record of it."""
    task = get_task(TASK)
    with Evaluator(device=DEVICE, seed=3) as evaluator:
        return task, task.start_source, evaluator.evaluate(task, task.start_source)


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

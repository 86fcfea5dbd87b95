"""Writes tasks as folders for Harbor: an instruction, two environments, a verifier, a solution.

The verifier has an environment of its own: it gets the kernel file as an artifact and evaluates it
on the simulator, so that no container needs a GPU. A right kernel earns its reward, everything else
nothing. A failure of the machine leaves no reward file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import kernel_gym
from kernel_gym.agents.workspace import kernel_name, stub
from kernel_gym.devices import describe, fixed_names
from kernel_gym.devices.sim.toolchain import FIX
from kernel_gym.errors import InputError
from kernel_gym.storage.run_store import SUFFIX
from kernel_gym.tasks import Task, prompt, train_workloads
from kernel_gym.tasks.embedded import WRITES_HIP
from kernel_gym.tasks.small_floats import runs_on
from kernel_gym.tasks.task import Mode

_FILES = Path(__file__).parent / "files" / "harbor"
_EXAMPLES = Path(kernel_gym.__file__).parent / "policies" / "examples"
ORGANISATION = "kernel-gym"
_HIP_COMPILER = (
    "RUN apt-get update \\\n"
    f"    && {FIX.replace('install', 'install -y --no-install-recommends')} \\\n"
    "    && rm -rf /var/lib/apt/lists/*\n"
)
VERIFIER_SECONDS, AGENT_SECONDS = 900, 3600
MEMORY_MB, CPUS = 8192, 2


class ExportError(InputError, ValueError):
    """The tasks cannot be written to a folder."""


def write_harbor(tasks: Sequence[Task], out: Path, device: str) -> list[Path]:
    """Writes one folder for each task.

    Args:
        tasks: The tasks.
        out: The folder of the folders. It must be empty or missing.
        device: The full name of a simulated device, which verifiers use. A task whose 8-bit floats
            it lacks gets another simulated device that has them.

    Returns:
        The folders.

    Raises:
        ExportError: The folder has files, the device needs hardware, or no device fits a task.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ExportError(f"{out}: found files, expected an empty folder or none")
    if device not in fixed_names():
        raise ExportError(f"--device {device}: verifiers have no GPU; name a simulated device")
    fitting = [(task, _fitting(task, device)) for task in tasks]
    return [_write(task, out / folder_name(task), fit) for task, fit in fitting]


def _fitting(task: Task, device: str) -> str:
    """The device, or another simulated one that has the 8-bit floats of a task."""
    for name in (device, *fixed_names()):
        if name != "auto" and runs_on(task.problem, describe(name).arch):
            return name
    raise ExportError(f"{task.id}: no simulated device has its 8-bit floats; leave it out")


def folder_name(task: Task) -> str:
    """The name of the folder of a task."""
    return re.sub(r"[^a-z0-9_.-]+", "-", task.id.lower())


def oracle_source(task: Task) -> str:
    """A right kernel: the good example if there is one, else the problem's own kernel."""
    example = _EXAMPLES / task.id / f"3_good{SUFFIX[task.language]}"
    return example.read_text(encoding="utf-8") if example.is_file() else task.kernel_source


def _write(task: Task, folder: Path, device: str) -> Path:
    name = kernel_name(task)
    texts = {
        "task.toml": _settings(task, name),
        "instruction.md": _instruction(task, device, name),
        "environment/Dockerfile": _text("agent.Dockerfile", task, device),
        f"environment/workspace/{name}": task.start_source or stub(task),
        "environment/workspace/check": _text("check", task, device),
        "tests/Dockerfile": _text("tests.Dockerfile", task, device),
        "tests/test.sh": _text("test.sh", task, device),
        "solution/solve.sh": _text("solve.sh", task, device),
        f"solution/{name}": oracle_source(task),
    }
    if task.mode is not Mode.INSTRUCTION2TRITON:
        texts["environment/workspace/reference.py"] = task.reference_source
    for path, text in texts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        if path.endswith((".sh", "/check")):
            file.chmod(0o755)
    return folder


def _settings(task: Task, name: str) -> str:
    problem = task.problem
    return f"""schema_version = "1.4"
artifacts = ["/app/{name}"]

[task]
name = "{ORGANISATION}/{folder_name(task)}"
description = {json.dumps(problem.summary)}
keywords = ["gpu", "kernel", "{task.written_in}", "amd"]

[metadata]
task = "{task.id}"
category = "{problem.category}"
level = {problem.level}
mode = "{task.mode}"

[agent]
timeout_sec = {AGENT_SECONDS}

[verifier]
timeout_sec = {VERIFIER_SECONDS}
environment_mode = "separate"

[verifier.environment]
cpus = {CPUS}
memory_mb = {MEMORY_MB}
gpus = 0
network_mode = "no-network"

[environment]
workdir = "/app"
cpus = {CPUS}
memory_mb = {MEMORY_MB}
gpus = 0
"""


def _instruction(task: Task, device: str, name: str) -> str:
    described = describe(device)
    workloads = train_workloads(task.problem, described.scale)
    answer = (
        f"Write the complete source to `/app/{name}`. `/app/check` evaluates it on a simulator and "
        "prints feedback; no GPU is needed. When you stop, the file is evaluated once more, in "
        "another environment, on workloads that you have not seen."
    )
    return prompt(task, described.facts, workloads, described.spec.arch, answer)


def _text(name: str, task: Task, device: str) -> str:
    text = (_FILES / name).read_text(encoding="utf-8")
    values = {
        "TASK": task.id,
        "KERNEL": kernel_name(task),
        "DEVICE": device,
        "VERSION": version("kernel-gym"),
        "TORCH": version("torch").partition("+")[0],  # the verifiers judge as this machine does
        "TRITON": version("triton").partition("+")[0],
        "EXTRAS": ",".join(filter(None, ("judge", task.extra))),
        "COMPILER": _HIP_COMPILER if task.written_in in ("hip", *WRITES_HIP) else "",
    }
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text

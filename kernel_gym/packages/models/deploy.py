"""Puts a package into a model, in a process of its own, and returns what that gives."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from kernel_gym.devices import describe
from kernel_gym.errors import InputError
from kernel_gym.packages.evidence import PackageError, read_evidence
from kernel_gym.packages.models.report import Deployment
from kernel_gym.packages.verify import changed_files
from kernel_gym.packages.write import layers_source
from kernel_gym.programs.command import run_command
from kernel_gym.records import Clock
from kernel_gym.simulated_rocm.settings import SimSettings
from kernel_gym.tasks import get_task

CPU = "cpu"
"""The host: a device of PyTorch that judges nothing, and on which packages run plain PyTorch."""
TIMEOUT = 1800.0
"""Host seconds until the process is ended."""
CHILD = "import torch; from kernel_gym.packages.models.child import main; main()"
"""The simulated GPU comes up with PyTorch, before any room of kernel-gym is half imported."""
NEEDED = {"kernels": "kernels", "transformers": "train"}
"""Libraries, each with the extra that installs it."""


def deploy(folder: Path, model: str, device: str) -> Deployment:
    """Puts a package into a model of transformers with random weights, and compares.

    The process runs the package's code unconfined, after its files were compared with their
    digests. A model that is wrong or slower with the package is a result, not an error.

    Args:
        folder: The package.
        model: A `config.json`, a folder with one, or a model type of transformers for a tiny model.
        device: `cpu`, `cuda:0`, or a simulated one, such as `sim:gfx942`.

    Raises:
        PackageError: The package is malformed or was changed, or models cannot take its operation.
        InputError: The model cannot be built, the operation is in none of its modules, a library is
            missing, there is no such device, or the process failed.
    """
    evidence = read_evidence(folder)
    if changed := changed_files(folder, evidence):
        raise PackageError(f"{folder}: {'; '.join(changed)}: the package was changed")
    problem = get_task(evidence.task).problem.name
    if not layers_source(problem):
        raise PackageError(f"{folder}: {problem} has no layers of models yet")
    for library, extra in NEEDED.items():
        if importlib.util.find_spec(library) is None:
            raise InputError(f"{library} is not installed: install kernel-gym with `{extra}`")
    simulated = device != CPU and describe(device).clock is Clock.MODELLED
    request = {
        "package": str(folder.resolve()),
        "model": model,
        "device": "cuda" if simulated else device,
        "name": device,
    }
    return _run(request, device if simulated else "")


def _run(request: dict[str, str], simulated: str) -> Deployment:
    with tempfile.TemporaryDirectory(prefix="kernel-gym-deploy-") as held:
        asked, answer, log = (Path(held) / name for name in ("request", "result", "log"))
        asked.write_text(json.dumps(request), encoding="utf-8")
        command = [sys.executable, "-B", "-c", CHILD, str(asked), str(answer)]
        offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
        with log.open("wb") as errors:
            if simulated:
                settings = SimSettings(device=simulated)
                end = run_command(
                    *(command, settings, TIMEOUT),
                    output=errors.fileno(),
                    errors=errors.fileno(),
                    added=offline,
                )
                status = end.status
            else:
                status = _plainly(command, errors.fileno(), offline)
        if not answer.is_file():
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            last = lines[-1][:500] if lines else "it printed nothing"
            raise InputError(f"the model's process ended with status {status}: {last}")
        result = json.loads(answer.read_text(encoding="utf-8"))
    if "error" in result:
        raise InputError(result["error"])
    return Deployment.model_validate(result["deployment"])


def _plainly(command: list[str], log: int, added: dict[str, str]) -> int:
    import os

    return subprocess.run(
        command, stdout=log, stderr=log, env=os.environ | added, timeout=TIMEOUT, check=False
    ).returncode

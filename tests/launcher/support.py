"""Plans of tasks as code objects for AMD GPUs, and the launcher on the simulated HIP runtime."""

from __future__ import annotations

import subprocess
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest
import torch

from kernel_gym.devices.placement import storage_bytes
from kernel_gym.devices.sim.planned_session import PlannedSession
from kernel_gym.devices.sim.session import SimOptions
from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.launcher.process import LauncherProcess
from kernel_gym.plans.types import CodeForm, LaunchPlan, PlanCode
from kernel_gym.simulated_rocm.folders import library_folder
from kernel_gym.tasks import Scale, get_task, make_inputs, train_workloads

TOOLCHAIN = hip_toolchain("gfx942")
needs_toolchain = pytest.mark.skipif(
    not isinstance(TOOLCHAIN, HipToolchain), reason="no toolchain for HIP"
)


def assembled(plan: LaunchPlan, folder) -> LaunchPlan:
    """Returns the plan with linked code objects in place of assembler text."""
    codes = []
    for number, code in enumerate(plan.codes):
        text, linked = folder / f"{number}.s", folder / f"{number}.hsaco"
        text.write_bytes(code.content)
        target = ("-target", "amdgcn-amd-amdhsa", "-mcpu=gfx942")
        command = [TOOLCHAIN.clang, "-x", "assembler", *target, str(text), "-o", str(linked)]
        subprocess.run(command, check=True)
        codes.append(PlanCode(CodeForm.HSACO, linked.read_bytes()))
    return replace(plan, codes=tuple(codes))


def workload_of(task):
    workload = train_workloads(task.problem, Scale.SIM)[0]
    return make_inputs(task.problem, workload, seed=1), workload.dims


def recorded(name: str, source: str | None = None):
    """Returns the plan of a task's start kernel, its inputs, and the call on the simulator."""
    task = get_task(name)
    inputs, dims = workload_of(task)
    with closing(PlannedSession(task, SimOptions(trusted=source is None, seed=3))) as session:
        assert session.load(source or task.start_source) is None
        plan = session.record(inputs, dims)
        assert isinstance(plan, LaunchPlan), plan
        return plan, inputs, session.call(inputs, dims)


def bytes_of(inputs) -> bytes:
    """Returns the bytes of all tensors, one behind the other."""
    tensors = [value for value in inputs.values() if isinstance(value, torch.Tensor)]
    return b"".join(storage_bytes(tensor).numpy().tobytes() for tensor in tensors)


@contextmanager
def launcher():
    """Opens a launcher on the simulated HIP runtime, which it uses as it would use ROCm's."""
    library = str(library_folder() / "libamdhip64.so")
    environment = {"KERNEL_GYM_SIM_DEVICE": "sim:gfx942", "KERNEL_GYM_SIM_THREADS": "1"}
    with closing(LauncherProcess("rocm", library, environment)) as process:
        yield process

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
from kernel_gym.launcher.shared_file import SharedFile
from kernel_gym.plans.types import BufferRole, CodeForm, LaunchPlan, PlanCode
from kernel_gym.simulated_rocm.folders import library_folder
from kernel_gym.tasks import Scale, get_task, make_inputs, train_workloads

HALF = 32 << 20
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


class Launcher:
    """A launcher whose inputs and results are bytes."""

    def __init__(self, process, shared):
        self.process, self.shared, self.plan = process, shared, None

    @property
    def lost(self):
        return self.process.lost

    def load(self, plan):
        self.plan = plan
        return self.process.load(0, plan)

    def execute(self, inputs: bytes, noop: bool = False):
        """Returns the bytes of each output, then of each input."""
        self.shared.memory[: len(inputs)] = inputs
        buffers = [b for b in self.plan.buffers if b.role is BufferRole.INPUT]
        sizes = [view.extent for view in self.plan.outputs] + [one.size for one in buffers]
        places = [HALF + sum(sizes[:number]) for number in range(len(sizes))]
        self.damaged = self.process.execute(0, 0, places, noop)
        pairs = zip(places, sizes, strict=True)
        return [self.shared.memory[place : place + size] for place, size in pairs]

    def time(self, inputs: bytes, calls: int, graph: bool):
        self.shared.memory[: len(inputs)] = inputs
        return self.process.time([[0, 0]] * calls, graph)


@contextmanager
def launcher():
    """Opens a launcher on the simulated HIP runtime, which it uses as it would use ROCm's."""
    library = str(library_folder() / "libamdhip64.so")
    environment = {"KERNEL_GYM_SIM_DEVICE": "sim:gfx942", "KERNEL_GYM_SIM_THREADS": "1"}
    with closing(SharedFile(2 * HALF)) as shared:
        process = LauncherProcess("rocm", shared, 1 << 16, library, environment, pin=False)
        with closing(process):
            yield Launcher(process, shared)

"""A third backend in one folder: the CPU runs candidates in this process, at fixed times.

It shows what a backend has to offer. It is unsafe, because candidates are not confined.
"""

from __future__ import annotations

import contextlib

import torch

from kernel_gym.devices import Backend, DeviceStatus
from kernel_gym.devices.base import (
    Call,
    Failed,
    FailureKind,
    NotOfferedError,
    OutputTensor,
    TimingMethod,
)
from kernel_gym.devices.description import DeviceDescription
from kernel_gym.hardware import MI300X
from kernel_gym.records import Clock
from kernel_gym.tasks.problem import Scale

TRUSTED_SECONDS, CANDIDATE_SECONDS = 2e-3, 1e-3


class ToyBackend(Backend):
    """Devices `toy:0` to `toy:9`."""

    name = "toy"
    pattern = r"toy:\d"
    fixed_names = ("toy:0",)
    threads = True
    full_size = False

    def present(self):
        """Returns the only toy."""
        return self.fixed_names

    def describe(self, name):
        """Describes a CPU that passes for an MI300X."""
        return DeviceDescription(
            name=name,
            hardware="Toy",
            spec=MI300X,
            clock=Clock.MODELLED,
            timing=TimingMethod.REPORTED,
            scale=Scale.SIM,
            languages=("triton",),
            facts="A toy.",
            torch_device=torch.device("cpu"),
            arch="gfx942",
        )

    def status(self, name):
        """Returns that it works everywhere."""
        return DeviceStatus(name, "gfx942", Clock.MODELLED, True, ("triton",))

    def open(self, name):
        """Opens a toy."""
        return ToyDevice(self.describe(name))

    def default_workers(self, name, cpus):
        """One evaluator."""
        return 1


class ToyDevice:
    """Runs everything in this process."""

    noise_file = None

    def __init__(self, description):
        self.description = description

    def versions(self):
        """Returns the version of PyTorch."""
        return {"torch": torch.__version__}

    def held(self, exclusivity):
        """Does not wait."""
        return contextlib.nullcontext()

    def usable(self, task):
        """Always."""
        return True

    def open(self, task, trusted=False, seed=0, resident=False, launch_instructions=None):
        """Opens a session."""
        return ToySession(task, TRUSTED_SECONDS if trusted else CANDIDATE_SECONDS)

    def upstream(self, output, seconds):
        """Runs no programs of suites: its candidates are Python functions."""
        raise NotOfferedError("toy:0 runs no programs of suites")

    def free_unused_memory(self):
        """Holds none."""

    def synchronize(self):
        """Has no queue."""

    def close(self):
        """Holds nothing."""


class ToySession:
    """A baseline runs the reference. A candidate is Python with a function named as the task."""

    timed = None

    def __init__(self, task, seconds):
        self._task, self._seconds = task, seconds
        self.confinement = {"active": [], "missing": {}}

    def load(self, source, language=None):
        """Runs a candidate's source; a baseline is the reference, whatever its source."""
        self._function = self._task.problem.reference
        if self._seconds == TRUSTED_SECONDS:
            return None
        names = {"torch": torch}
        try:
            exec(source, names)
            self._function = names[self._task.entry]
        except Exception as error:
            return Failed(FailureKind.COMPILE, f"{type(error).__name__}: {error}")
        return None

    def sample_from(self, seed):
        pass

    def call(self, inputs, dims, noop=False, audit=None):
        """Calls the function, which counts as one launch."""
        if noop:
            shapes = self._task.problem.output_shapes(dims)
            outputs = [
                torch.zeros(shapes[o.name], dtype=o.dtype) for o in self._task.problem.outputs
            ]
        else:
            copies = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}
            result = self._function(**copies)
            outputs = [result] if isinstance(result, torch.Tensor) else list(result)
        return Call(tuple(map(OutputTensor, outputs)), self._seconds, launches=1)

    def compile(self, calls):
        """Compiles nothing."""

    def second_opinion(self):
        """Has one compiler."""

    def facts(self):
        """Knows no kernels."""
        return ()

    def close(self):
        """Holds nothing."""

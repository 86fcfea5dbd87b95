"""The settings of a simulated GPU in a program's own process, as environment variables.

`kernel-gym sim -- COMMAND` sets them, and every process of the command reads them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.errors import InputError
from kernel_gym.sim.asm.targets import TARGETS

DEVICE = "KERNEL_GYM_SIM_DEVICE"
RESULTS = "KERNEL_GYM_SIM_RESULTS"
AUDIT = "KERNEL_GYM_SIM_AUDIT"
BOUNDS = "KERNEL_GYM_SIM_BOUNDS"
THREADS = "KERNEL_GYM_SIM_THREADS"
MEMORY = "KERNEL_GYM_SIM_MEMORY"
LAUNCH_LIMIT = "KERNEL_GYM_SIM_LAUNCH_LIMIT"
VARIABLES = (DEVICE, RESULTS, AUDIT, BOUNDS, THREADS, MEMORY, LAUNCH_LIMIT)

PREFIX = "sim:"
DEFAULT = "sim:gfx942"
MAX_LAUNCH_SECONDS = 600.0
"""Default of the host seconds until a launch is stopped."""


@dataclass(frozen=True)
class SimSettings:
    """Properties of a program's simulated GPU.

    Attributes:
        device: Name of the device, such as `sim:gfx942`.
        results: The folder for documents about the processes; None: nothing is written.
        audit: Whether every launch is audited. What the audits find does not stop the program.
        bounds: `fault`: an access outside all allocations stops the launch. `warn`: one within
            4096 bytes of an allocation is made and becomes a finding. So does a read outside LDS,
            which gives zero, and a write there, which is dropped.
        threads: Host threads of the engine; None: one a core.
        memory: Bytes of device memory; None: the default.
        launch_limit: Host seconds until a launch is stopped.
    """

    device: str = DEFAULT
    results: Path | None = None
    audit: bool = False
    bounds: str = "fault"
    threads: int | None = None
    memory: int | None = None
    launch_limit: float = MAX_LAUNCH_SECONDS

    def __post_init__(self) -> None:
        """Checks the names.

        Raises:
            InputError: The device or the kind of bounds is unknown.
        """
        names = sorted((PREFIX + arch for arch in TARGETS), key=lambda name: name != DEFAULT)
        if self.device not in names:
            raise InputError(f"device: found {self.device}, expected {', '.join(names)}")
        if self.bounds not in ("fault", "warn"):
            raise InputError(f"bounds: found {self.bounds}, expected fault or warn")

    @property
    def arch(self) -> str:
        """The architecture to simulate, such as `gfx942`."""
        return self.device.removeprefix(PREFIX)

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] = os.environ) -> SimSettings | None:
        """Reads the settings; returns None if no simulated GPU is wanted.

        Raises:
            InputError: A variable has a value that it cannot have.
        """
        if not variables.get(DEVICE):
            return None
        results = variables.get(RESULTS)
        try:
            return cls(
                device=variables[DEVICE],
                results=Path(results) if results else None,
                audit=variables.get(AUDIT) == "1",
                bounds=variables.get(BOUNDS) or "fault",
                threads=int(variables[THREADS]) if variables.get(THREADS) else None,
                memory=int(variables[MEMORY]) if variables.get(MEMORY) else None,
                launch_limit=float(variables.get(LAUNCH_LIMIT) or MAX_LAUNCH_SECONDS),
            )
        except ValueError as error:
            names = f"{THREADS}, {MEMORY} and {LAUNCH_LIMIT}"
            raise InputError(f"{names} are numbers: {error}") from None

    def to_environment(self) -> dict[str, str]:
        """Returns the variables that say the same."""
        values = {
            DEVICE: self.device,
            RESULTS: str(self.results or ""),
            AUDIT: "1" if self.audit else "",
            BOUNDS: self.bounds,
            THREADS: str(self.threads or ""),
            MEMORY: str(self.memory or ""),
            LAUNCH_LIMIT: str(self.launch_limit),
        }
        return {name: value for name, value in values.items() if value}

"""Makes a simulated GPU available to the process that asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_gym.torch_device import library

if TYPE_CHECKING:
    from kernel_gym.programs.simulation import Simulation


def enable_simulation(
    arch: str = "gfx942",
    *,
    threads: int | None = None,
    memory: int | None = None,
    launch_limit: float = 600.0,
    audit: bool = False,
    bounds: str = "fault",
) -> Simulation:
    """Makes a simulated GPU available in this process, for PyTorch and Triton.

    Call it before PyTorch is imported. The program is not confined. A second call returns the same
    object.

    Args:
        arch: The architecture: `gfx942`, `gfx90a` or `gfx950`.
        threads: Host threads that run workgroups; by default one for each processor.
        memory: Most live bytes of device memory; by default half of what the host has free.
        launch_limit: Host seconds until a launch is stopped.
        audit: Whether each launch is audited for races and missing waits. What is found does not
            stop the program.
        bounds: `fault`: an access outside all allocations stops the launch. `warn`: one within
            4096 bytes of an allocation is made and listed in the findings.

    Returns:
        Launches, profiles, findings and modelled times.

    Raises:
        TorchDeviceError: PyTorch is imported already.
        DeviceBuildError: The device cannot be built for the PyTorch that is installed.

    Example:
        ```python
        simulation = kernel_gym.enable_simulation()
        import torch

        torch.ones(4, device="cuda").sum().item()  # 4.0
        ```
    """
    library.load_before_torch()  # the next line imports PyTorch
    from kernel_gym.programs.simulation import enable

    return enable(arch, threads, memory, launch_limit, audit, bounds)

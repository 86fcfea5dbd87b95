"""A simulated GPU in the same process, for trusted programs: there is no judge and no sandbox.

Host code may read device memory here. Candidates never run like this.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

from kernel_gym.devices.sim import memory as sim_memory
from kernel_gym.devices.sim import server as sim_server
from kernel_gym.devices.sim import simulated_gpu
from kernel_gym.protocol.request import Request, encode
from kernel_gym.sandbox.channel import Message
from kernel_gym.worker.sim.runtime import SimRuntime


class LocalRuntime(SimRuntime):
    """Requests that are answered in the same process."""

    def __init__(
        self,
        threads: int = 1,
        memory: int = 8 << 30,
        launch_limit: float = 60.0,
        arch: str = "gfx942",
    ) -> None:
        """Makes the device.

        Args:
            threads: Host threads for workgroups.
            memory: Limit of the live bytes of device memory.
            launch_limit: Host seconds until a launch is stopped.
            arch: The architecture to simulate.

        Raises:
            OSError: The device's addresses are taken, such as by another one in this process.
        """
        super().__init__(arch=arch)
        file = sim_memory.create_file()
        sim_memory.map_device(file)
        os.close(file)
        options = {"threads": threads, "memory": memory, "launch_limit": launch_limit, "arch": arch}
        self.gpu = simulated_gpu.SimulatedGpu(options)

    def download(self, address: int, size: int) -> bytes:
        """Copies device bytes to the host and charges a transfer over the host link."""
        self.gpu.seconds += sim_memory.HOST_COPY_LATENCY + size / sim_memory.HOST_LINK
        return ctypes.string_at(address, size)

    def _ask(self, request: Request) -> dict[str, Any]:
        message = Message(*encode(request))
        return self.checked(sim_server.answer_worker(self.gpu, message))

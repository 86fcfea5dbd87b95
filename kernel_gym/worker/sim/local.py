"""A simulated GPU in this very process, for programs that one trusts: no judge, no sandbox.

Host code may read device memory here. Candidates never run like this.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

from kernel_gym.devices.sim import memory as sim_memory
from kernel_gym.devices.sim import server as sim_server
from kernel_gym.sandbox.channel import Message
from kernel_gym.worker.sim.runtime import SimRuntime


class LocalRuntime(SimRuntime):
    """Requests answered in the same process."""

    def __init__(
        self,
        threads: int = 1,
        memory: int = 8 << 30,
        launch_limit: float = 60.0,
        arch: str = "gfx942",
    ) -> None:
        """Makes the device.

        Args:
            threads: host threads for workgroups.
            memory: most live bytes of device memory.
            launch_limit: host seconds until a launch is stopped.
            arch: what is simulated.

        Raises:
            OSError: the device's addresses are taken, such as by another one in this process.
        """
        super().__init__(arch=arch)
        file = sim_memory.create_file()
        sim_memory.map_device(file)
        os.close(file)
        options = {"threads": threads, "memory": memory, "launch_limit": launch_limit, "arch": arch}
        self.server = sim_server.DeviceServer(options)

    def download(self, address: int, size: int) -> bytes:
        """Copies device bytes to the host, charged as a transfer over the host link."""
        self.server.seconds += sim_server.HOST_COPY_LATENCY + size / sim_server.HOST_LINK
        return ctypes.string_at(address, size)

    def _ask(self, header: dict[str, Any], *buffers: bytes) -> dict[str, Any]:
        return self.checked(sim_server.answer_worker(self.server, Message(header, buffers)))

"""The worker's driver: turns what candidate code does into requests to the simulated device."""

from __future__ import annotations

from typing import Any

from kernel_gym.sandbox.channel import Channel
from kernel_gym.worker.sim.properties import PROPERTIES


class DeviceError(RuntimeError):
    """The device refused a request or found a fault. Its text says which."""


class UnsupportedCodeError(DeviceError):
    """The device cannot decode the compiled kernel."""


class SimRuntime:
    """Requests to the device over the worker's pipe, one at a time."""

    allocated = 0
    """Bytes that are allocated now."""
    most_allocated = 0
    """The most that there were at one time."""

    def __init__(self, channel: Channel | None = None, arch: str = "gfx942") -> None:
        self._channel = channel
        self.properties = PROPERTIES[arch]
        self._sizes: dict[int, int] = {}
        self._captured: list[tuple[dict[str, Any], tuple[bytes, ...]]] | None = None
        self._of_graphs: set[int] = set()

    def allocate(self, size: int) -> int:
        """Address of `size` fresh, poisoned bytes."""
        address = self._ask({"do": "allocate", "size": size})["address"]
        self._sizes[address] = size
        self.allocated += size
        self.most_allocated = max(self.most_allocated, self.allocated)
        if self.capturing:
            self._of_graphs.add(address)
        return address

    def free(self, address: int) -> None:
        """Gives an allocation back, unless a captured graph will use it again."""
        if address in self._of_graphs:
            return
        self.allocated -= self._sizes.pop(address, 0)
        self._ask({"do": "free", "address": address})

    def forget_peak(self) -> None:
        """The most allocated counts from now on."""
        self.most_allocated = self.allocated

    # -- captured graphs

    @property
    def capturing(self) -> bool:
        """Whether requests are kept instead of made."""
        return self._captured is not None

    def begin_capture(self) -> None:
        """Keeps launches, fills and copies from now on.

        Raises:
            DeviceError: a capture is under way.
        """
        if self.capturing:
            raise DeviceError("a graph is being captured already")
        self._captured = []

    def end_capture(self) -> list[Any]:
        """The kept requests, for `replay`."""
        captured, self._captured = self._captured or [], None
        return captured

    def replay(self, requests: list[Any]) -> None:
        """Makes kept requests."""
        for header, buffers in requests:
            self._ask(header, *buffers)

    def fill(self, tensor: dict[str, Any], value: float) -> None:
        """Sets every element of a described tensor."""
        self._work({"do": "fill", "tensor": tensor, "value": value})

    def copy(self, source: dict[str, Any], target: dict[str, Any]) -> None:
        """Copies between described tensors."""
        self._work({"do": "copy", "source": source, "target": target})

    def upload(self, address: int, data: bytes) -> None:
        """Copies host bytes to the device."""
        self._ask({"do": "upload", "address": address}, data)

    def download(self, address: int, size: int) -> bytes:
        """Copies device bytes to the host: refused here, only a trusted program may.

        Raises:
            DeviceError: always.
        """
        self.refuse("copy from device to host")
        raise DeviceError("reading device memory on the host is refused")

    def refuse(self, operator: str) -> None:
        """Tells the device that an operator was refused."""
        self._ask({"do": "refuse", "operator": operator})

    def clock(self) -> float:
        """Modelled seconds that the device has been busy: for autotuning, not for a verdict."""
        return self._ask({"do": "clock"})["seconds"]

    def names(self, text: str) -> list[str]:
        """Names of the kernels in an assembler text."""
        return self._ask({"do": "names", "text": text})["names"]

    def variable(self, text: str, name: str) -> tuple[int, int]:
        """Address and bytes of a device variable of an assembler text; zeros if there is none."""
        answer = self._ask({"do": "variable", "text": text, "name": name})
        return answer["address"], answer["size"]

    def load(self, text: str, name: str | None = None, shared: int | None = None) -> dict[str, Any]:
        """Loads a kernel; returns its handle, argument sizes and registers."""
        return self._ask({"do": "load", "text": text, "name": name, "shared": shared})

    def launch(
        self,
        kernel: int,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        values: list[bytes],
        lds: int = 0,
    ) -> None:
        """Launches a kernel with packed argument values."""
        header = {
            "do": "launch",
            "kernel": kernel,
            "grid": list(grid),
            "block": list(block),
            "sizes": [len(v) for v in values],
            "lds": lds,
        }
        self._work(header, b"".join(values))

    def _work(self, header: dict[str, Any], *buffers: bytes) -> None:
        if self._captured is None:
            self._ask(header, *buffers)
        else:
            self._captured.append((header, buffers))

    def _ask(self, header: dict[str, Any], *buffers: bytes) -> dict[str, Any]:
        assert self._channel is not None  # else a subclass answers
        return self.checked(self._channel.request(header, *buffers).header)

    @staticmethod
    def checked(answer: dict[str, Any]) -> dict[str, Any]:
        """The device's answer.

        Raises:
            DeviceError: it is an error.
        """
        if "error" in answer:
            unsupported = answer.get("kind") in ("AsmError", "UnsupportedInstruction")
            raise (UnsupportedCodeError if unsupported else DeviceError)(answer["error"])
        return answer

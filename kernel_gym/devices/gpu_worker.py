"""A worker process on a real GPU: started ahead, so that its context is ready when it is needed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from kernel_gym.devices.base import InfraError
from kernel_gym.devices.gpu_arena import Arena
from kernel_gym.devices.vendors import device_files, vendor_here
from kernel_gym.sandbox.channel import ChannelError
from kernel_gym.sandbox.confine import Limits
from kernel_gym.sandbox.spawn import Child, Template, TemplateError

START_TIMEOUT = 60.0
WORKER_LIMITS = Limits(memory=64 << 30, open_files=1024)
"""The driver maps much memory that it never touches."""


class Worker:
    """A worker process with its GPU context, of no task yet."""

    def __init__(
        self,
        template: Template,
        arena: Arena,
        visible: Mapping[str, str],
        flush: int,
        cache: str,
    ) -> None:
        options = {"handle": arena.handle.hex(), "size": arena.size, "flush": flush}
        options["devices"] = list(device_files(vendor_here()))
        files = [arena.file] if arena.file is not None else []
        environment = dict(visible) | ({"TRITON_CACHE_DIR": f"{cache}/triton"} if cache else {})
        writable = [cache] if cache else []
        self.cache = cache
        self._confinement: dict[str, Any] | None = None
        try:
            self.child: Child = template.fork(
                "gpu", files, options, WORKER_LIMITS, environment, bool(cache), writable
            )
        except TemplateError as error:
            raise InfraError(f"a worker could not be started: {error}") from error

    def ready(self) -> dict[str, Any]:
        """Waits for the context; says how the worker is confined.

        Raises:
            InfraError: it could not open the GPU.
        """
        if self._confinement is None:
            try:
                header = self.child.channel.recv(START_TIMEOUT).header
            except ChannelError as error:
                self.close()
                raise InfraError(f"a worker could not be started: {error}") from error
            if "broken" in header:
                self.close()
                raise InfraError(f"a worker cannot use the GPU: {header['broken']['message']}")
            self._confinement = header["confinement"]
        return self._confinement

    def close(self) -> None:
        """Ends it and everything it started."""
        with contextlib.suppress(TemplateError):
            self.child.close()

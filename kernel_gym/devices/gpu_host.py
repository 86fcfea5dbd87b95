"""What the sessions on one GPU share, and what a HIP source is built with there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernel_gym.devices.base import InfraError
from kernel_gym.devices.gpu_arena import Arena
from kernel_gym.devices.vendors import Vendor, find_compiler
from kernel_gym.tasks.task import Task


@dataclass(frozen=True)
class Host:
    """What sessions on one GPU share."""

    arena: Arena
    vendor: Vendor
    arch: str
    reported: Mapping[str, Any]
    """What the GPU says of itself."""


def build_options(task: Task, host: Host, cache: str) -> dict[str, Any]:
    """What a worker needs to build a HIP source.

    Args:
        task: whose outputs the launcher takes behind its inputs.
        host: the GPU.
        cache: folder of compiled trusted sources; empty for none.

    Raises:
        InfraError: there is no compiler.
    """
    compiler = find_compiler(host.vendor)
    if compiler is None:
        raise InfraError(f"HIP needs {host.vendor.compiler}, which is not here")
    first = len(task.problem.args)
    return {
        "outputs": list(range(first, first + len(task.problem.outputs))),
        "command": host.vendor.compile_command(compiler, host.arch),
        "suffix": host.vendor.suffix,
        "cache": cache,
    }

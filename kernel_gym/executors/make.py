"""Makes executors by name, and chooses the number of workers."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from kernel_gym.devices import backend_of, resolve
from kernel_gym.errors import InputError
from kernel_gym.executors.base import Executor
from kernel_gym.tasks.near_names import unknown

EXECUTORS = {
    "inline": "kernel_gym.executors.inline:InlineExecutor",
    "local": "kernel_gym.executors.local:LocalExecutor",
    "ray": "kernel_gym.executors.on_ray:RayExecutor",
}


class UnknownExecutor(InputError, ValueError):
    """There is no executor of this name. The message lists similar names."""


def make_executor(name: str = "local", **arguments: Any) -> Executor:
    """Makes an executor.

    Args:
        name: `inline`, `local`, `ray`, or the address of a service such as `http://judge:8000`.
        arguments: The arguments of its class: `device`, `seed`, `cache` and `secret` for all,
            `plans` for `inline` and `local`, `workers` and `deadline` for `local` and `ray`, and
            `arch`, `address` and `resources` for `ray`. A service has its own device, workers and
            secret: it takes `seed`, `cache` and `token`, and ignores the others.

    Returns:
        The executor. The caller must close it.

    Raises:
        UnknownExecutor: There is no such executor.
    """
    require_executor(name)
    if is_service(name):
        from kernel_gym.executors.http import HttpExecutor

        own = {key: arguments[key] for key in ("seed", "cache", "token") if key in arguments}
        return HttpExecutor(name, **own)
    module, _, kind = EXECUTORS[name].partition(":")
    return getattr(import_module(module), kind)(**arguments)


def default_workers(device: str) -> int:
    """Returns the default number of workers of a device: one per core, at most eight.

    Args:
        device: A device name. A GPU gets at most six, and no more than fit into its memory.

    Raises:
        UnknownDevice: There is no such device.
    """
    device = resolve(device)
    return backend_of(device).default_workers(device, os.cpu_count() or 1)


def require_executor(name: str) -> None:
    """Checks that an executor exists.

    Raises:
        UnknownExecutor: There is none. The message lists similar names.
    """
    if not is_service(name) and name not in EXECUTORS:
        raise UnknownExecutor(unknown("executor", name, (*EXECUTORS, "http://HOST")))


def is_service(name: str) -> bool:
    """Whether the name of an executor is the address of a service."""
    return name.startswith(("http://", "https://"))

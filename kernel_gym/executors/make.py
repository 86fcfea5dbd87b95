"""Executors by name, and how many evaluate side by side."""

from __future__ import annotations

import difflib
import os
from importlib import import_module
from typing import Any

from kernel_gym.devices import backend_of, resolve
from kernel_gym.executors.base import Executor

EXECUTORS = {
    "inline": "kernel_gym.executors.inline:InlineExecutor",
    "local": "kernel_gym.executors.local:LocalExecutor",
    "ray": "kernel_gym.executors.on_ray:RayExecutor",
}


class UnknownExecutor(ValueError):
    """No executor of that name; the message lists near matches."""


def make_executor(name: str = "local", **arguments: Any) -> Executor:
    """The executor of that name.

    Args:
        name: `inline`, `local` or `ray`.
        arguments: What its class takes: `device`, `seed`, `cache`; but for `inline` also `workers`
            and `deadline`; for `ray` also `arch`, `address` and `resources`.

    Returns:
        The executor, to be closed by the caller.

    Raises:
        UnknownExecutor: No such executor.
    """
    require_executor(name)
    module, _, kind = EXECUTORS[name].partition(":")
    return getattr(import_module(module), kind)(**arguments)


def default_workers(device: str) -> int:
    """How many evaluate side by side on a device where nobody says it: one a core, at most eight.

    Args:
        device: A device name. A GPU takes six at most, and no more than its memory holds.

    Raises:
        UnknownDevice: No such device.
    """
    device = resolve(device)
    return backend_of(device).default_workers(device, os.cpu_count() or 1)


def require_executor(name: str) -> None:
    """Does nothing when there is an executor of that name.

    Raises:
        UnknownExecutor: There is none; the message lists near matches.
    """
    if name not in EXECUTORS:
        near = difflib.get_close_matches(name, EXECUTORS, n=2, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(EXECUTORS)}"
        raise UnknownExecutor(f"unknown executor {name!r}; {hint}")

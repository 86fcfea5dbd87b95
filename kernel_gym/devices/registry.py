"""The registry of backends: one entry for each kind of device.

A backend is a folder with the code for one kind of device, and an object that implements `Backend`.
Everything that depends on the kind of a device is a method or an attribute of that object, so that
no other room looks at a device's name. Built-in backends are listed in `BUILT_IN`. An installed
package adds one with an entry point of the group `kernel_gym.backends`, a test with
:func:`register_backend`.

This module loads no PyTorch: commands that only check a name stay fast.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from kernel_gym.errors import InputError
from kernel_gym.extras import points_of
from kernel_gym.records import Clock
from kernel_gym.tasks.near_names import near_names

if TYPE_CHECKING:
    from kernel_gym.devices.base import Device
    from kernel_gym.devices.description import DeviceDescription

BUILT_IN = (
    "kernel_gym.devices.sim.backend:SimBackend",
    "kernel_gym.devices.gpu.backend:GpuBackend",
)
ENTRY_POINTS = "kernel_gym.backends"


class UnknownDevice(InputError, KeyError):
    """No device has that name; the message lists near matches."""

    def __str__(self) -> str:
        """The message, without the quotes that a KeyError adds."""
        return str(self.args[0])


@dataclass(frozen=True)
class DeviceStatus:
    """The abilities of a device on this machine."""

    name: str
    arch: str
    clock: Clock
    usable: bool
    languages: tuple[str, ...]
    problems: tuple[str, ...] = ()
    fixes: tuple[str, ...] = ()
    """A way to fix each of the problems."""


class Backend(ABC):
    """One kind of device: how to find, describe, open and schedule it."""

    name: str
    """A short name, such as `sim`; headers of exploits use it."""
    pattern: str
    """A regular expression that the names of all its devices match, present or not."""
    fixed_names: tuple[str, ...] = ()
    """Names that exist on every machine."""
    usage: str = ""
    """How other names look, for error messages."""
    preference: int = 0
    """`auto` takes the first device of the backend with the highest preference."""
    threads: bool = False
    """Whether evaluators may share a process. False where the judge itself computes on the device
    or reads clocks: each evaluator then has a process of its own."""
    full_size: bool = True
    """Whether workloads have their full sizes; otherwise the problems' small twins are used."""
    deterministic: bool = False
    """Whether equal launches have equal times and profiles."""
    ray_gpus: bool = False
    """Whether an evaluator on Ray takes a share of one of the cluster's GPUs."""
    admission_seconds: float | None = None
    """Deadline of one evaluation while problems are admitted; None for the executor's default."""

    @abstractmethod
    def present(self) -> Sequence[str]:
        """Returns the names of the devices on this machine."""

    @abstractmethod
    def describe(self, name: str) -> DeviceDescription:
        """Describes a device of this machine. Opens no context and holds no memory on it.

        Raises:
            InfraError: The backend does not know enough about the device to use it.
        """

    @abstractmethod
    def status(self, name: str) -> DeviceStatus:
        """Returns what a device can do here, also for one that cannot be used."""

    @abstractmethod
    def open(self, name: str) -> Device:
        """Opens a device for the judge.

        Raises:
            InfraError: The device cannot be used.
        """

    @abstractmethod
    def default_workers(self, name: str, cpus: int) -> int:
        """Returns how many evaluators should share a device on a host with so many CPUs."""

    def absence(self, present: Sequence[str]) -> str:
        """Explains why a well-formed name is not among the devices that are present."""
        return f"the devices here are {', '.join(present) or 'none'}"


_REGISTERED: list[Backend] = []


def register_backend(backend: Backend) -> None:
    """Adds a backend to this process.

    Raises:
        ValueError: The backend's name is taken.
    """
    if any(other.name == backend.name for other in backends()):
        raise ValueError(f"a backend named {backend.name!r} is registered already")
    _REGISTERED.append(backend)


def unregister_backend(name: str) -> None:
    """Removes a backend that was added with :func:`register_backend`."""
    _REGISTERED[:] = [backend for backend in _REGISTERED if backend.name != name]


def backends() -> tuple[Backend, ...]:
    """Returns all backends: built-in, installed, registered."""
    return (*_installed(), *_REGISTERED)


@cache
def _installed() -> tuple[Backend, ...]:
    built_in = []
    for target in BUILT_IN:
        module, _, kind = target.partition(":")
        built_in.append(getattr(import_module(module), kind)())
    return (*built_in, *(point.load()() for point in points_of(ENTRY_POINTS)))


def backend_of(name: str) -> Backend:
    """Returns the backend of a device by the device's full name.

    Raises:
        UnknownDevice: No backend has such names; the message lists near matches.
    """
    for backend in backends():
        if name in backend.fixed_names or re.fullmatch(backend.pattern, name):
            return backend
    known = fixed_names()
    near = near_names(name, known)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    others = "".join(f", and {backend.usage}" for backend in backends() if backend.usage)
    raise UnknownDevice(f"unknown device {name!r}; known: {', '.join(known)}{others}{hint}")


def fixed_names() -> tuple[str, ...]:
    """Returns `auto` and the device names that exist on every machine, without a look at it."""
    return ("auto", *(name for backend in backends() for name in backend.fixed_names))


def device_names() -> tuple[str, ...]:
    """Returns the names that :func:`resolve` accepts on this machine."""
    return ("auto", *(name for backend in backends() for name in backend.present()))


def require_device(name: str) -> None:
    """Checks the form of a device name. Does not look for GPUs, which would load PyTorch.

    Raises:
        UnknownDevice: No device can have that name; the message lists near matches.
    """
    if name != "auto":
        backend_of(name)


def resolve(name: str) -> str:
    """Returns the full name of a device that is present; `auto` is the best one here.

    Raises:
        UnknownDevice: There is no such device.
    """
    if name == "auto":
        ranked = sorted(backends(), key=lambda backend: -backend.preference)
        return next(present[0] for backend in ranked if (present := backend.present()))
    backend = backend_of(name)
    present = backend.present()
    if name in present:
        return name
    raise UnknownDevice(
        f"unknown device {name!r}: {backend.absence(present)}; `kernel-gym doctor` says what "
        "there is"
    )


def describe(name: str) -> DeviceDescription:
    """Describes a device of this machine, without a context or memory on it.

    Args:
        name: A device name, or `auto`.

    Raises:
        UnknownDevice: There is no such device.
        InfraError: The device's data sheet is not known.
    """
    name = resolve(name)
    return backend_of(name).describe(name)


def open_device(name: str) -> Device:
    """Opens a device for the judge; `auto` is the best one here.

    Raises:
        UnknownDevice: There is no such device.
        InfraError: The device cannot be used.
    """
    name = resolve(name)
    return backend_of(name).open(name)


def device_status(name: str) -> DeviceStatus:
    """Returns what a device can do on this machine, by its full name."""
    return backend_of(name).status(name)


def device_statuses() -> tuple[DeviceStatus, ...]:
    """Returns the status of every device on this machine."""
    return tuple(backend.status(name) for backend in backends() for name in backend.present())

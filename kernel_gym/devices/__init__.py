"""Where kernels run: names, detection, and what each device can do here."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from kernel_gym.devices.toolchain import MissingToolchain, hip_toolchain
from kernel_gym.records import Clock

__all__ = ["DeviceStatus", "UnknownDevice", "describe_devices", "device_names", "resolve"]

SIMULATED = "sim:gfx942"


class UnknownDevice(KeyError):
    """No device of that name; the message lists near matches."""

    def __str__(self) -> str:
        """The message itself, without a KeyError's quotes."""
        return str(self.args[0])


@dataclass(frozen=True)
class DeviceStatus:
    """What a device can do on this machine."""

    name: str
    arch: str
    clock: Clock
    usable: bool
    languages: tuple[str, ...]
    problems: tuple[str, ...] = ()
    mends: tuple[str, ...] = ()


def device_names() -> tuple[str, ...]:
    """Names that :func:`resolve` takes."""
    return ("auto", SIMULATED)


def describe_devices() -> tuple[DeviceStatus, ...]:
    """The status of every device on this machine."""
    missing = hip_toolchain()
    languages: tuple[str, ...] = ("triton", "hip")
    problems: tuple[str, ...] = ()
    mends: tuple[str, ...] = ()
    if isinstance(missing, MissingToolchain):
        languages = ("triton",)
        problems = (f"HIP tasks are skipped: {missing.problem}",)
        mends = (missing.mend,)
    return (DeviceStatus(SIMULATED, "gfx942", Clock.MODELLED, True, languages, problems, mends),)


def resolve(name: str) -> str:
    """The full name of a device; `auto` is the best one here.

    Raises:
        UnknownDevice: no such device.
    """
    if name == "auto":
        return SIMULATED
    if name == SIMULATED:
        return name
    near = difflib.get_close_matches(name, device_names(), cutoff=0.3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise UnknownDevice(f"unknown device {name!r}; known: {', '.join(device_names())}{hint}")

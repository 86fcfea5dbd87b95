"""Reasons why a device takes no candidates in a language inside of Python."""

from __future__ import annotations

from kernel_gym.devices.description import DeviceDescription
from kernel_gym.devices.sim.toolchain import MissingToolchain, hip_toolchain
from kernel_gym.tasks.embedded import EXTRAS, missing_package


def lacking(package: str, device: DeviceDescription) -> str:
    """Returns one line on why a device takes no candidates in a language; empty if it does.

    Args:
        package: The package of `EXTRAS` that a task requires, or empty.
        device: The device.
    """
    if not package or package in device.embedded:
        return ""
    if missing := missing_package(package):
        return missing
    chain = hip_toolchain(device.arch) if device.arch.startswith("gfx") else None
    if isinstance(chain, MissingToolchain):
        needs = f"candidates in {EXTRAS[package]} need a compiler of HIP"
        return f"{needs}: {chain.problem}; {chain.fix}"
    return f"candidates in {EXTRAS[package]} are for AMD's GPUs: use --device sim"

"""The facts that are known of a device before it is opened."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import torch

from kernel_gym.hardware import DeviceSpec
from kernel_gym.records import Clock
from kernel_gym.tasks.problem import Scale


class TimingMethod(StrEnum):
    """How the judge learns the time of a kernel."""

    REPORTED = "reported"
    """The device reports the seconds of each call, and the judge believes it."""
    PAIRED = "paired"
    """The judge measures blocks of calls of baseline and candidate in turn."""


@dataclass(frozen=True)
class DeviceDescription:
    """A device as prompts, drivers and the judge need to know it.

    A description opens no context and holds no memory on the device, so that a driver may describe
    a device that only its workers use. Make one with :func:`kernel_gym.devices.describe`.
    """

    name: str
    """The full name on this machine, such as `cuda:0`."""
    hardware: str
    """The model of the device, such as `NVIDIA H200`. Verdicts of admissions use it."""
    spec: DeviceSpec
    """Peak rates from the data sheet."""
    clock: Clock
    """Whether times are measured or modelled."""
    timing: TimingMethod
    scale: Scale
    """The sizes of workloads that the device is given."""
    languages: tuple[str, ...]
    """The languages that candidates can be written in on this machine: "triton", "hip"."""
    facts: str
    """One paragraph about the device for prompts."""
    torch_device: torch.device
    """Where the judge draws inputs and computes expected values."""
    arch: str
    """The compiler's name of the architecture, such as `gfx942` or `sm_90a`."""
    embedded: tuple[str, ...] = ()
    """Further languages of candidates in tasks in Triton on this machine: "flydsl", "tilelang"."""
    audits: bool = False
    """Whether launches can be audited for races and undefined reads."""
    device_per_session: bool = False
    """Whether each session has a device of its own, so that its source causes its failures."""
    total_memory: int = 0
    """Bytes of the device's memory; 0 where nothing is limited by it."""
    shared_memory: int = 0
    """Bytes that judge and workers share for inputs and outputs; 0 where that has no limit."""

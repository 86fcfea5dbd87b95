"""`kernel-gym doctor`: what this machine can run, and how to make the rest work."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer
from rich.markup import escape

from kernel_gym import triton_versions
from kernel_gym.commands.common import (
    FAILED,
    JsonOption,
    console,
    messages,
    note,
    print_json,
)
from kernel_gym.commands.tables import folding_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel_gym.devices.registry import DeviceStatus

PACKAGES = ("kernel-gym", "torch", "triton", "gymnasium", "numpy")


def doctor(
    prepare: Annotated[
        bool,
        typer.Option("--prepare", help="Precompile PyTorch's headers for extensions in HIP."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Say which devices work here, and what is missing for the others.

    With --prepare PyTorch's headers are precompiled now, about two processor minutes for each
    simulated device. Else the first candidate that is an extension in HIP waits for that.

    Example: kernel-gym doctor
    """
    from kernel_gym.devices import device_statuses

    with messages.status("looking for devices"):
        devices = list(device_statuses())
        barriers = confinement(devices)
    headers = extension_headers(devices, prepare)
    if json:
        rows = [_as_dict(device) for device in devices]
        print_json(
            {
                "versions": versions(),
                "triton": triton_setup(),
                "languages": embedded_languages(),
                "devices": rows,
                "confinement": barriers,
                "extension_headers": headers,
            }
        )
    else:
        _show(devices)
        _show_triton(triton_setup())
        _show_languages(embedded_languages())
        _show_headers(headers)
        _show_confinement(barriers)
    if not any(device.usable for device in devices):
        raise typer.Exit(FAILED)


def confinement(devices: Sequence[DeviceStatus]) -> dict[str, object]:
    """Returns the barriers around a worker: active ones, and missing ones with the reason.

    Args:
        devices: The devices of this machine. Without a simulated one no worker starts.
    """
    from kernel_gym.devices import open_device
    from kernel_gym.devices.base import InfraError
    from kernel_gym.devices.sim.backend import NAMES
    from kernel_gym.tasks import get_task, task_ids

    simulated = next(device for device in devices if device.name == NAMES[0])
    if not simulated.usable:
        return {"active": [], "missing": {"workers": "; ".join(simulated.problems)}}
    try:
        session = open_device(NAMES[0]).open(get_task(task_ids()[0]))
        try:
            return dict(session.confinement)
        finally:
            session.close()
    except InfraError as error:
        return {"active": [], "missing": {"workers": str(error)}}


def extension_headers(devices: Sequence[DeviceStatus], prepare: bool = False) -> dict[str, bool]:
    """Returns whether PyTorch's headers are precompiled, by simulated device with HIP.

    Args:
        devices: The devices of this machine.
        prepare: Precompile what is not there.

    Raises:
        typer.Exit: They do not compile.
    """
    from kernel_gym.devices.base import InfraError
    from kernel_gym.devices.hip_build import has_extension_headers, prepare_extension_headers
    from kernel_gym.devices.sim.backend import NAMES

    able = [device for device in devices if device.name in NAMES and "hip" in device.languages]
    for device in able if prepare else ():
        try:
            with messages.status(f"precompiling PyTorch's headers for {device.arch}"):
                prepare_extension_headers(device.arch)
        except InfraError as error:
            note(f"error: {error}")
            raise typer.Exit(FAILED) from None
    return {device.name: has_extension_headers(device.arch) for device in able}


def versions() -> dict[str, str]:
    """Returns the versions of the packages that influence a result."""
    result = {"python": platform.python_version()}
    return result | {package: _version(package) for package in PACKAGES}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


class TritonSetup(TypedDict):
    """Which Triton is used and how, see `triton_setup`."""

    version: str
    problem: str
    block_pointers: bool
    environment: dict[str, str]


def triton_setup() -> TritonSetup:
    """Returns which Triton is used and how.

    Returns:
        ``version``; ``problem`` (empty if that version is one of the tested ones);
        ``block_pointers``: whether it has them; ``environment``: the settings it compiles with.
    """
    name = versions()["triton"]
    if name == "missing":
        problem, block_pointers = "Triton is not installed: pip install triton", False
    else:
        problem = triton_versions.problem(name)
        block_pointers = triton_versions.has_block_pointers(name)
    return {
        "version": name,
        "problem": problem,
        "block_pointers": block_pointers,
        "environment": dict(triton_versions.ENVIRONMENT),
    }


def embedded_languages(arch: str = "gfx942") -> dict[str, dict[str, str]]:
    """Returns the languages inside of Python, by the name of their package.

    Args:
        arch: The simulated GPU that kernels are built for.

    Returns:
        For each ``language``; ``version``, which may be missing; and ``problem``, which names the
        cure and is empty if candidates can use the language.
    """
    from kernel_gym.devices.hip_build import tilelang_lacks
    from kernel_gym.sandbox.failures import BuildError
    from kernel_gym.tasks.embedded import EXTRAS
    from kernel_gym.worker.recording import flydsl, tilelang

    rows = {}
    for package, check in (("flydsl", flydsl), ("tilelang", tilelang)):
        try:
            check.check_installed()
            problem = tilelang_lacks(arch) if package == "tilelang" else ""
        except BuildError as error:
            problem = str(error)
        rows[package] = {
            "language": EXTRAS[package],
            "version": _version(package),
            "problem": problem,
        }
    return rows


def _as_dict(device: DeviceStatus) -> dict[str, object]:
    return {
        "name": device.name,
        "arch": device.arch,
        "clock": device.clock,
        "usable": device.usable,
        "languages": list(device.languages),
        "problems": list(device.problems),
        "fixes": list(device.fixes),
    }


def _show(devices: list[DeviceStatus]) -> None:
    console.print("  ".join(f"{name} {found}" for name, found in versions().items()))
    table = folding_table("device", "arch", "usable", "times", "languages")
    for device in devices:
        usable = "[green]yes[/]" if device.usable else "[red]no[/]"
        table.add_row(
            device.name, device.arch or "-", usable, device.clock, ", ".join(device.languages)
        )
    console.print(table)
    for device in devices:
        for problem in device.problems:
            console.print(f"[yellow]{device.name}[/]: {escape(problem)}", highlight=False)
        for fix in device.fixes:
            console.print(f"  to fix it: [bold]{escape(fix)}[/]", highlight=False, soft_wrap=True)


def _show_triton(setup: TritonSetup) -> None:
    pointers = "with" if setup["block_pointers"] else "without"
    settings = " ".join(f"{name}={value}" for name, value in setup["environment"].items())
    text = f"triton {setup['version']} {pointers} block pointers, compiles with {settings}"
    console.print(text, highlight=False, soft_wrap=True)
    if setup["problem"]:
        console.print(f"[yellow]triton[/]: {escape(setup['problem'])}", highlight=False)


def _show_languages(languages: dict[str, dict[str, str]]) -> None:
    """Prints a line for each language inside of Python: its version, or its cure."""
    for row in languages.values():
        state = row["problem"] or f"{row['version']}, for tasks on simulated devices"
        text = f"{row['language']}: {state}"
        console.print(text, highlight=False, markup=False, soft_wrap=True)


def _show_headers(headers: dict[str, bool]) -> None:
    """Says which device would make the first extension in HIP wait."""
    missing = [name for name, present in headers.items() if not present]
    if headers and not missing:
        console.print("PyTorch's headers are precompiled for extensions in HIP", highlight=False)
    elif missing:
        text = (
            f"PyTorch's headers are not precompiled for {', '.join(missing)}: the first extension "
            "in HIP takes two processor minutes more"
        )
        console.print(text, highlight=False, soft_wrap=True)
        console.print("  to do it now: [bold]kernel-gym doctor --prepare[/]", highlight=False)


def _show_confinement(found: dict[str, Any]) -> None:
    from kernel_gym.sandbox.confine import WITHOUT

    console.print(f"workers are confined by: {', '.join(found['active']) or 'nothing'}")
    for name, why in found["missing"].items():
        without = WITHOUT.get(name, "candidates cannot be evaluated")
        console.print(
            f"[yellow]missing: {name}[/] ({escape(why)}): {without}",
            highlight=False,
            soft_wrap=True,
        )

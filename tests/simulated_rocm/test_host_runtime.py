"""Whole HIP programs, compiled by clang for host and device, run on the simulator.

Each runs in a process of its own: it may end its process, and the host runtime is one for all.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain

FOLDER = Path(__file__).with_name("host_runtime")
PROGRAMS = [
    *("memory", "streams_and_events", "properties_and_errors", "occupancy", "launches"),
    *("symbols", "cooperative", "bad_handles", "null_pointers", "device_numbers", "per_thread"),
]
RUN = """
import sys
from kernel_gym.worker.hip.sim import run_program
from kernel_gym.programs.local_runtime import LocalRuntime
source, *flags = sys.argv[1:]
runtime = LocalRuntime()
try:
    commands = {"device": flags[0].split("|"), "host": flags[1].split("|")}
    status = run_program(open(source).read(), commands, runtime)
except Exception as error:
    sys.exit(f"{type(error).__name__}: {error}")
sys.exit(f"failed at line {status}" if status else 0)
"""
SCALE = """
extern "C" __attribute__((global)) void scale(float* x, float factor) {
  x[__builtin_amdgcn_workgroup_id_x() * 128 + __builtin_amdgcn_workitem_id_x()] *= factor;
}
"""


@pytest.fixture(scope="module")
def toolchain():
    outcome = hip_toolchain()
    if not isinstance(outcome, HipToolchain):
        pytest.skip(outcome.problem)
    return outcome


def run(path, toolchain, folder, *flags):
    """Runs a program; returns its output and its end."""
    include = ("-I", str(FOLDER), *flags)
    commands = ["|".join((*command, *include)) for command in (toolchain.device, toolchain.host)]
    return subprocess.run(
        [sys.executable, "-c", RUN, str(path), *commands],
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, toolchain, tmp_path):
    done = run(FOLDER / f"{name}.hip", toolchain, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_program_that_finds_a_wrong_value_fails_with_its_line(toolchain, tmp_path):
    text = (FOLDER / "memory.hip").read_text().replace("x[i] *= 2.f", "x[i] *= 3.f")
    wrong = tmp_path / "wrong.hip"
    wrong.write_text(text)
    done = run(wrong, toolchain, tmp_path)
    assert done.returncode == 1
    assert "failed at line" in done.stderr


def bundled(code):
    """An offload bundle with nothing for the host and a code object for gfx942."""
    targets = (b"host-x86_64-unknown-linux-gnu-", b"hipv4-amdgcn-amd-amdhsa--gfx942")
    header, offset = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 2), 4096
    for target, size in zip(targets, (0, len(code)), strict=True):
        header += struct.pack("<QQQ", offset, size, len(target)) + target
    return header.ljust(offset, b"\0") + code


@pytest.mark.parametrize("form", ["text", "object", "bundle"])
def test_modules(form, toolchain, tmp_path):
    clang, source, output = toolchain.device[0], tmp_path / "scale.hip", tmp_path / "scale.s"
    source.write_text(SCALE)
    hip = ("-x", "hip", "--offload-arch=gfx942", "--offload-device-only", "-nogpuinc", "-nogpulib")
    subprocess.run([clang, *hip, "-S", "-O2", str(source), "-o", str(output)], check=True)
    if form != "text":
        if not any(shutil.which(f"llvm-objdump-{n}") for n in (17, 18, 19, 20)):
            pytest.skip("no llvm-objdump that knows gfx942")
        target = ("-target", "amdgcn-amd-amdhsa", "-mcpu=gfx942")
        code = tmp_path / "scale.co"
        subprocess.run([clang, *target, str(output), "-o", str(code)], check=True)
        output = code
    if form == "bundle":
        output = tmp_path / "scale.bundle"
        output.write_bytes(bundled(code.read_bytes()))
    outcome = run(FOLDER / "modules.hip", toolchain, tmp_path, f'-DMODULE="{output}"')
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr

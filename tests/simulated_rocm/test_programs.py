"""Programs that `hipcc` has built run by themselves, each in a process with a GPU of its own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.simulated_rocm.folders import compiler_folder, library_folder

FOLDER = Path(__file__).with_name("programs")
FAULTY = 120
PROGRAMS = [
    *("attributes", "captures", "exit_zero", "graph_errors", "graph_memory", "graph_nodes"),
    *("graph_updates", "graphs", "last_error", "memory", "old_launch", "pools", "registered_heap"),
    *("registered_stack", "runtime_compilation", "runtime_linking", "small_floats"),
]


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """A function that builds a program and returns its path."""
    outcome = hip_toolchain()
    if not isinstance(outcome, HipToolchain):
        pytest.skip(outcome.problem)
    library_folder()
    folder = compiler_folder()
    if folder is None:
        pytest.skip("the HIP runtime is not built")

    def compiled(*words, name="program"):
        path = tmp_path_factory.mktemp("build") / name
        command = [str(folder / "hipcc"), "-w", *map(str, words), "-o", str(path)]
        subprocess.run(command, check=True)
        return path

    return compiled


def run(program, *words, **variables):
    """Runs a program; returns its output and its end."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("KERNEL_GYM")}
    return subprocess.run(
        [str(program), *words],
        env=kept | variables,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(build, name):
    done = run(build(FOLDER / f"{name}.hip"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_error_is_kept_until_it_is_read_since_version_7(build):
    program = build(FOLDER / "last_error.hip", "-l:libamdhip64.so.7")  # the first of its libraries
    assert run(program, "kept").returncode == 0
    assert run(program).returncode != 0


@pytest.mark.parametrize("name", ["bad_handles", "null_pointers"])
def test_programs_that_also_run_in_a_worker(build, name):
    done = run(build(FOLDER.with_name("host_runtime") / f"{name}.hip"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_program_that_ignores_a_fault_does_not_end_well(build, tmp_path):
    program = build(FOLDER / "ignored_fault.hip")
    done = run(program, KERNEL_GYM_SIM_DEVICE="sim:gfx942", KERNEL_GYM_SIM_RESULTS=str(tmp_path))
    assert done.returncode == FAULTY
    assert "write of 4 bytes" in done.stderr
    assert "ignored_fault.hip:3" in done.stderr
    (document,) = tmp_path.glob("*.jsonl")
    records = [json.loads(line) for line in document.read_text().splitlines()]
    assert [record["record"] for record in records] == ["process", "fault", "end"]
    assert records[0]["host"] == "hip"
    assert records[0]["command"] == [str(program)]
    assert records[1]["kind"] == "out_of_bounds_write"


def test_launches_are_recorded(build, tmp_path):
    variables = {
        "KERNEL_GYM_SIM_DEVICE": "sim:gfx942",
        "KERNEL_GYM_SIM_RESULTS": str(tmp_path),
    }
    assert run(build(FOLDER / "exit_zero.hip"), **variables).returncode == 0
    (document,) = tmp_path.glob("*.jsonl")
    records = [json.loads(line) for line in document.read_text().splitlines()]
    assert [record["record"] for record in records] == ["process", "launch", "end"]
    launch = records[1]
    assert (launch["grid"], launch["block"]) == ([1, 1, 1], [4, 1, 1])
    assert 0 < launch["seconds"] <= records[2]["clock"]
    assert launch["profile"]


def test_lds_addresses_wrap_and_are_checked_after_that(build):
    done = run(build(FOLDER / "negative_index.hip"))
    assert done.returncode == 7, done.stdout + done.stderr
    assert "LDS access" in done.stderr


def test_kernels_print(build):
    done = run(build(FOLDER / "prints.hip"))
    words = "even", "a word of more than eight characters"
    expected = [f"{i} {words[i]} {1.5 * i:5.2f} {'AB'[i]} ff 1234567890123%" for i in (0, 1, 0, 1)]
    assert done.stdout.splitlines() == ["before", *expected, "after"]
    assert done.returncode == 0


def test_an_assertion_that_holds_says_nothing(build):
    done = run(build(FOLDER / "asserts.hip"))
    assert (done.returncode, done.stderr) == (0, "")


def test_an_assertion_that_fails_is_quoted(build):
    done = run(build(FOLDER / "asserts.hip"), "fail")
    assert done.returncode == FAULTY
    assert "Device-side assertion `static_cast<int>(threadIdx.x) < n' failed" in done.stderr
    assert "the kernel trapped" in done.stderr


def test_a_project_of_several_files(build, tmp_path):
    project, objects = FOLDER / "project", []
    for source in (project / "main.cpp", project / "scale.hip"):
        flags = "-std=c++20", f"-I{project}", "-D", "FACTOR=6"
        objects.append(build("-c", source, *flags, name=f"{source.stem}.o"))
    assert run(build(*objects)).returncode == 0


def test_rocprim(build):
    if not Path("/usr/include/rocprim/rocprim.hpp").exists():
        pytest.skip("rocPRIM is not there: apt-get install librocprim-dev")
    done = run(build(FOLDER / "sorts.hip"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_unknown_device_is_refused_by_name(build):
    done = run(build(FOLDER / "exit_zero.hip"), KERNEL_GYM_SIM_DEVICE="sim:gfx1100")
    assert done.returncode == 125
    assert "found sim:gfx1100, expected sim:gfx942, sim:gfx90a, sim:gfx950" in done.stderr

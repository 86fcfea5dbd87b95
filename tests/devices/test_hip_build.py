"""The compiler of HIP sources: the files that it sees, its limits, and its answers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernel_gym.devices.base import Failed, FailureKind
from kernel_gym.devices.budget import HostBudget
from kernel_gym.devices.hip_build import (
    BuildRecipe,
    BuildResult,
    _read,
    compile_hip,
    compile_source,
    folders,
)
from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.sandbox.spawn import Family
from kernel_gym.tasks import get_task
from kernel_gym.worker.hip.compiler import build

LOOK = """
set -f
for place in / /etc /proc /sys /dev /tmp /home /root /usr; do
  echo "$place: $(/bin/ls $place 2>/dev/null | tr '\\n' ' ')"
done
"""
MUST_PASS = "hip2hip/softmax"
LEAKS = {
    "relative": '#include "../../../../../../../../../../{}"',
    "through a macro": '#define P "../../../../../../../../../../{}"\n#include P',
    "absolute": '#include "/{}"',
    "through the assembler": 'asm(".incbin \\"/{}\\"");',
    "imported": '#import "/{}"',
    "embedded": 'const char kept[] = {{\n#embed "/{}"\n}};',
}


@pytest.fixture(scope="module")
def chain():
    result = hip_toolchain()
    if not isinstance(result, HipToolchain):
        pytest.skip(result.problem)
    return result


def _hip(source, budget=None, family=None, limit=60.0):
    return compile_hip(source, "gfx942", limit, budget, family)


def _run(script, **options):
    recipe = BuildRecipe({"script": script}, [["/bin/sh", "script"]], [])
    return compile_source(recipe, 60.0, **options)


def test_an_honest_source_becomes_text_and_an_object(chain):
    budget = HostBudget()
    built = _hip(f"// not built before\n{get_task(MUST_PASS).kernel_source}", budget)
    assert isinstance(built, BuildResult)
    assembler, library = built.results
    assert b".amdhsa_kernel" in assembler
    assert library[:4] == b"\x7fELF"
    assert 0 < budget.wall < 240
    assert budget.host < 40


def test_nothing_of_the_machine_is_to_be_seen_but_the_compiler():
    built = _run(LOOK)
    assert isinstance(built, BuildResult)
    seen = dict(line.split(":", 1) for line in built.logs[0].splitlines())
    assert set(seen["/etc"].split()) <= {"alternatives", "ld.so.cache"}
    assert set(seen["/dev"].split()) <= {"null"}
    assert not seen["/proc"].strip()
    assert not seen["/sys"].strip()
    assert not seen["/home"].strip() + seen["/root"].strip()
    assert set(seen["/usr"].split()) <= {"bin", "lib", "lib32", "lib64", "libexec", "include"}
    assert [name for name in seen["/tmp"].split() if not name.startswith("kernel-gym-")] == []


@pytest.mark.parametrize("way", LEAKS)
@pytest.mark.parametrize("file", ["etc/passwd", "proc/version"])
def test_no_file_of_the_machine_comes_back(chain, way, file):
    text = Path("/", file).read_text()
    failed = _hip(LEAKS[way].format(file))
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.COMPILE
    for line in filter(None, text.splitlines()):
        assert line[:12] not in failed.message + failed.detail


def test_a_tree_that_takes_memory_is_ended():
    hog = f"{sys.executable} -c 'x = 1'"  # not there: the interpreter is no compiler
    assert _run(hog).kind is FailureKind.COMPILE
    script = "a=x; while true; do a=$a$a; done"
    failed = _run(script, family=Family("test of a compiler", 256 << 20))
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.COMPILE


def test_a_compiler_that_does_not_end_is_a_timeout():
    recipe = BuildRecipe({"script": "while true; do :; done"}, [["/bin/sh", "script"]], [])
    failed = compile_source(recipe, 1.0, HostBudget())
    assert failed.kind is FailureKind.TIMEOUT


@pytest.mark.parametrize(
    ("header", "buffers"),
    [
        ({}, ()),
        ({"logs": 3, "failed": False}, (b"",)),
        ({"logs": [3], "failed": False}, (b"",)),
        ({"logs": ["x"], "failed": False}, ()),
        ({"logs": ["x"], "failed": 0}, (b"",)),
        ({"logs": [], "failed": True}, ()),
    ],
)
def test_an_answer_of_another_form_is_a_failed_build(header, buffers):
    failed = _read(header, buffers, 1)
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.COMPILE


def test_the_root_and_homes_are_never_among_the_folders():
    home = str(Path.home())
    shown = folders([[f"{home}/bin/clang++", "-x", "hip", "--rocm-path=/usr", "-I", "/opt/none"]])
    assert not {"/", "/usr", "/etc", home} & set(shown)


@pytest.mark.parametrize("in_turn", [True, False])
def test_a_command_runs_after_a_failed_one_only_if_all_run_at_a_time(in_turn, tmp_path):
    commands = [["/bin/sh", "-c", "echo error: first; false"], ["/bin/sh", "-c", "echo second"]]
    logs, failed = build(tmp_path, {}, commands, in_turn)
    assert failed
    assert logs == (["error: first\n"] if in_turn else ["error: first\n", "second\n"])


def test_commands_in_turn_all_run_if_none_fails(tmp_path):
    commands = [["/bin/sh", "-c", "echo 1 > made"], ["/bin/cat", "made"]]
    assert build(tmp_path, {}, commands, in_turn=True) == (["", "1\n"], False)

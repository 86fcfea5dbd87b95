"""The compiler of HIP is found, or the message names packages that exist."""

from __future__ import annotations

import pytest

from kernel_gym.devices.sim import toolchain
from kernel_gym.devices.sim.toolchain import HipToolchain, MissingToolchain, hip_toolchain
from kernel_gym.sim.llvm_packages import packaged_llvm


@pytest.fixture
def on_path(monkeypatch, tmp_path):
    """Makes programs, given by their text in sh, the only ones on the path."""

    def make(programs):
        for name, text in programs.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        clear()

    def clear():
        hip_toolchain.cache_clear()
        packaged_llvm.cache_clear()

    yield make
    clear()


def versions(*numbers):
    return {f"clang++-{number}": f"echo clang version {number}.1.2" for number in numbers}


@pytest.mark.parametrize(
    ("there", "needed", "found"),
    [
        ((19, 22), 17, "19.1.2"),  # a newer compiler beside it changes no machine code
        ((19, 22), 20, "22.1.2"),
        ((22,), 17, "22.1.2"),
        ((20, 22), 20, "20.1.2"),
    ],
)
def test_the_first_compiler_that_is_new_enough_is_taken(on_path, there, needed, found):
    on_path(versions(*there))
    path, version = toolchain.find_clang(needed)
    assert version == found
    assert path.endswith(f"clang++-{found.partition('.')[0]}")


def test_no_compiler_is_new_enough(on_path):
    on_path(versions(19))
    assert toolchain.find_clang(20) is None


def test_only_the_folder_that_is_named_is_searched(on_path, tmp_path):
    on_path(versions(19, 20))
    folder = tmp_path / "own"
    assert toolchain.find_clang(17, str(folder)) is None
    missing = hip_toolchain("gfx950", str(folder))
    assert missing.problem == (
        f"HIP_CLANG_PATH: found no clang++ 20 or newer for gfx950 in {folder}"
    )
    folder.mkdir()
    (folder / "clang++").write_text("#!/bin/sh\necho clang version 22.1.2\n")
    (folder / "clang++").chmod(0o755)
    assert toolchain.find_clang(17, str(folder)) == (str(folder / "clang++"), "22.1.2")


@pytest.mark.parametrize(("packaged", "named"), [(20, 20), (21, 21), (22, 22), (99, 22)])
def test_the_cure_names_a_package_that_the_distribution_has(on_path, packaged, named):
    on_path(versions(19) | {"apt-cache": f'test "$2" = clang-{packaged}'})
    missing = hip_toolchain("gfx950")
    assert missing == MissingToolchain(
        "clang++ 19.1.2 has no gfx950, 20 or newer has",
        f"apt-get install clang-{named} lld-{named} rocm-device-libs libamdhip64-dev",
    )


def test_without_any_compiler_each_target_has_its_cure(on_path):
    on_path({})
    missing = hip_toolchain("gfx942")
    assert (missing.problem, missing.fix) == ("no clang++ 17 or newer", toolchain.FIX)
    newer = hip_toolchain("gfx950")
    assert newer.problem == "no clang++ 20 or newer"


def test_a_compiler_that_has_what_hip_5_expects_gets_no_other_options():
    chain = hip_toolchain("gfx942")
    if not isinstance(chain, HipToolchain) or not chain.version.startswith(("17", "18", "19")):
        pytest.skip("no such compiler")
    assert chain.older == ()

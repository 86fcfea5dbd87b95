"""The words of `hipcc` become a command for clang."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.simulated_rocm.hipcc import command, main, with_appended


@pytest.fixture(scope="module")
def chain():
    outcome = hip_toolchain()
    if not isinstance(outcome, HipToolchain):
        pytest.skip(outcome.problem)
    return outcome


def made(chain, *words):
    """The command for these words."""
    return command(words, chain, "gfx942", Path("/libraries"))


def test_sources_are_hip_and_objects_are_not(chain):
    words = made(chain, "main.cpp", "library.o", "more.hip", "-o", "program")
    start = words.index("main.cpp") - 2
    expected = ["-x", "hip", "main.cpp", "-x", "none", "library.o", "-x", "hip", "more.hip"]
    assert words[start : start + 9] == expected
    assert {"--offload-arch=gfx942", "-O3", "-L/libraries"} <= set(words)
    assert any(word.startswith("-l:libamdhip64.so.") for word in words)


def test_what_the_user_says_is_kept(chain):
    words = made(chain, "-c", "-O1", "-std=c++20", "--offload-arch=gfx90a", "main.hip")
    assert {"-O1", "-std=c++20", "--offload-arch=gfx90a"} <= set(words)
    assert not {"-O3", "-std=c++17", "--offload-arch=gfx942"} & set(words)
    assert not any("amdhip64" in word for word in words)


def test_the_systems_headers_are_not_searched_first(chain):
    words = made(chain, "-isystem", "/usr/include", "-I", "own", "main.hip")
    assert "/usr/include" not in words
    assert words[words.index("own") - 1] == "-I"


def test_values_of_options_are_no_sources(chain):
    words = made(chain, "-include", "prefix.hip", "-c", "main.hip")
    assert words[words.index("prefix.hip") - 1] == "-include"


def test_the_runtime_has_the_major_version_of_the_headers(chain, tmp_path):
    header = tmp_path / "hip" / "hip_version.h"
    header.parent.mkdir()
    header.write_text("#define HIP_VERSION_MAJOR 6\n#define HIP_VERSION_MINOR 2\n")
    for words in ([f"-I{tmp_path}"], ["-I", str(tmp_path)], ["-isystem", str(tmp_path)]):
        assert "-l:libamdhip64.so.6" in made(chain, *words, "main.cpp", "-o", "program")


def test_programs_for_later_headers_have_what_the_device_library_lacks(chain, tmp_path):
    (tmp_path / "hip").mkdir()
    (tmp_path / "hip" / "hip_version.h").write_text("#define HIP_VERSION_MAJOR 6\n")
    source = tmp_path / "clock.hip"
    declared = 'extern "C" __device__ unsigned long long __ockl_steadyctr_u64();'
    kernel = "__global__ void read(unsigned long long* at) { *at = __ockl_steadyctr_u64(); }"
    source.write_text(f"#include <hip/hip_runtime.h>\n{declared}\n{kernel}\n")
    words = ("--cuda-device-only", str(source), "-o", str(tmp_path / "clock.co"))
    later = made(chain, *words, f"-isystem{tmp_path}", "-isystem", str(tmp_path))
    assert subprocess.run(later, capture_output=True).returncode == 0
    assert (
        b"undefined hidden symbol"
        in subprocess.run(made(chain, *words), capture_output=True).stderr
    )


def test_the_folder_of_the_compiler_is_the_one_that_a_variable_names(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HIP_CLANG_PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["hipcc", "main.hip"])
    assert main() == 1
    assert f"HIP_CLANG_PATH: found no clang++ 17 or newer for gfx942 in {tmp_path}" in (
        capsys.readouterr().err
    )


@pytest.mark.slow
def test_a_source_is_preprocessed_for_the_device_and_for_the_host(chain):
    """Builders ask in this way whether the compiler knows an option."""
    words = made(chain, "-fno-gpu-rdc", "-x", "hip", "-E", "-P", "/dev/null", "-o", "-")
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "START__ hip" in done.stdout
    assert "START__ host" in done.stdout


@pytest.mark.slow
def test_a_newer_compiler_links_functions_that_read_an_option_of_hip_5(tmp_path):
    chain = hip_toolchain("gfx950")
    if not isinstance(chain, HipToolchain):
        pytest.skip(chain.problem)
    source = tmp_path / "power.hip"
    kernel = "__global__ void power(float* x) { *x = powf(*x, x[1]); }"
    source.write_text(f"#include <hip/hip_runtime.h>\n{kernel}\n")
    words = ("--cuda-device-only", str(source), "-o", str(tmp_path / "power.co"))
    done = subprocess.run(command(words, chain, "gfx950", Path("/libraries")), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.slow
@pytest.mark.parametrize("first", ["hip_runtime.h", "hip_fp16.h"])
def test_headers_of_hip_5_are_read_by_a_newer_compiler(tmp_path, first):
    chain = hip_toolchain("gfx950")
    if not isinstance(chain, HipToolchain):
        pytest.skip(chain.problem)
    source = tmp_path / "reciprocal.hip"
    source.write_text(
        f"#include <hip/{first}>\n#include <hip/hip_fp16.h>\n#include <hip/hip_runtime.h>\n"
        "__global__ void k(__half2* x, int* width) {\n"
        "  x[threadIdx.x] = h2rcp(x[threadIdx.x]);\n  *width = warpSize;\n}\n"
    )
    text = tmp_path / "reciprocal.s"
    words = ("--cuda-device-only", "-S", str(source), "-o", str(text))
    done = subprocess.run(command(words, chain, "gfx950", Path("/libraries")), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert "amdgcn-amd-amdhsa--gfx950" in text.read_text()
    assert "v_rcp_f16" in text.read_text()


APPENDED = {
    "HIPCC_COMPILE_FLAGS_APPEND": "-I '/my headers' -w",
    "HIPCC_LINK_FLAGS_APPEND": "-lmine",
}


@pytest.mark.parametrize(
    ("words", "added"),
    [
        (["-c", "a.hip"], ["-I", "/my headers", "-w"]),
        (["a.o", "-o", "program"], ["-lmine"]),
        (["a.cu", "-o", "program"], ["-I", "/my headers", "-w", "-lmine"]),
        (["--version"], []),
    ],
)
def test_variables_append_words_for_compiling_and_for_linking(words, added):
    assert with_appended(words, APPENDED) == [*words, *added]
    assert with_appended(words, {}) == words

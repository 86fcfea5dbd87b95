"""The library of the device: one for each PyTorch, and a reason where there is none."""

import os
import subprocess
import sys

import pytest

from kernel_gym.torch_device import build


@pytest.fixture
def nothing_built(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "HERE", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_its_name_tells_the_pytorch(monkeypatch):
    here = build.library_name()
    monkeypatch.setattr(build.importlib.metadata, "version", lambda name: "2.9.1+cpu")
    assert build.library_name() != here
    assert build.library_name().startswith("_torch_device_2.9.1_cpu_")


def test_a_library_in_the_cache_is_found(nothing_built):
    assert build.find_library() is None
    path = nothing_built / "kernel-gym" / "torch_device" / build.library_name()
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    assert build.find_library() == path


def test_a_missing_compiler_is_named(nothing_built, monkeypatch):
    assert build.missing() is None
    monkeypatch.setenv("PATH", str(nothing_built))
    problem, fix = build.missing()
    assert "no C++ compiler" in problem
    assert "g++" in fix
    with pytest.raises(build.DeviceBuildError, match=r"no C\+\+ compiler"):
        build.build()


def test_a_missing_pytorch_is_named(nothing_built, monkeypatch):
    monkeypatch.setattr(build, "find_torch", lambda: None)
    assert "no PyTorch" in build.missing()[0]


def test_a_compiler_error_is_passed_on(nothing_built, monkeypatch):
    sources = nothing_built / "csrc"
    sources.mkdir()
    (sources / "wrong.cpp").write_text("#error this is wrong")
    monkeypatch.setattr(build, "SOURCES", sources)
    with pytest.raises(build.DeviceBuildError, match="this is wrong"):
        build.build()


def test_its_symbols_and_those_of_pytorch_stay_local():
    """Global symbols of PyTorch's libraries break Triton's on hosts with a GPU."""
    program = """
import ctypes
from kernel_gym.torch_device import library
library.load()
everywhere = ctypes.CDLL(None)
print(hasattr(everywhere, "torch_device_install"), hasattr(everywhere, "_ZN3c106DeviceC1E"))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("False False\n", 0), done.stderr


def test_processes_that_need_it_at_once_compile_it_once(tmp_path):
    """Four processes meet at an empty cache; a compiler that counts its calls stands for g++."""
    compiler = tmp_path / "g++"
    compiler.write_text(
        "#!/bin/sh\n"
        f"echo called >>{tmp_path}/calls\n"
        'while [ "$1" != "-o" ]; do shift; done\n'
        'echo library >"$2"\n'
    )
    compiler.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "CXX": "g++"}
    environment["XDG_CACHE_HOME"] = str(tmp_path)
    program = "from kernel_gym.torch_device import build; "
    program += "print(build.build().read_text().strip())"
    command = [sys.executable, "-c", program]
    processes = [
        subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(4)
    ]
    answers = [process.communicate() for process in processes]
    assert [out for out, _ in answers] == ["library\n"] * 4
    once = min(2, os.cpu_count()) + 1  # the units, and the library
    assert (tmp_path / "calls").read_text() == once * "called\n"
    assert sum("building its device for PyTorch" in err for _, err in answers) == 1

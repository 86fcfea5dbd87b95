"""The folders hold what programs and build systems look for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch as torch_library

from kernel_gym.simulated_rocm import folders


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if folders.runtime_library() is None:
        pytest.skip("the HIP runtime is not built")


def test_libraries_and_their_installation():
    folder = folders.library_folder()
    for name in ("libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libhiprtc.so"):
        assert os.path.samefile(folder / name, folders.runtime_library())
    python, root, compiler = (folder / "installation").read_text().splitlines()
    assert (python, root) == (sys.executable, str(folders.package_root()))
    assert compiler == str(folders.compiler_folder() / "hipcc")


def test_a_library_links_to_the_libraries_of_pytorch_for_rocm(tmp_path):
    source, library = tmp_path / "one.cpp", tmp_path / "one.so"
    source.write_text("#include <c10/core/DeviceType.h>\nint one() { return 1; }\n")
    own, torch = folders.library_folder(), Path(torch_library.__file__).parent
    words = [f"-I{torch}/include", str(source), f"-L{torch}/lib", f"-L{own}"]
    words += ["-Wl,--no-as-needed", "-lc10_hip", "-ltorch_hip", f"-Wl,-rpath,{torch}/lib"]
    subprocess.run(["c++", "-shared", "-fPIC", *words, "-o", str(library)], check=True)
    needed = subprocess.check_output(["ldd", library], text=True)
    assert "libc10.so" in needed
    assert "libtorch_cpu.so" in needed
    assert "not found" not in needed


def test_tools_print_the_device():
    tool = folders.compiler_folder() / "amdgpu-arch"
    variables = os.environ | {"KERNEL_GYM_SIM_DEVICE": "sim:gfx950"}
    assert subprocess.check_output([tool], env=variables, text=True) == "gfx950\n"
    del variables["KERNEL_GYM_SIM_DEVICE"]
    assert subprocess.check_output([tool], env=variables, text=True) == "gfx942\n"


def test_rocminfo_describes_the_device():
    tool = folders.compiler_folder() / "rocminfo"
    variables = os.environ | {"KERNEL_GYM_SIM_DEVICE": "sim:gfx942"}
    printed = subprocess.check_output([tool], env=variables, text=True)
    facts = dict(line.split(":", 1) for line in printed.splitlines() if line.count(":") == 1)
    values = {name.strip(): value.strip() for name, value in facts.items()}
    assert (values["Device Type"], values["Compute Unit"]) == ("GPU", "304")
    assert re.search(r"\bgfx\w+\b", printed)[0] == "gfx942"
    assert re.split(r"Agent\s*\d+", printed)[1:]


def test_a_missing_device_library_has_a_stand_in(tmp_path):
    bitcode = tmp_path / "bitcode"
    bitcode.mkdir()
    (bitcode / "ocml.bc").write_bytes(b"math")
    (bitcode / "oclc_isa_version_940.bc").write_bytes(b"number")
    wanted, there = "oclc_isa_version_942", "oclc_isa_version_940"
    folder = folders.device_library_folder(bitcode, wanted, there)
    assert (folder / "oclc_isa_version_942.bc").read_bytes() == b"number"
    assert (folder / "ocml.bc").read_bytes() == b"math"

"""The variables in which a command finds its GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.errors import InputError
from kernel_gym.programs import environment as environments
from kernel_gym.programs.environment import FLYDSL_LINES, HOOK, environment
from kernel_gym.simulated_rocm.settings import SimSettings

SETTINGS = SimSettings(audit=True, bounds="warn", threads=2, results=Path("/r"), memory=1 << 30)


def test_settings_come_back_from_the_variables():
    assert SimSettings.from_environment(SETTINGS.to_environment()) == SETTINGS
    assert SimSettings.from_environment({}) is None


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"KERNEL_GYM_SIM_DEVICE": "cuda:0"}, "found cuda:0, expected sim:gfx942"),
        ({"KERNEL_GYM_SIM_BOUNDS": "no"}, "found no, expected fault or warn"),
        ({"KERNEL_GYM_SIM_THREADS": "two"}, "are numbers"),
    ],
)
def test_wrong_variables_are_named(variables, message):
    with pytest.raises(InputError, match=message):
        SimSettings.from_environment({"KERNEL_GYM_SIM_DEVICE": "sim:gfx942"} | variables)


def test_folders_come_first_once_and_settings_of_an_outer_command_go():
    outer = {"PATH": "/bin", "PYTHONPATH": f"/mine:{HOOK}", "KERNEL_GYM_SIM_AUDIT": "1"}
    inner = environment(SimSettings(), outer)
    assert inner["PYTHONPATH"] == f"{HOOK}:/mine"
    assert inner["PATH"].split(":")[-1] == "/bin"
    assert str(Path(sys.executable).parent) in inner["PATH"].split(":")
    assert "KERNEL_GYM_SIM_AUDIT" not in inner
    assert inner["KERNEL_GYM_SIM_DEVICE"] == "sim:gfx942"


def test_a_linker_is_where_programs_look_for_that_of_rocm(monkeypatch, tmp_path):
    if not isinstance(hip_toolchain(), HipToolchain):
        pytest.skip("the linker comes with the compiler of HIP")
    monkeypatch.setattr(environments, "DEFAULT_ROCM", tmp_path / "none")
    root = Path(environment(SimSettings(), {})["ROCM_PATH"])
    assert (root / "llvm/bin/ld.lld").exists()
    assert (root / "amdgcn/bitcode/ocml.bc").exists()
    assert environment(SimSettings(), {"ROCM_PATH": "/mine"})["ROCM_PATH"] == "/mine"
    monkeypatch.setattr(environments, "DEFAULT_ROCM", tmp_path)
    assert "ROCM_PATH" not in environment(SimSettings(), {})


def test_kernels_in_flydsl_have_source_lines_unless_the_user_wants_none():
    assert environment(SimSettings(), {})[FLYDSL_LINES] == "1"
    assert environment(SimSettings(), {FLYDSL_LINES: "0"})[FLYDSL_LINES] == "0"


LIBRARY = """
import ctypes
import kernel_gym
kernel_gym.enable_simulation(threads=1)
import torch
from kernel_gym.simulated_rocm.folders import library_folder

x = torch.arange(4.0, device="cuda")
hip = ctypes.CDLL(str(library_folder() / "libamdhip64.so.7"))
values = (ctypes.c_float * 4)()
assert hip.hipMemcpy(values, ctypes.c_void_p(x.data_ptr()), 16, 2) == 0
assert list(values) == [0, 1, 2, 3]

function, status = ctypes.c_void_p(), ctypes.c_int()
def look_up(name):
    flags = ctypes.c_uint64(0)
    return hip.hipGetProcAddress(
        name, ctypes.byref(function), 60000000, flags, ctypes.byref(status)
    )

assert (look_up(b"hipMemcpy"), status.value) == (0, 0)
copy = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2, ctypes.c_size_t, ctypes.c_int)
x += 1
assert copy(function.value)(ctypes.addressof(values), x.data_ptr(), 16, 2) == 0
assert list(values) == [1, 2, 3, 4]
for name in (b"hipNothing", b"malloc"):
    assert (look_up(name), function.value, status.value) == (500, None, 1)
module = ctypes.c_void_p()
assert hip.hipModuleLoadData(ctypes.byref(module), b"no kernel") == 200
"""


def test_a_library_that_calls_hip_has_the_gpu_of_its_process():
    done = subprocess.run([sys.executable, "-c", LIBRARY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "kernel-gym: a module cannot be loaded: a module is neither" in done.stderr


PACKED = """
import ctypes
import struct
import kernel_gym
kernel_gym.enable_simulation(threads=1)
import torch, triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from kernel_gym.simulated_rocm.folders import library_folder

@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + offsets, 2 * tl.load(x + offsets, mask=offsets < n), mask=offsets < n)

source = ASTSource(double, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64})
code = triton.compile(source, target=GPUTarget("hip", "gfx942", 64)).asm["hsaco"]
hip = ctypes.CDLL(str(library_folder() / "libamdhip64.so.7"))
module, function = ctypes.c_void_p(), ctypes.c_void_p()
assert hip.hipModuleLoadData(ctypes.byref(module), code) == 0
assert hip.hipModuleGetFunction(ctypes.byref(function), module, b"double") == 0

def launch(address):
    segment = ctypes.create_string_buffer(struct.pack("<Qi", address, 4), 12)  # of 32 bytes
    size = ctypes.c_size_t(12)
    extra = (ctypes.c_void_p * 5)(
        1, ctypes.addressof(segment), 2, ctypes.addressof(size), 3
    )
    return hip.hipModuleLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, None, None, extra)

x = torch.arange(4.0, device="cuda")
assert launch(x.data_ptr()) == 0
assert x.tolist() == [0, 2, 4, 6]
assert launch(8) == 719
"""


def test_a_launch_may_leave_out_the_end_of_its_arguments_and_says_why_it_failed(tmp_path):
    program = tmp_path / "packed.py"
    program.write_text(PACKED, encoding="utf-8")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("kernel-gym: a launch failed: ") == 1
    assert "double" in done.stderr


def test_the_hook_runs_the_sitecustomize_that_it_hides(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.mine = 'ran'\n")
    code = "import sys; print(mine, sys.modules['sitecustomize'].__file__, 'torch' in sys.modules)"
    inner = environment(SimSettings(), os.environ | {"PYTHONPATH": str(tmp_path)})
    done = subprocess.run([sys.executable, "-c", code], env=inner, capture_output=True, text=True)
    assert done.stdout.split() == ["ran", str(tmp_path / "sitecustomize.py"), "False"], done.stderr


def test_a_search_for_pytorch_does_not_bring_the_gpu_up():
    code = (
        "import importlib.util, sys; spec = importlib.util.find_spec('torch');"
        "print(spec.origin is not None, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(SimSettings()),
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["True", "False"], done.stderr


SUM = "import torch; print(torch.ones(4, device='cuda').sum().item())"


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import kernel_gym.programs.local_runtime", id="what the GPU needs"),
        pytest.param(
            "import sys; sys.modules['kernel_gym.worker.triton_key'] = None\n"
            "try: import kernel_gym.worker.preload\n"
            "except ImportError: print('failed')",
            id="what fails after its import of PyTorch",
        ),
    ],
)
def test_a_module_of_kernel_gym_may_be_imported_before_pytorch(code):
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{SUM}"],
        env=environment(SimSettings()),
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [*["failed"] * ("failed" in code), "4.0"], done.stderr


def test_a_python_without_kernel_gym_says_so(tmp_path):
    (tmp_path / "torch.py").write_text("")  # stands for another environment's package
    inner = environment(SimSettings()) | {"PYTHONPATH": f"{HOOK}:{tmp_path}"}
    done = subprocess.run(
        [os.path.realpath(sys.executable), "-S", "-c", "import sitecustomize, torch"],
        env=inner,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "has no kernel_gym" in done.stderr

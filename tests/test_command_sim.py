"""`kernel-gym sim` runs people's own programs and profiles what they launch."""

import json

import pytest
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.devices import device_status

SCRIPT = """
import sys
import torch, triton, triton.language as tl

@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

if __name__ == "__main__":
    x = torch.randn(5000, device="cuda")
    out = torch.empty_like(x)
    for _ in range(2):
        double[(triton.cdiv(5000, 1024),)](x, out, 5000, BLOCK=1024)
    torch.testing.assert_close(out, x + x)
    print("sum differs by", float((out.sum() - 2 * x.sum()).abs() > 1), sys.argv[1])
    print(out[:2].cpu().device, x[torch.tensor([1, 2])].shape, (x > 0).any().item())
"""
PROGRAM = """
#include <hip/hip_runtime.h>
#include <cstdio>
__global__ void fill(int* out) { out[threadIdx.x] = threadIdx.x + 1; }
int main(int argc, char** argv) {
  int* device; int host[64];
  hipMalloc(reinterpret_cast<void**>(&device), sizeof host);
  fill<<<1, 64>>>(device);
  hipMemcpy(host, device, sizeof host, hipMemcpyDeviceToHost);
  printf("last %d of %s\\n", host[63], argv[1]);
  return 0;
}
"""
OUTSIDE = """
import torch, triton, triton.language as tl

@triton.jit
def outside(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))

x = torch.ones(100).cuda()
outside[(1,)](x, torch.empty_like(x), BLOCK=256)
"""


def run(tmp_path, name, text, *arguments):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    return CliRunner().invoke(app, ["sim", str(path), *arguments])


def test_a_triton_script_runs_unchanged(tmp_path):
    done = run(tmp_path, "script.py", SCRIPT, "--json", "word")
    assert done.exit_code == 0, done.output
    profile = json.loads(done.stdout)
    assert profile["output"].splitlines() == [
        "sum differs by 0.0 word",
        "cpu torch.Size([2]) True",
    ]
    assert profile["clock"] == "modelled"
    kernel = profile["kernels"]["double"]
    assert kernel["launches"] == profile["launches"] == 2
    assert kernel["grid"] == [5, 1, 1]
    assert kernel["profile"]["bytes"]["read"] == pytest.approx(20_000, rel=0.02)
    assert {hot["source"] for hot in kernel["profile"]["hot"]} & {"script.py:8", "script.py:7"}
    assert profile["seconds"] > kernel["seconds"]  # torch's own operators are charged


def test_another_device_is_simulated(tmp_path):
    done = run(tmp_path, "script.py", SCRIPT, "--json", "--device", "sim:gfx950", "word")
    assert done.exit_code == 0, done.output
    profile = json.loads(done.stdout)
    assert profile["device"] == "sim:gfx950"
    assert profile["kernels"]["double"]["launches"] == 2


def test_a_hip_program_runs_unchanged(tmp_path):
    if "hip" not in device_status("sim:gfx942").languages:
        pytest.skip("no HIP toolchain: see kernel-gym doctor")
    done = run(tmp_path, "program.hip", PROGRAM, "word")
    assert done.exit_code == 0, done.output
    assert "last 64 of word" in done.output
    assert "bound by launch" in done.output


@pytest.mark.parametrize(
    ("name", "text", "arguments", "code", "message"),
    [
        ("outside.py", OUTSIDE, (), 120, "outside.py:7, workgroup (0, 0, 0)"),
        ("raises.py", "def f():\n    raise ValueError('no')\nf()\n", (), 1, "raises.py:2 in f"),
        ("ends.py", "import sys\nsys.exit(3)\n", (), 3, "ended with status 3"),
        ("dies.py", "import os\nos._exit(0)\n", (), 1, "ended the process before it was done"),
        ("hangs.py", "while True: pass\n", ("--timeout", "1"), 124, "not done within 1 s"),
        ("alone.py", "import helper\n", (), 1, "sees no file but its own"),
        ("none.py", None, (), 2, "none.py: no such file"),
        ("script.txt", "", (), 2, "expected .py, .hip"),
        ("script.py", "", ("--device", "cuda:0"), 2, "found cuda:0, expected sim:gfx942"),
    ],
)
def test_errors_are_told(tmp_path, name, text, arguments, code, message):
    done = run(tmp_path, name, text, *arguments)
    assert done.exit_code == code
    assert message in done.output


TOO_LARGE = """
import torch
x = torch.empty(1 << 30, device="cuda")
print("allocated")
"""


def test_a_program_gets_no_more_memory_than_the_host_has(tmp_path, monkeypatch):
    monkeypatch.setattr("kernel_gym.sandbox.host_memory.available_bytes", lambda: 1 << 30)
    refused = run(tmp_path, "script.py", TOO_LARGE, "--json")
    assert refused.exit_code == 1
    assert f"out of device memory: {4 << 30} bytes asked for, 0 of {1 << 29} live" in refused.output
    assert "allocated" not in json.loads(refused.stdout)["output"]


HIDDEN = OUTSIDE.replace("\noutside[", "\ntry:\n    outside[") + "except Exception:\n    pass\n"
FAULTY_PROGRAM = """
#include <hip/hip_runtime.h>
__global__ void k(int* o) { o[1000000000] = 1; }
int main() { int* o; hipMalloc(&o, 64); k<<<1, 4>>>(o); hipDeviceSynchronize(); return 0; }
"""


def test_a_fault_that_a_script_hides_is_no_success(tmp_path):
    done = run(tmp_path, "hidden.py", HIDDEN, "--json")
    assert done.exit_code == 120, done.output
    assert json.loads(done.stdout)["status"] == 0


def test_a_fault_that_a_hip_program_does_not_check_is_no_success(tmp_path):
    if "hip" not in device_status("sim:gfx942").languages:
        pytest.skip("no HIP toolchain: see kernel-gym doctor")
    done = run(tmp_path, "fault.hip", FAULTY_PROGRAM)
    assert done.exit_code == 120, done.output
    assert "write of 4 bytes" in done.output


def test_confined_runs_the_file_of_a_command_without_its_neighbours(tmp_path):
    (tmp_path / "helper.py").write_text("")
    path = tmp_path / "alone.py"
    path.write_text("import sys\nprint(sys.argv[1])\nimport helper\n")
    words = ["sim", "--confined", "--", "python", str(path), "--size"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert "--size" in done.output
    assert "No module named 'helper'" in done.output


def test_confined_refuses_what_is_no_file(tmp_path):
    done = CliRunner().invoke(app, ["sim", "--confined", "--", "python", "-m", "pytest"])
    assert done.exit_code == 2
    assert "expected -- FILE or -- python FILE" in done.output


def test_words_behind_two_dashes_belong_to_a_file_before_them(tmp_path):
    path = tmp_path / "words.py"
    path.write_text("import sys\nprint(sys.argv[1:])\n")
    done = CliRunner().invoke(app, ["sim", str(path), "one", "--", "--json"])
    assert done.exit_code == 0, done.output
    assert "['one', '--json']" in done.output

"""`kernel-gym sim -- COMMAND`: real commands, with the simulated GPU in their processes."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernel_gym.devices.sim.requests import MAX_CODE_BYTES
from kernel_gym.programs.command import CommandError, find_program, run_command
from kernel_gym.simulated_rocm.settings import SimSettings
from tests.programs.running import COPY, FAULT, KERNEL, RACE, run, run_json, write

TWO_CHILDREN = """
import subprocess, sys
children = [subprocess.Popen([sys.executable, "copy.py"]) for _ in range(2)]
sys.exit(sum(child.wait() for child in children))
"""


def test_a_program_runs_with_its_own_files_and_arguments(tmp_path):
    write(tmp_path, "helper.py", COPY)
    write(tmp_path, "bench.py", "import helper, sys\nprint('size', sys.argv[2])\n")
    done = run(tmp_path, "--", "python", "bench.py", "--size", "4096")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["copied", "size 4096"]
    assert "copy: " in done.stderr
    assert "launches: 1, on sim:gfx942; times are modelled" in done.stderr
    assert "us in operators and copies" in done.stderr


def test_open_descriptors_pass_to_the_command(tmp_path):
    """`POPCORN_FD=3 python eval.py 3>result` and the job server of `make -j` need them."""
    with (tmp_path / "result").open("w") as file:
        program = f"import os; os.write({file.fileno()}, b'written')"
        done = subprocess.run(
            [sys.executable, "-m", "kernel_gym", "sim", "--", "python", "-c", program],
            pass_fds=[file.fileno()],
            capture_output=True,
            text=True,
        )
    assert (tmp_path / "result").read_text() == "written", done.stderr


def launched_directly(folder, arguments):
    """Launches the compiled kernel with these arguments, as `kernel[grid]` does not."""
    direct = COPY.replace("copy[(4,)](x", "copy.warmup(x").replace("=256)", "=256, grid=(1,))")
    launch = f"compiled[(4, 1, 1)]({arguments})\ntorch.testing"
    direct = direct.replace("torch.testing", launch)
    write(folder, "direct.py", direct.replace("copy.warmup", "compiled = copy.warmup"))
    return run(folder, "--", "python", "direct.py")


def test_a_compiled_kernel_is_launched_without_its_trailing_constexprs(tmp_path):
    done = launched_directly(tmp_path, "x, out, 1000")
    assert done.stdout.splitlines() == ["copied"], done.stderr


def test_a_launch_without_an_argument_says_which_is_missing(tmp_path):
    done = launched_directly(tmp_path, "x, out")
    assert done.returncode == 1
    assert "TypeError: found 2 arguments, expected one at 2 (i32) as well" in done.stderr


def test_children_count_in_the_sum_and_out_holds_json_and_a_page(tmp_path):
    write(tmp_path, "copy.py", COPY.replace("import sys", "import os, sys", 1))
    (tmp_path / "copy.py").rename(tmp_path / "one.py")  # the library has a module copy
    write(tmp_path, "two.py", TWO_CHILDREN.replace("copy.py", "one.py"))
    out = tmp_path / "out"
    done = run(tmp_path, "--out", str(out), "--", "python", "two.py")
    assert done.returncode == 0, done.stderr
    result = json.loads((out / "results.json").read_text())
    assert result["launches"] == result["kernels"]["copy"]["launches"] == 2
    assert [process["ended"] for process in result["processes"]] == [True, True]
    assert result["seconds"] > result["kernels"]["copy"]["seconds"]  # operators are charged
    assert len(list((out / "processes").glob("*.jsonl"))) == 2
    assert "copy" in (out / "index.html").read_text()
    again = run(tmp_path, "--out", str(out), "--", "true")
    assert again.returncode == 2
    assert "holds results of another run" in again.stderr


def test_a_fault_is_never_a_success(tmp_path):
    write(tmp_path, "fault.py", FAULT)
    code, result, printed = run_json(tmp_path, "--", "python", "fault.py")
    assert code == 120
    assert (result["status"], result["faults"][0]["kind"]) == (0, "out_of_bounds_read")
    assert "went on" in printed
    assert "fault: read of 4 bytes" in printed


def test_a_crash_leaves_the_fault_on_record(tmp_path):
    write(tmp_path, "fault.py", FAULT + "import os\nos._exit(0)\n")
    code, result, _ = run_json(tmp_path, "--", "python", "fault.py")
    assert code == 120
    assert [process["ended"] for process in result["processes"]] == [False]


def test_bounds_warn_reports_and_goes_on(tmp_path):
    write(tmp_path, "fault.py", FAULT)
    code, result, printed = run_json(tmp_path, "--bounds", "warn", "--", "python", "fault.py")
    assert code == 0
    assert result["faults"] == []
    assert [finding["kind"] for finding in result["findings"]] == ["out_of_bounds_read"]
    assert result["launches"] == 1
    assert "went on" not in printed


def test_findings_of_an_audit_are_an_exit_code(tmp_path):
    write(tmp_path, "race.py", RACE)
    assert run(tmp_path, "--", "python", "race.py").returncode == 0
    code, result, printed = run_json(tmp_path, "--audit", "--", "python", "race.py")
    assert code == 121
    assert [finding["kind"] for finding in result["findings"]] == ["global_race"]
    assert "left True" in printed


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("sh", "-c", "exit 3"), 3, "ended with status 3"),
        (("sh", "-c", "kill -9 $$"), 137, "ended with signal 9"),
        (("no-such-program",), 127, "no-such-program: no such command"),
        (("./here.py",), 126, "try python ./here.py"),
        ((".",), 126, "is a folder"),
        ((), 2, "expected -- COMMAND or FILE"),
    ],
)
def test_exit_codes_tell_how_a_command_ended(tmp_path, words, code, message):
    write(tmp_path, "here.py", "")
    done = run(tmp_path, "--", *words)
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr


def has_ended(number):
    """Whether a process is gone, or waits only for its parent to take its status."""
    try:
        status = Path(f"/proc/{number}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] in "ZX"


def test_a_time_out_ends_the_children_too(tmp_path):
    script = "sleep 600 & echo $! > child; wait"
    done = run(tmp_path, "--timeout", "1", "--", "sh", "-c", script)
    assert done.returncode == 124
    assert "not done within" in done.stderr
    assert has_ended(int((tmp_path / "child").read_text()))


def test_a_request_to_end_reaches_the_command(tmp_path):
    words = ["-m", "kernel_gym", "sim", "--", "sh", "-c", "echo $$; exec sleep 600"]
    child = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    number = int(child.stdout.readline())
    child.send_signal(signal.SIGTERM)
    assert child.wait() == 128 + signal.SIGTERM
    assert has_ended(number)


def test_a_python_that_needs_no_gpu_brings_none_up(tmp_path):
    _, result, _ = run_json(tmp_path, "--", "python", "-c", "import json")
    assert result["processes"] == []


def test_make_is_a_command_like_others(tmp_path):
    if shutil.which("make") is None:
        pytest.skip("no make")
    write(tmp_path, "one.py", COPY)
    write(tmp_path, "Makefile", "run:\n\t@python one.py\n")
    done = run(tmp_path, "--", "make", "--no-print-directory", "run")  # `make test` may run this
    assert done.returncode == 0, done.stderr
    assert done.stdout == "copied\n"


def test_one_s_own_folder_is_searched_first(tmp_path):
    program = write(tmp_path, "tool", "#!/bin/sh\n")
    program.chmod(0o755)
    assert find_program("tool", str(tmp_path)) == str(program)
    assert find_program("./tool", "/nowhere", tmp_path) == str(program)
    with pytest.raises(CommandError, match="no such command") as error:
        find_program("tool", "/nowhere")
    assert error.value.code == 127


def test_a_command_reports_its_host_seconds():
    before = time.monotonic()
    ended = run_command(["true"], SimSettings())
    assert ended.status == 0
    assert 0 < ended.seconds <= time.monotonic() - before


def test_a_missing_operator_is_named_with_its_place(tmp_path):
    call = "torch.ops.aten._fused_dropout(x, 0.5)"
    write(tmp_path, "lacks.py", f"import torch\nx = torch.ones(4, 4, device='cuda')\n{call}\n")
    code, result, printed = run_json(tmp_path, "--", "python", "lacks.py")
    assert code == 1
    (lack,) = result["missing"]
    assert (lack["what"], lack["where"]) == ("operator", f"{tmp_path}/lacks.py:3")
    assert "_fused_dropout" in lack["name"]
    assert "missing: operator" in printed


PRINTS = """
import torch, triton
import triton.language as tl

@triton.jit(debug=True)
def show(x, BOUND: tl.constexpr):
    value = tl.load(x)
    tl.device_print("value", value)
    tl.device_assert(value < BOUND, "too large")

x = torch.full((1,), 7, device="cuda", dtype=torch.int32)
print("before")
show[(1,)](x, BOUND=8, num_warps=1)
torch.cuda.synchronize()
print("after", flush=True)
show[(1,)](x, BOUND=7, num_warps=1)
"""


def test_a_kernel_prints_and_asserts(tmp_path):
    write(tmp_path, "prints.py", PRINTS)
    done = run(tmp_path, "--", "python", "prints.py")
    before, first, *_ = lines = done.stdout.splitlines()
    assert (before, first) == ("before", "pid (0, 0, 0) idx () value: 7"), done.stderr
    assert "after" in lines
    assert "device assertion failed: 'too large'" in done.stderr
    assert "the kernel trapped" in done.stderr
    assert done.returncode == 120


LARGE_MODULE = f"""{KERNEL}
import ctypes
kernel = copy.warmup(torch.empty(4, device="cuda"), torch.empty(4, device="cuda"), 4, BLOCK=64,
                     grid=(1,))
text = kernel.asm["amdgcn"] + (";" + "-" * 99 + chr(10)) * 50_000
hip, module = ctypes.CDLL("libamdhip64.so"), ctypes.c_void_p()
print(len(text), hip.hipModuleLoadData(ctypes.byref(module), text.encode()))
"""


def test_a_user_s_library_may_hold_more_kernels_than_a_candidate_s(tmp_path):
    size, status = run(
        tmp_path, "--", "python", write(tmp_path, "a.py", LARGE_MODULE)
    ).stdout.split()
    assert int(size) > MAX_CODE_BYTES
    assert status == "0"

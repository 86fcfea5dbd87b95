"""`python -m benchmarks outside`: suites from checkouts, reasons by class, and the table."""

import json

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.outside.cases import NO_CASES, draw, draw_small, size_of
from benchmarks.outside.reasons import case_reason, of_text, reason_of, without_kernel
from benchmarks.outside.run import is_interrupted
from benchmarks.outside.suites import CHECKOUTS, FLAGGEMS_FILES, programs, reduced, run_line
from benchmarks.outside.table import BEGIN, END, failure_table, suite_table, write_into
from kernel_gym.errors import InputError
from tests.programs.running import COPY, FAULT, KERNEL, RACE


def checkout(folder):
    """A folder of checkouts with small programs in the places of the true ones."""
    g = folder / "TritonBench" / "data" / "TritonBench_G_v1"
    g.mkdir(parents=True)
    (g / "copies.py").write_text(COPY)
    (g / "faults.py").write_text(FAULT)
    (g / "needs.py").write_text("import no_such_package\n")
    (g / "operators.py").write_text(
        "import torch, triton\nprint(torch.ones(9, device='cuda').sum())"
    )
    (g / "nothing.py").write_text("print('done')\n")
    tests = folder / "Liger-Kernel" / "test" / "transformers"
    tests.mkdir(parents=True)
    (tests / "test_one.py").write_text(
        f"import pytest, torch\n{KERNEL}\n"
        "@pytest.mark.parametrize('n', range(1, 9))\n"
        "def test_sum(n):\n"
        "    if n == 3:\n"
        "        pytest.skip('three is too many')\n"
        "    x = torch.ones(n, device='cuda')\n"
        "    y = torch.empty_like(x)\n"
        "    copy[(1,)](x, y, n, BLOCK=16)\n"
        "    assert y.sum() == min(n, 4)\n"
    )
    (tests / "test_ends.py").write_text(
        "import os\ndef test_one(): pass\ndef test_ends(): os._exit(3)\ndef test_late(): pass\n"
    )
    (tests / "test_computes_nothing.py").write_text("def test_nothing(): pass\n")
    (tests / "test_monkey_patch.py").write_text("")
    return folder


def records_of(out):
    """The records by name, as the command wrote them."""
    return {r["name"]: r for r in json.loads((out / "outside.json").read_text())["records"]}


def test_programs_run_once_and_each_failure_has_its_reason(tmp_path, monkeypatch):
    monkeypatch.setenv(CHECKOUTS, str(checkout(tmp_path / "checkouts")))
    out, page = tmp_path / "out", tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}old\n{END}\nafter\n")
    words = ["outside", "--out", str(out), "--timeout", "200", "--only", "TritonBench"]
    done = CliRunner().invoke(app, [*words, "--jobs", "2", "--page", str(page)])
    assert done.exit_code == 0, done.output
    reasons = {name: (r["outcome"], r["reason"]) for name, r in records_of(out).items()}
    assert reasons == {
        "copies.py": ("passed", ""),
        "faults.py": (
            "failed",
            "kernel fault: out of bounds read, passes with --bounds warn",
        ),
        "needs.py": ("failed", "needs a package"),
        "nothing.py": ("failed", "nothing computed on the GPU"),
        "operators.py": ("failed", "nothing computed on the GPU"),
    }
    assert "| TritonBench-G | 1 of 5 |" in page.read_text()
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("after\n")
    assert "old" not in page.read_text()
    assert str(tmp_path) not in page.read_text()
    assert "TritonBench-G/copies.py: passed" in done.stderr
    assert "TritonBench-G/" not in CliRunner().invoke(app, words).stderr  # nothing is left to run


def test_cases_are_drawn_and_counted(tmp_path, monkeypatch):
    monkeypatch.setenv(CHECKOUTS, str(checkout(tmp_path / "checkouts")))
    words = ["outside", "--out", str(tmp_path), "--only", "Liger", "--cases", "5"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    records = {name.rpartition("/")[2]: r for name, r in records_of(tmp_path).items()}
    drawn = [n + 1 for n in draw(8, 5)]
    failed, skipped = sum(n > 4 for n in drawn), drawn.count(3)
    assert records["test_one.py"]["cases"] == {
        "collected": 8,
        "drawn": 5,
        "passed": 5 - failed - skipped,
        "failed": failed,
        "skipped": skipped,
        "not_run": 0,
    }
    assert failed
    assert records["test_one.py"]["reason"] == f"{failed} its own assertion"
    ends = records["test_ends.py"]
    assert ends["cases"] == {**NO_CASES, "collected": 3, "drawn": 3, "passed": 1, "failed": 1} | {
        "not_run": 1
    }
    assert ends["reason"] == "1 the process ended, 1 not run: status 3"
    assert ends["detail"] == "test_ends: the process ended in it"
    assert records["test_computes_nothing.py"]["reason"] == "nothing computed on the GPU"
    passed = 5 - failed - skipped + 2
    share = f"{passed} of {passed + failed + 1} ("
    assert share in done.output
    assert "; 9 drawn of 12 collected" in done.output


def test_small_cases_are_drawn_among_the_smallest_quarter():
    sizes = [100 - place for place in range(40)]
    drawn = draw_small(sizes, 4)
    assert len(drawn) == 4
    assert all(30 <= place < 40 for place in drawn)
    assert draw_small(sizes, 4) == drawn
    assert draw_small([3, 1, 2], 5) == [0, 1, 2]
    assert size_of({"shape": (2, 128), "causal": True, "lengths": [4, 0], "name": "x"}) == 1024


def test_cases_of_large_suites_are_small(tmp_path, monkeypatch):
    folder = tmp_path / "checkouts" / "flash-linear-attention" / "tests" / "ops"
    folder.mkdir(parents=True)
    (folder / "test_gla.py").write_text(
        f"import pytest, torch\n{KERNEL}\n"
        "@pytest.mark.parametrize(('n', 'm'), [(n, 2) for n in range(40, 0, -1)])\n"
        "def test_sum(n, m):\n"
        "    x = torch.ones(n, device='cuda')\n"
        "    copy[(1,)](x, torch.empty_like(x), n, BLOCK=16)\n"
        "    assert n <= 10\n"
    )
    monkeypatch.setenv(CHECKOUTS, str(tmp_path / "checkouts"))
    done = CliRunner().invoke(app, ["outside", "--out", str(tmp_path), "--cases", "5"])
    assert done.exit_code == 0, done.output
    record = records_of(tmp_path)["tests/ops/test_gla.py"]
    assert record["outcome"] == "passed", record
    assert record["cases"]["passed"] == 5


def test_aiter_has_every_tenth_file_and_named_ones(tmp_path):
    folder = tmp_path / "aiter" / "op_tests" / "triton_tests"
    for name in ("test_softmax", *(f"test_{number:02}" for number in range(30)), "moe/test_x"):
        file = folder / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    chosen = [program.name.rpartition("/")[2] for program in programs(tmp_path)]
    assert "test_softmax.py" in chosen
    assert len(chosen) == 12


def test_flaggems_has_a_fixed_draw_of_files(tmp_path):
    folder = tmp_path / "FlagGems" / "tests"
    folder.mkdir(parents=True)
    for number in range(99):
        (folder / f"test_{number:02}.py").touch()
    chosen = programs(tmp_path)
    assert len(chosen) == FLAGGEMS_FILES
    assert [p.name for p in chosen] == [p.name for p in programs(tmp_path)]
    assert all(p.command[-2:] == ("--quick", p.name) for p in chosen)
    assert all(p.variables["GEMS_VENDOR"] == "amd" for p in chosen)


def test_without_checkouts_it_says_what_is_expected(tmp_path, monkeypatch):
    monkeypatch.delenv(CHECKOUTS, raising=False)
    done = CliRunner().invoke(app, ["outside", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "expected a folder with checkouts" in done.output


def test_files_without_an_operator_are_no_programs(tmp_path):
    names = [program.name for program in programs(checkout(tmp_path))]
    assert "test/transformers/test_monkey_patch.py" not in names


def test_programs_that_were_not_run_are_counted():
    result = {"device": "sim:gfx942", "seed": 0, "versions": {}}
    table = suite_table(result | {"planned": {"HeCBench": 40}, "records": []})
    assert "| HeCBench | 0 of 40 |  | 40 not run |" in table


def test_programs_that_did_not_pass_are_listed_with_their_reasons():
    names = ("passed", "failed")
    records = [
        {"suite": "HeCBench", "name": name, "outcome": name, "cases": {}, "reason": "status 1"}
        | {"detail": "a | b"}
        for name in names
    ]
    table = failure_table({"records": records})
    assert "| HeCBench: failed |  | status 1 | a \\| b |" in table
    assert "passed" not in table


def test_a_page_without_marks_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}no end")
    with pytest.raises(InputError, match="expected both marks"):
        write_into(page, "table")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Failed: Timeout (>60.0s) from pytest-timeout.", "time limit"),
        ("a kernel faulted on the simulated GPU: read of 4 bytes", "kernel fault"),
        ("AssertionError: Tensor-likes are not close!\n\nMismatched elements: 1", "values differ"),
        ("assert 3 == 4", "its own assertion"),
        ("ZeroDivisionError: division by zero", "an exception"),
        ("the time of the file was over in it", "time limit"),
        ("the process ended in it", "the process ended"),
    ],
)
def test_failed_cases_have_a_class(text, reason):
    assert case_reason(text) == (reason, text.partition("\n")[0])


@pytest.mark.parametrize(
    ("status", "printed", "interrupted"),
    [(-2, "", True), (2, "x\n!!!!!! KeyboardInterrupt !!!!!!\n", True), (2, "errors", False)],
)
def test_ctrl_c_ends_the_command_and_not_only_one_program(status, printed, interrupted):
    assert is_interrupted(status, printed) is interrupted


def test_the_draw_is_fixed_and_ordered():
    assert draw(3, 5) == [0, 1, 2]
    places = draw(1000, 20)
    assert places == draw(1000, 20) == sorted(set(places))
    assert len(places) == 20


def test_arguments_are_reduced():
    assert reduced(["./main", "-n", "65536", "0.5", "100"]) == ("./main", "-n", "1024", "0.5", "1")
    assert reduced(["./main", "-n", "65536"]) == ("./main", "-n", "1024")
    assert reduced(["./main"]) == ("./main",)


def test_the_command_is_what_the_makefile_runs(tmp_path):
    text = "NAME = sorts\nsorts: ; touch sorts\nrun: sorts\n\t$(LAUNCHER) ./bin/$(NAME) r 9000\n"
    (tmp_path / "Makefile").write_text(text)
    assert run_line(tmp_path) == ["./bin/sorts", "r", "9000"]


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("E   ModuleNotFoundError: No module named 'aiter.jit'", "needs a package"),
        ("a.cu:3:10: fatal error: 'hipcub/hipcub.hpp' file not found", "needs a header"),
        ("ld.lld: error: unable to find library -lrocrand", "needs a library"),
        ("AssertionError: Tensor-likes are not close!", "values differ"),
        (
            "triton.compiler.errors.CompilationError: at 3:9:\n  x = f(1)\n      ^\nTypeError()\n",
            "Triton does not compile it",
        ),
        ("No module named 'triton.ops'", "Triton lacks it"),
        ("RuntimeError: CUDA __nv_powf device function", "calls a function of CUDA's library"),
        ("assert False\nE   AssertionError: x", "its own assertion"),
        ("main.cu:5:3: error: use of undeclared identifier", "does not compile"),
        ("TypeError: unexpected", "an exception"),
        ("Error: The file was not opened", "needs data that its checkout lacks"),
        ("ERROR: could not open input file ../a/graph.csv", "needs data that its checkout lacks"),
        ("CMake Error at CMakeDetermineHIPCompiler.cmake:106 (message):", "cannot be built here"),
        (
            "clang++-19: error: cannot find HIP Standard Parallelism Acceleration library",
            "needs a library",
        ),
        ("make: /opt/rocm/llvm/bin/llvm-mc: No such file or directory", "needs a tool or a file"),
        (
            "sh: 1: rocm_agent_enumerator: not found\ntest cases: 4 | 2 passed | 2 failed",
            "its own assertion",
        ),
        ("core.py: UserWarning: tl.make_block_ptr is old\nValueError: no", "an exception"),
        (
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 81920",
            "needs more LDS than there is",
        ),
    ],
)
def test_texts_have_a_class(printed, name):
    assert of_text(printed)[0] == name


def test_a_program_that_goes_on_after_a_fault_until_its_time_is_over_names_both():
    fault = {"kind": "out_of_bounds_read", "message": "read of 4 bytes"}
    result = {"timed_out": True, "faults": [fault], "failures": [], "missing": [], "status": 1}
    expected = ("kernel fault: out of bounds read, then time limit", "read of 4 bytes")
    assert reason_of(result, "") == expected
    assert reason_of(result | {"faults": []}, "") == ("time limit", "")


ENDED = {"timed_out": False, "faults": [], "failures": [], "missing": [], "status": 1}


def test_a_verdict_without_the_operator_that_it_compares_with_is_none():
    built = "[aiter] build [module_norm] under /x/build failed !!!!!!\nStatus: FAILED (1/1)\n"
    reason = "needs an operator that is not built"
    assert reason_of(ENDED, built) == (reason, "module_norm")
    header = "a.cu:3:10: fatal \x1b[31merror:\x1b[0m 'ck/core.hpp' file not found\n"
    expected = (reason, "module_norm: 'ck/core.hpp' file not found")
    assert reason_of(ENDED, header + built) == expected
    late = reason_of(ENDED | {"timed_out": True}, header + built)
    assert late == (f"{reason}, then time limit", expected[1])


def test_a_verdict_before_the_first_kernel_is_none():
    printed = "  FAIL: one (M4): ImportError: no x\nFAIL: two\nStatus: FAILED (2/2)\n"
    told = without_kernel("its own verdict", "Status: FAILED (2/2)", printed)
    assert told == ("stopped before the first kernel", "one (M4): ImportError: no x")
    assert without_kernel("time limit", "", printed) == ("time limit", "")


def test_a_verdict_on_code_that_was_not_loaded_is_none():
    printed = "kernel-gym: a module cannot be loaded: no LLVM 20\nStatus: FAILED (1/1)\n"
    assert reason_of(ENDED, printed) == ("its code cannot be loaded", "no LLVM 20")
    assert reason_of(ENDED, "Status: FAILED (1/1)\n")[0] == "its own verdict"


def test_a_tutorial_without_pytest_runs_as_a_script(tmp_path):
    folder = tmp_path / "triton" / "python" / "tutorials"
    folder.mkdir(parents=True)
    (folder / "05-layer-norm.py").write_text("def test_layer_norm(M): pass\ntest_layer_norm(3)\n")
    (folder / "06-attention.py").write_text("import pytest\ndef test_op(): pass\n")
    assert [program.has_cases for program in programs(tmp_path)] == [False, True]


def test_a_text_without_a_known_reason_has_no_class():
    assert of_text("all good\n") is None


def test_an_audit_records_the_kernel_and_its_lines(tmp_path, monkeypatch):
    folder = tmp_path / "checkouts" / "TritonBench" / "data" / "TritonBench_G_v1"
    folder.mkdir(parents=True)
    (folder / "races.py").write_text(RACE)
    monkeypatch.setenv(CHECKOUTS, str(tmp_path / "checkouts"))
    done = CliRunner().invoke(app, ["outside", "--out", str(tmp_path), "--audit"])
    assert done.exit_code == 0, done.output
    record = records_of(tmp_path)["races.py"]
    assert record["outcome"] == "passed"  # a finding does not stop a program
    [finding] = record["findings"]
    assert (finding["kind"], finding["kernels"]) == ("global_race", ["race"])
    assert finding["places"] == ["races.py:6"]
    assert "races.py:6" in finding["message"]

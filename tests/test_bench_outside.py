"""`kernel-gym bench outside`: suites from checkouts, reasons by class, and the table."""

import json

import pytest
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.commands.bench.outside.reasons import of_text
from kernel_gym.commands.bench.outside.suites import CHECKOUTS, programs, reduced
from kernel_gym.commands.bench.outside.table import markdown
from tests.programs.running import COPY, FAULT


def checkout(folder):
    """A folder of checkouts with small programs in the places of the true ones."""
    g = folder / "TritonBench" / "data" / "TritonBench_G_v1"
    g.mkdir(parents=True)
    (g / "copies.py").write_text(COPY)
    (g / "faults.py").write_text(FAULT)
    (g / "needs.py").write_text("import no_such_package\n")
    (g / "nothing.py").write_text("print('done')\n")
    tests = folder / "Liger-Kernel" / "test" / "transformers"
    tests.mkdir(parents=True)
    (tests / "test_one.py").write_text(
        "import pytest, torch\n"
        "@pytest.mark.parametrize('n', range(3))\n"
        "def test_sum(n):\n"
        "    assert torch.ones(n, device='cuda').sum() == min(n, 1)\n"
    )
    (tests / "test_monkey_patch.py").write_text("")
    return folder


def test_programs_run_once_and_each_failure_has_its_reason(tmp_path, monkeypatch):
    monkeypatch.setenv(CHECKOUTS, str(checkout(tmp_path / "checkouts")))
    out = tmp_path / "out"
    words = ["bench", "outside", "--out", str(out), "--timeout", "200"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    records = {r["name"]: r for r in json.loads((out / "outside.json").read_text())["records"]}
    reasons = {name: (r["outcome"], r["reason"]) for name, r in records.items()}
    assert reasons == {
        "copies.py": ("passed", ""),
        "faults.py": (
            "failed",
            "kernel fault: out of bounds read, passes with --bounds warn",
        ),
        "needs.py": ("failed", "needs a package"),
        "nothing.py": ("failed", "nothing computed on the GPU"),
        "test/transformers/test_one.py": ("failed", "its own assertion"),
    }
    cases = records["test/transformers/test_one.py"]["cases"]
    assert cases == {"passed": 2, "failed": 1, "skipped": 0, "collected": 3}
    assert "| TritonBench-G | 1 of 4 |" in (out / "outside.md").read_text()
    assert "2 of 3 that ran, 3 in all" in (out / "outside.md").read_text()
    again = CliRunner().invoke(app, words)
    assert "1/1" not in again.output  # nothing is left to run


def test_without_checkouts_it_says_what_is_expected(tmp_path, monkeypatch):
    monkeypatch.delenv(CHECKOUTS, raising=False)
    done = CliRunner().invoke(app, ["bench", "outside", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "expected a folder with checkouts" in done.output


def test_files_without_an_operator_are_no_programs(tmp_path):
    names = [program.name for program in programs(checkout(tmp_path))]
    assert "test/transformers/test_monkey_patch.py" not in names


def test_programs_that_were_not_run_are_counted():
    assert "| HeCBench | 0 of 40 |  | 40 not run |" in markdown([], {"HeCBench": 40})


def test_arguments_are_reduced():
    assert reduced(["./main", "-n", "65536", "0.5", "100"]) == ("./main", "-n", "1024", "0.5", "1")
    assert reduced(["./main"]) == ("./main",)


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("E   ModuleNotFoundError: No module named 'aiter.jit'", "needs a package"),
        ("a.cu:3:10: fatal error: 'hipcub/hipcub.hpp' file not found", "needs a header"),
        ("ld.lld: error: unable to find library -lrocrand", "needs a library"),
        ("AssertionError: Tensor-likes are not close!", "values differ"),
        ("assert False\nE   AssertionError: x", "its own assertion"),
        ("main.cu:5:3: error: use of undeclared identifier", "does not compile"),
        ("TypeError: unexpected", "an exception"),
        ("make: /opt/rocm/llvm/bin/llvm-mc: No such file or directory", "needs a tool or a file"),
        ("core.py: UserWarning: tl.make_block_ptr is old\nValueError: no", "an exception"),
        (
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 81920",
            "needs more LDS than there is",
        ),
    ],
)
def test_texts_have_a_class(printed, name):
    assert of_text(printed)[0] == name


def test_a_text_without_a_known_reason_has_no_class():
    assert of_text("all good\n") is None

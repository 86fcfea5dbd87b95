"""The arena's tasks in FlyDSL as programs: their commands, devices, copies and candidates."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.outside.app import read_records
from benchmarks.outside.arena import (
    FLYDSL_KERNEL,
    KERNEL_OF_OURS,
    NEWER_DEVICE,
    STUB,
    SUITE,
    TIMES,
    WRITTEN,
    arena_tasks,
    arena_times,
    arena_written,
    written_candidate,
)
from benchmarks.outside.arena_page import causes_table, counts_table, figures
from benchmarks.outside.reasons import of_text
from benchmarks.outside.suites import CHECKOUTS
from benchmarks.renewal import entry_maker
from kernel_gym.errors import InputError
from tests.programs.running import COPY

CONFIG = """
source_file_path:
- kernel.py
compile_command:
- python3 -c "import kernel"
correctness_command:
- python3 test_kernel_harness.py --correctness
performance_command:
- python3 test_kernel_harness.py --full-benchmark
"""
FAILS = f"{COPY}\nprint('Correctness: FAIL')\nprint('Shape 1 [4]: max_diff=1')\nraise SystemExit(1)"
SKIPS = "arch = 'gfx942'\nif arch != \"gfx950\":\n    print('skip')\n"
NEVER_ENDS = "while True:\n    pass\n"


def checkout(folder, harnesses):
    """A checkout of the arena with tasks of the given harnesses, by `category/name`."""
    for name, harness in harnesses.items():
        task = folder / "AgentKernelArena" / "tasks" / name
        task.mkdir(parents=True)
        (task / "config.yaml").write_text(CONFIG)
        (task / "kernel.py").write_text("")
        (task / "test_kernel_harness.py").write_text(harness)
    return folder


def run(monkeypatch, checkouts, *words):
    """The records of `python -m benchmarks outside` by name."""
    monkeypatch.setenv(CHECKOUTS, str(checkouts))
    out = checkouts.parent / "out"
    done = CliRunner().invoke(app, ["outside", "--out", str(out), *words])
    assert done.exit_code == 0, done.output
    return {r["name"]: r for r in json.loads((out / "outside.json").read_text())["records"]}


def test_tasks_run_in_a_fresh_copy_to_their_own_verdict(tmp_path, monkeypatch):
    counts = "from pathlib import Path\nassert not Path('build').exists()\nPath('build').mkdir()\n"
    checkouts = checkout(
        tmp_path / "checkouts",
        {
            "flydsl2flydsl/passes_kernel": f"{counts}{COPY}",
            "torch2flydsl/fails_kernel": FAILS,
            "triton2flydsl/aiter/skips": SKIPS,
            "triton2triton/other": COPY,
        },
    )
    records = run(monkeypatch, checkouts, "--only", f"{SUITE}/", "--timeout", "200")
    assert {name: (r["outcome"], r["reason"]) for name, r in records.items()} == {
        "flydsl2flydsl/passes_kernel": ("passed", ""),
        "torch2flydsl/fails_kernel": ("failed", "its own verdict"),
        "triton2flydsl/aiter/skips": ("failed", "nothing computed on the GPU"),
    }
    assert records["triton2flydsl/aiter/skips"]["device"] == NEWER_DEVICE
    assert records["flydsl2flydsl/passes_kernel"]["device"] == "sim:gfx942"
    assert records["flydsl2flydsl/passes_kernel"]["processor_seconds"] > 0
    assert not list(checkouts.rglob("build"))


def test_processor_seconds_are_limited(tmp_path, monkeypatch):
    checkouts = checkout(tmp_path / "checkouts", {"flydsl2flydsl/never_kernel": NEVER_ENDS})
    words = ("--only", f"{SUITE}/", "--cpu-seconds", "1")
    record = run(monkeypatch, checkouts, *words)["flydsl2flydsl/never_kernel"]
    assert (record["outcome"], record["reason"]) == ("failed", "time limit")


@pytest.mark.parametrize(
    "line",
    [
        "Correctness: FAIL",
        "correctness: fail",
        "Status: FAILED (1/4)",
        "Status:                FAILED",
        '{"correct": false, "num_failed": 1, "failures": [{"error": "run_test FAILED"}]}',
    ],
)
def test_the_verdicts_of_the_harnesses_are_known(line):
    printed = f"Results: 1/4 passed\n{line}\n"
    assert of_text(printed) == ("its own verdict", line)
    passed = printed.replace("FAIL", "PASS").replace("fail", "pass").replace("false", "true")
    assert of_text(passed) is None


def test_a_run_whose_folder_is_gone_is_continued_from_its_records(tmp_path, monkeypatch):
    names = ("flydsl2flydsl/one_kernel", "flydsl2flydsl/two_kernel")
    checkouts = checkout(tmp_path / "checkouts", dict.fromkeys(names, FAILS))
    earlier = tmp_path / "earlier.jsonl"
    known = run(monkeypatch, checkouts, "--only", f"{SUITE}/{names[0]}")[names[0]]
    known["reason"] = "only in the records"
    earlier.write_text(f'{json.dumps(known)}\n{{"suite": "cut off')
    shutil.rmtree(tmp_path / "out")
    records = run(monkeypatch, checkouts, "--only", f"{SUITE}/", "--earlier", str(earlier))
    assert records[names[0]] == known
    assert records[names[1]]["reason"] == "its own verdict"


@pytest.mark.parametrize("line", ["no JSON", "[1]", '{"suite": "arena"}'])
def test_a_file_without_records_is_refused_by_its_line(tmp_path, line):
    earlier = tmp_path / "earlier.jsonl"
    earlier.write_text(f'{{"suite": "arena", "name": "one"}}\n{line}\n')
    with pytest.raises(InputError, match=r"earlier\.jsonl, line 2: found .*, expected a record"):
        read_records(earlier)


def test_each_task_is_judged_and_timed_and_a_stub_can_have_a_kernel_of_ours(tmp_path):
    names = ("torch2flydsl/gelu_and_mul_kernel", "triton2flydsl/aiter/gelu_and_mul_kernel")
    folder = checkout(tmp_path, dict.fromkeys(names, "")) / "AgentKernelArena"
    (judged, _), (timed, _) = arena_tasks(folder), arena_times(folder)
    assert (judged.suite, timed.suite) == (SUITE, TIMES)
    assert judged.build[-1] == 'python3 -c "import kernel"'
    assert judged.command[-1].endswith("--correctness")
    assert timed.command[-1].endswith("--full-benchmark")
    (written,) = arena_written(folder)
    assert (written.suite, written.name) == (WRITTEN, names[0])
    assert written.replaced == {"kernel.py": written_candidate("gelu_and_mul_kernel")}


def test_a_task_without_a_kernel_of_ours_has_no_candidate():
    assert written_candidate("moe_sorting_kernel") is None


def record(suite, name, outcome="passed", reason="", candidate=STUB):
    """A record as `run_program` returns it, with what the table reads."""
    named = {"suite": suite, "name": name, "candidate": candidate}
    return named | {"outcome": outcome, "reason": reason, "processor_seconds": 2.6}


OUT_OF_BOUNDS = "kernel fault: out of bounds read, passes with --bounds warn"
RECORDS = (
    record(SUITE, "flydsl2flydsl/softmax_kernel", "failed", "its own verdict", FLYDSL_KERNEL),
    record(SUITE, "torch2flydsl/gelu_kernel"),
    record(SUITE, "torch2flydsl/moe_kernel", "failed", "time limit"),
    record(SUITE, "torch2flydsl/rope_kernel", "failed", "needs a package"),
    record(SUITE, "torch2flydsl/bmm_kernel", "failed", OUT_OF_BOUNDS, FLYDSL_KERNEL),
    record(WRITTEN, "torch2flydsl/gelu_kernel", candidate=KERNEL_OF_OURS),
    record(TIMES, "torch2flydsl/gelu_kernel"),
)


def test_the_table_counts_what_each_harness_judged():
    lines = counts_table(RECORDS).splitlines()[2:]
    assert lines == [
        "| `flydsl2flydsl` | its kernel in FlyDSL | 1 | 1 | 0 | 0 | 1 | 0 | 0 |",
        "| `torch2flydsl` | a stub | 3 | 1 | 1 | 0 | 0 | 1 | 1 |",
        "| `torch2flydsl` | its kernel in FlyDSL | 1 | 1 | 0 | 1 | 0 | 0 | 0 |",
        "| `torch2flydsl` | our kernel in FlyDSL | 1 | 1 | 1 | 0 | 0 | 0 | 0 |",
        "| **all** | each task once | 5 | 3 | 1 | 1 | 1 | 1 | 1 |",
    ]
    assert "| cannot run | needs a package | `rope` |" in causes_table(RECORDS)


def test_the_figures_are_counted_from_the_records():
    stored = figures(RECORDS, 9, entry_maker("arena-flydsl")).entries
    values = {entry.id: (entry.value, entry.unit) for entry in stored}
    assert values["arena-ran"] == (3, "of 9")
    assert values["arena-written"] == (1, "of 1")
    assert values["arena-times"] == (1, "of 1 tried")
    assert values["arena-seconds"][0] == 13
    (first, *others) = RECORDS
    counted = {key: first[key] for key in first if key != "processor_seconds"}
    seconds = figures((counted, *others), 9, entry_maker("arena-flydsl")).entries[-1]
    assert (seconds.id, seconds.value) == ("arena-seconds", 10)
    assert seconds.metric == "Compile and correctness commands of 4 tasks"
    assert stored[0].goal is not None
    assert not stored[0].goal.met

"""A run whose driver is killed, resumed: the same results as one that nobody disturbed."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import get_task

TASKS = ("triton2triton/softmax", "torch2triton/gelu")
TURNS = 3
DYING = Path(__file__).parent / "dying_eval.py"


@pytest.fixture
def command(tmp_path):
    """The arguments of an evaluation with failures of several kinds and a success a task."""
    (tmp_path / "suite.toml").write_text(
        f'name = "small"\nsummary = "two"\ntasks = {json.dumps(TASKS)}\n'
    )
    for task in map(get_task, TASKS):
        folder = tmp_path / "sources" / task.id
        folder.mkdir(parents=True)
        wrong = f"def {task.entry}(*args):\n    return args[0]\n"
        for number, source in enumerate(("broken(", wrong, task.kernel_source), start=1):
            (folder / f"{number}.py").write_text(source)

    def arguments(out, *more):
        text = f"eval --device sim:gfx942 --seed 3 --turns {TURNS} --workers 2"
        names = ["--policy", f"folder:{tmp_path / 'sources'}", "--out", str(tmp_path / out)]
        return [*text.split(), "--suite", str(tmp_path / "suite.toml"), *names, *more]

    return arguments


def ended(pids):
    """Waits for the processes to be gone; the ones that are not after a minute."""
    left = []
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(60_000):
            left.append(pid)
        os.close(handle)
    return left


def content(folder):
    """The content of a run, without wall-clock times."""
    store = RunStore(folder)
    return [
        (r.task, r.turn, r.reward, r.terms, r.evaluation.canonical(), store.source(r))
        for r in store.records()
    ]


@pytest.mark.slow
def test_a_killed_driver_loses_nothing_that_was_on_disk_and_leaves_no_process(command, tmp_path):
    result = CliRunner().invoke(app, command("undisturbed"))
    assert result.exit_code == 0, result.output
    expected = content(tmp_path / "undisturbed")
    assert len(expected) == len(TASKS) * TURNS

    pids = tmp_path / "pids"
    same_draws = ("--secret", str(tmp_path / "undisturbed"))
    arguments = [sys.executable, str(DYING), "3", str(pids), *command("killed", *same_draws)]
    assert subprocess.run(arguments, check=False).returncode == -signal.SIGKILL
    assert len(RunStore(tmp_path / "killed").records()) == 2
    assert ended(map(int, pids.read_text().split())) == []

    result = CliRunner().invoke(app, command("killed", "--resume"))
    assert result.exit_code == 0, result.output
    assert content(tmp_path / "killed") == expected
    lines = [
        (tmp_path / run / "results.jsonl").read_text().splitlines()
        for run in ("undisturbed", "killed")
    ]
    assert len(lines[0]) == len(lines[1])

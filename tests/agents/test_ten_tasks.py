"""Ten tasks by two agents, whose player is killed and resumed: nothing lost, nothing twice.

`pytest -m sweep tests/agents/test_ten_tasks.py` takes minutes. mini-swe-agent is the real program
with a scripted model behind a local endpoint; it is skipped where it is not installed.
"""

import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from kernel_gym.storage.json_lines import read_lines
from kernel_gym.storage.run_records import AgentStart
from kernel_gym.storage.run_store import RESULTS, STARTS, RunStore
from kernel_gym.tasks import get_task
from tests.agents.conftest import DEVICE
from tests.agents.scripted_model import scripted_model
from tests.agents.test_mini_swe_agent import MINI

TASKS = (
    "triton2triton/softmax",
    "triton2triton/layer_norm",
    "triton2triton/cumsum",
    "triton2triton/gelu",
    "triton2triton/swiglu",
    "triton2triton/add_rms_norm",
    "hip2hip/softmax",
    "hip2hip/transpose",
    "hip2hip/silu",
    "hip2hip/row_argmax",
)
STEPS = (
    "test -f right || cp $KERNEL_GYM_FILE right",
    "printf 'x(' > $KERNEL_GYM_FILE; ./check",
    "cp right $KERNEL_GYM_FILE; ./check",
)
"""The commands of both agents: a broken kernel, then the start kernel, which is right."""
KILL_AFTER = 13
"""Records of the run at which its player is killed: an episode has three."""


@pytest.fixture
def play(tmp_path):
    """Starts a player of the ten tasks; returns its process."""
    suite = tmp_path / "ten.toml"
    names = ", ".join(f'"{name}"' for name in TASKS)
    suite.write_text(f'name = "ten"\nsummary = "ten tasks"\ntasks = [{names}]\n')

    def started(*more, **variables):
        command = [
            sys.executable, "-m", "kernel_gym", "agent", "--suite", str(suite), "--device", DEVICE,
            "--submissions", "2", "--parallel", "2", "--executor", "inline",
            "--out", str(tmp_path / "run"), "--json", *more,
        ]  # fmt: skip
        output = (tmp_path / "output").open("a")
        return subprocess.Popen(
            command, env=os.environ | variables, stdout=output, stderr=subprocess.STDOUT
        )

    return started


def identities(run):
    return {
        (record.task, record.sample, record.turn): (record.evaluation.seed, record.reward)
        for record in RunStore(run).records()
    }


def kill_in_the_middle(process, run):
    """Kills the player when the run has enough records; returns those that it had."""
    results = run / RESULTS
    while process.poll() is None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
        if results.exists() and results.read_bytes().count(b"\n") >= KILL_AFTER:
            process.send_signal(signal.SIGKILL)
            process.wait()
    assert process.returncode == -signal.SIGKILL, (run.parent / "output").read_text()
    return identities(run)


def require_whole(run, before):
    """Nothing of the killed run is lost, and no submission or finished episode is played twice."""
    store = RunStore(run)
    after = identities(run)
    assert KILL_AFTER <= len(before) < len(after) == 3 * len(TASKS)
    assert {key: after[key] for key in before} == before
    for name in TASKS:
        records = [record for record in store.records() if record.task == name]
        right = get_task(name).start_source
        assert [store.source(record) for record in records] == ["x(", right, right]
        outcomes = [str(record.evaluation.outcome) for record in records]
        assert outcomes == ["compile_error", "passed", "passed"]
        assert store.is_over(name)
    starts = Counter(start.task for start in read_lines(run / STARTS, AgentStart))
    over = {task for task, _, turn in before if turn == 3}
    assert set(starts) == set(TASKS)
    assert over
    assert all(starts[task] == 1 for task in over), "a finished episode started again"


@pytest.mark.sweep
@pytest.mark.timeout(2400)
def test_a_shell_agent_plays_ten_tasks_and_is_killed(play, tmp_path):
    agent = ("--command", "; ".join(STEPS))
    before = kill_in_the_middle(play(*agent), tmp_path / "run")
    assert play(*agent, "--resume").wait() == 0, (tmp_path / "output").read_text()
    require_whole(tmp_path / "run", before)


@pytest.mark.sweep
@pytest.mark.timeout(2400)
@pytest.mark.skipif(MINI is None, reason="needs mini-swe-agent: pip install mini-swe-agent")
def test_mini_swe_agent_plays_ten_tasks_and_is_killed(play, tmp_path):
    agent = ("--preset", "mini-swe-agent", "--read", str(Path(MINI).parent.parent))
    with scripted_model(STEPS) as (url, server):
        variables = {
            "MSWEA_MODEL_NAME": "openai/scripted",
            "OPENAI_API_BASE": url,
            "OPENAI_API_KEY": "none",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "MSWEA_CONFIGURED": "true",
        }
        before = kill_in_the_middle(play(*agent, **variables), tmp_path / "run")
        asked = server.requests
        assert play(*agent, "--resume", **variables).wait() == 0, (tmp_path / "output").read_text()
    require_whole(tmp_path / "run", before)
    assert 0 < asked < server.requests

"""Scripted shell agents in real workspaces: honest ones, broken ones, and hostile ones."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from kernel_gym.agents.desk import Recorder
from kernel_gym.agents.play import AgentPlay, Manner
from kernel_gym.agents.presets import Preset, get_preset, presets
from kernel_gym.agents.process import MAX_TRANSCRIPT, Limits
from kernel_gym.analysis.summary import summarise
from kernel_gym.rewards import get_reward
from kernel_gym.storage.json_lines import read_lines
from kernel_gym.storage.run_records import AgentStart, RunConfig
from kernel_gym.storage.run_store import STARTS, TRANSCRIPTS, WORKSPACES, RunStore
from kernel_gym.tasks import get_task
from kernel_gym.tasks.names import UnknownName
from tests.agents.conftest import DEVICE, TASK

BROKEN = "printf 'x(' > kernel.py; "
"""A kernel that is evaluated fast."""


@pytest.fixture
def play(tmp_path, pool):
    """Plays a command on one task, and returns the store, the start and the transcript."""

    def played(command, submissions=3, seconds=200, samples=1, parallel=1, **preset):
        config = RunConfig(
            policy="agent:test",
            suite=TASK,
            tasks=(TASK,),
            device=DEVICE,
            reward="kernel-opt",
            turns=submissions + 1,
            samples=samples,
        )
        store = RunStore.start(tmp_path / "run", config, secret=pool.secret)
        limits = Limits(seconds, preset.pop("most_tokens", None))
        manner = Manner(Preset(command=textwrap.dedent(command), **preset), limits, True, parallel)
        AgentPlay(Recorder(store, get_reward()), pool, manner).play([get_task(TASK)])
        starts = read_lines(tmp_path / "run" / STARTS, AgentStart)
        transcripts = sorted((tmp_path / "run" / TRANSCRIPTS).rglob("*.txt"))
        text = transcripts[-1].read_bytes().decode(errors="replace")
        if "cannot be confined here" in text:
            pytest.skip(text)
        return RunStore(tmp_path / "run"), starts[-1], text

    return played


def outcomes(store):
    return [str(record.evaluation.outcome) for record in store.records()]


def test_a_shell_agent_plays_a_task(play):
    store, start, text = play(
        """
        ./check > first.txt
        sed -i 's/BLOCK=512/BLOCK=1024/' kernel.py
        ./check | head -1
        echo "$KERNEL_GYM_TASK $KERNEL_GYM_FILE"
        """
    )
    assert outcomes(store) == ["passed"] * 3
    first, second, verdict = store.records()
    assert first.evaluation.speedup == pytest.approx(1.0)
    assert second.evaluation.speedup == verdict.evaluation.speedup > 1.1
    assert start.status == 0
    assert f"{TASK} kernel.py" in text
    assert store.is_over(TASK)
    folder = store.folder / WORKSPACES / TASK / "sample_1"
    assert "Correct on every workload" in (folder / "first.txt").read_text()


def test_an_agent_sees_its_workspace_alone(play, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_PLAYER", "hunter2")
    store, _, text = play(
        BROKEN
        + f"""
        cat {tmp_path}/run/secret.json && echo READ_SECRET
        cat ../../../../secret.json && echo READ_SECRET
        ls {tmp_path}/run && echo LISTED_RUN
        touch {tmp_path}/run/results.jsonl && echo WROTE_RUN
        cat /proc/1/environ /proc/*/environ; env
        kill -9 -1; kill -9 {os.getpid()} && echo KILLED
        touch /usr/x /etc/x && echo WROTE_SYSTEM
        echo fine > /var/tmp/x && echo WROTE_VAR
        echo fine > "$TMPDIR/x" && cat "$TMPDIR/x"
        python3 -c 'import socket; socket.create_connection(("127.0.0.1", 1), 2)' 2>&1 | tail -1
        python3 -c 'import kernel_gym' 2>&1 | tail -1
        id -u
        """
    )
    for word in ("READ_SECRET", "LISTED_RUN", "WROTE_RUN", "WROTE_SYSTEM", "WROTE_VAR", "hunter2"):
        assert word not in text
    assert "KILLED" not in text
    assert outcomes(store) == ["compile_error"]


def test_the_network_is_closed_unless_asked_for(play):
    look = 'python3 -c \'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()'
    look += '; socket.create_connection(s.getsockname(), 2); print("CONNECTED")\''
    assert "CONNECTED" not in play(BROKEN + look)[2]


def test_the_network_is_open_if_asked_for(play):
    look = 'python3 -c \'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()'
    look += '; socket.create_connection(s.getsockname(), 2); print("CONNECTED")\''
    assert "CONNECTED" in play(BROKEN + look, network=True)[2]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("exit 3", "exited with status 3"),
        ("kill -SEGV $$", "exited with status 139"),
        ("no-such-agent", "status 127: a program was not found; install it, and give"),
        ("rm -rf ./* ./.mcp.json", "kernel.py is missing"),
        ("rm kernel.py; ln -s /etc/passwd kernel.py", "kernel.py cannot be read"),
        ("rm kernel.py; mkfifo kernel.py", "found no regular file"),
        (BROKEN + "sleep 1000", "stopped after 2 s"),
    ],
)
def test_what_goes_wrong_is_recorded(play, command, reason):
    store, start, _ = play(command, seconds=2)
    reasons = [end.reason for end in store.ends()] + [r.problem for r in store.records()]
    assert reason in "; ".join(reasons) + start.reason
    assert store.is_over(TASK)


@pytest.mark.parametrize("command", ["exit 137", "true", "touch notes.txt"])
def test_an_untouched_start_kernel_is_no_submission(play, command):
    store, _, _ = play(command)
    assert outcomes(store) == []
    assert store.is_over(TASK)
    assert "kernel.py was not changed" in store.ends()[0].reason
    assert summarise(store).solved == 0


def test_the_run_continues_after_episodes_that_go_wrong(play):
    command = """
        case $PWD in
        *sample_1) rm -rf ./* ./.mcp.json; exit;;
        *sample_2) exit 3;;
        *sample_3) rm -rf ./*; mkdir kernel.py judge.sock; kill -9 -1;;
        esac
    """
    store, _, _ = play(command + BROKEN + "./check", samples=4)
    assert [record.sample for record in store.records()] == [4, 4]
    assert outcomes(store) == ["compile_error"] * 2
    assert not store.unfinished()


def test_output_without_end_is_cut(play):
    store, _, text = play(BROKEN + "yes | head -c 50000000")
    assert outcomes(store) == ["compile_error"]
    assert len(text) < MAX_TRANSCRIPT + 100
    assert text.endswith("[the rest of the output was dropped]\n")


def test_tokens_in_the_output_are_counted_and_limited(play):
    command = BROKEN + "for i in 1 2 3; do echo '{\"output_tokens\": 40}'; done; sleep 60"
    store, start, _ = play(command, tokens=r'"output_tokens":\s*(\d+)', most_tokens=100)
    assert start.tokens == 120
    assert start.reason == "stopped after 120 tokens of 100"
    assert store.is_over(TASK)


def test_episodes_are_played_several_at_a_time(play):
    command = BROKEN + "touch here; ./check; ls /proc | grep -c '^[0-9]'"
    store, _, _ = play(command, samples=4, parallel=4)
    assert outcomes(store) == ["compile_error"] * 8
    assert not store.unfinished()


def agent_command(folder, *more):
    command = "echo start >> starts; printf 'x(' > kernel.py; ./check; printf 'y(' > kernel.py"
    command += "; test $(wc -l < starts) -gt 1 || sleep 1000"
    return [
        sys.executable, "-m", "kernel_gym", "agent", "--command", command, "--suite", TASK,
        "--device", DEVICE, "--submissions", "2", "--out", str(folder), "--executor", "inline",
        "--json", *more,
    ]  # fmt: skip


def test_a_killed_run_continues_in_its_workspaces(tmp_path):
    folder = tmp_path / "run"
    process = subprocess.Popen(agent_command(folder), stderr=subprocess.DEVNULL)
    clock = folder / "clock.jsonl"
    while process.poll() is None and not clock.exists():
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    resumed = subprocess.run(
        agent_command(folder, "--resume"), capture_output=True, text=True, timeout=200
    )
    assert resumed.returncode == 0, resumed.stderr
    store = RunStore(folder)
    assert [store.source(record) for record in store.records()] == ["x(", "y("]
    assert (folder / WORKSPACES / TASK / "sample_1" / "starts").read_text() == "start\nstart\n"
    assert len(list((folder / TRANSCRIPTS).rglob("*.txt"))) == 2
    assert json.loads(resumed.stdout)["folder"] == str(folder)


def test_presets_are_data():
    assert {"claude-code", "codex", "gemini", "openhands", "mini-swe-agent", "aider"} <= set(
        presets()
    )
    assert all("$KERNEL_GYM_PROMPT" in preset.command for preset in presets().values())
    with pytest.raises(UnknownName, match="did you mean codex"):
        get_preset("codexx")

"""A workspace: its files, its scripts on a socket, and what a hostile agent may do to it."""

import json
import os
import socket
import subprocess
import sys
import threading

import pytest

from kernel_gym.agents.attend import attended
from kernel_gym.agents.serve import CONNECTIONS, MAX_REQUEST, answer_to, desk_server
from kernel_gym.agents.workspace import (
    WorkspaceError,
    read_kernel,
    read_settings,
    write_workspace,
)
from kernel_gym.tasks import get_task
from tests.agents.conftest import DEVICE, TASK

MODES = ("triton2triton", "torch2triton", "torch2hip", "hip2hip", "instruction2triton")


def run(folder, script, *arguments, **options):
    command = [sys.executable, "-S", str(folder / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, **options)


@pytest.fixture
def served(tmp_path, make_desk):
    folder = tmp_path / ("long" * 40) / "work"
    write_workspace(folder, get_task(TASK), DEVICE, 3)
    desk = make_desk(3)
    with desk_server(folder, desk):
        yield folder, desk


@pytest.mark.parametrize("mode", MODES)
def test_a_workspace_has_no_oracle_and_no_unseen_sizes(tmp_path, mode):
    task = get_task(f"{mode}/softmax")
    write_workspace(tmp_path / "w", task, DEVICE, 5)
    texts = {p.name: p.read_text() for p in (tmp_path / "w").iterdir()}
    assert {"TASK.md", "AGENTS.md", "CLAUDE.md", "check", "profile", "DEVICE.md"} <= texts.keys()
    assert ("reference.py" in texts) == (mode != "instruction2triton")
    everything = "\n".join(texts.values())
    assert "oracle(" not in everything
    assert ".double()" not in everything
    for dims in task.problem.production["sim"]:
        assert not all(f"{name}={size}" in everything for name, size in dims.items())
    assert json.loads(texts[".mcp.json"])["mcpServers"]["kernel-gym"]["command"] == "./mcp"


def test_check_prints_feedback_and_exits_as_the_verdict(served):
    folder, desk = served
    right = run(folder, "check", cwd="/")
    assert right.returncode == 0
    assert "Correct on every workload" in right.stdout
    assert "2 of 3 submissions left" in right.stderr
    profile = run(folder, "profile")
    assert json.loads(profile.stdout)["kernels"][0]["name"] == "softmax_kernel"
    assert desk.left == 2
    (folder / "kernel.py").write_text("x(")
    wrong = run(folder, "check")
    assert (wrong.returncode, "Does not compile" in wrong.stdout) == (1, True)
    assert "def softmax" in run(folder, "check", "--best").stdout
    (folder / "kernel.py").unlink()
    assert run(folder, "check").returncode == 2


def test_check_answers_before_the_result_is_there_and_wait_has_it(served, monkeypatch):
    folder, desk = served
    check = (folder / "check").read_text()
    assert "PATIENCE = 25" in check
    (folder / "check").write_text(check.replace("PATIENCE = 25", "PATIENCE = 0.2"))
    assert "nothing was submitted" in run(folder, "check", "--wait").stderr
    gate, evaluate = threading.Event(), desk._evaluate
    monkeypatch.setattr(desk, "_evaluate", lambda *a: gate.wait(60) and evaluate(*a))
    (folder / "kernel.py").write_text("x(")
    for arguments in ((), ("--wait",), ()):
        late = run(folder, "check", *arguments)
        assert (late.returncode, late.stdout) == (3, "")
        assert "still running: ./check --wait" in late.stderr
    gate.set()
    (folder / "kernel.py").write_text("another")
    (folder / "check").write_text(check)
    result = run(folder, "check", "--wait")
    assert (result.returncode, "Does not compile" in result.stdout) == (1, True)
    assert "2 of 3 submissions left" in result.stderr
    assert len(desk.episode.turns) == 1


def test_requests_that_are_no_requests_are_answered(served, monkeypatch):
    folder, desk = served
    deep = b"[" * 100_000
    for line in (b"", b"\xff", b"[]", b"null", deep, b'{"do": "verdict"}', b'{"do": ["x"]}'):
        assert answer_to(desk, line)["error"]
    with socket.socket(socket.AF_UNIX) as connection:
        monkeypatch.chdir(folder)
        connection.connect("judge.sock")
        connection.sendall(b"x" * (MAX_REQUEST + 10))
        assert b"found no JSON" in connection.recv(1000)
    assert desk.left == 3


def test_more_connections_than_room_are_closed_and_others_are_served(served, monkeypatch):
    folder, _ = served
    monkeypatch.chdir(folder)
    held = []
    for _ in range(CONNECTIONS):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect("judge.sock")
        held.append(connection)
    with socket.socket(socket.AF_UNIX) as extra:
        extra.connect("judge.sock")
        assert extra.recv(1) == b""
    for connection in held:
        connection.close()
    (folder / "kernel.py").write_text("x(")
    assert run(folder, "check").returncode == 1  # it asks again until there is room


@pytest.mark.parametrize("kind", ["link", "folder", "fifo", "large", "missing", "socket"])
def test_a_kernel_file_that_is_no_file_is_no_source(tmp_path, kind, monkeypatch):
    folder, secret = tmp_path / "w", tmp_path / "secret"
    write_workspace(folder, get_task(TASK), DEVICE, 3)
    secret.write_text("a file of the judge")
    path = folder / "kernel.py"
    path.unlink()
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "large":
        path.write_bytes(b"#" * 300_000)
    elif kind == "socket":
        monkeypatch.chdir(folder)
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("kernel.py")
    source, problem = read_kernel(folder, get_task(TASK))
    assert source is None
    assert problem.startswith("kernel.py ")


def test_a_check_without_its_workspace_is_one_line(tmp_path):
    write_workspace(tmp_path / "w", get_task(TASK), DEVICE, 3)
    (tmp_path / "w" / "workspace.json").unlink()
    run = subprocess.run([str(tmp_path / "w" / "check")], capture_output=True, text=True)
    assert run.returncode == 2
    assert "is no workspace: workspace.json" in run.stderr
    assert run.stderr.count("\n") == 1


def test_a_folder_with_other_files_is_not_attended(tmp_path):
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "notes.txt").write_text("mine")
    with (
        pytest.raises(WorkspaceError, match=r"found other files .* name another folder"),
        attended(get_task(TASK), tmp_path / "w", tmp_path / "run", DEVICE, 3),
    ):
        pass
    assert [path.name for path in (tmp_path / "w").iterdir()] == ["notes.txt"]


def test_folders_that_are_no_workspaces_are_refused(tmp_path):
    with pytest.raises(WorkspaceError, match="is no workspace"):
        read_settings(tmp_path)
    (tmp_path / "workspace.json").write_text('{"task": 3}')
    with pytest.raises(WorkspaceError, match="task"):
        read_settings(tmp_path)
    with pytest.raises(WorkspaceError, match="expected an empty folder"):
        write_workspace(tmp_path, get_task(TASK), DEVICE, 3)

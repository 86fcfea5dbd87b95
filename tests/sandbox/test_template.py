"""Workers: their barriers, and that they leave no process, file or descriptor."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kernel_gym.devices.sim.device import SimDevice
from kernel_gym.evaluator import Evaluator
from kernel_gym.protocol.compiling import SIZE
from kernel_gym.records import Outcome
from kernel_gym.sandbox.confine import Confinement, WorkerLimits
from kernel_gym.sandbox.spawn import Template, TemplateError, shared_template
from kernel_gym.sandbox.view import needed_folders
from kernel_gym.tasks import get_task

TASK = "triton2triton/softmax"
TELL = "import posix, json\ndef softmax(x):\n    raise RuntimeError(json.dumps({}))\n"
DESCRIPTORS = """
import posix

def is_open(fd):
    try:
        posix.fstat(fd)
    except OSError:
        return False
    return True

def softmax(x):
    raise RuntimeError([fd for fd in range(200) if is_open(fd)], posix.fstat(4).st_size)
"""
FAULT = """
import numpy as np
from numpy.lib.stride_tricks import as_strided

def softmax(x):
    as_strided(np.zeros(1), (1 << 40,), (8,))[1 << 39] = 1
"""
KINDS = (
    "baseline",
    "def softmax(x): return x",
    "import posix\ndef softmax(x): posix._exit(3)",
    "import posix\ndef softmax(x): posix.kill(posix.getpid(), 9)",
    "nonsense(",
    "import posix\nposix.mkdir('shut', 0)\ndef softmax(x): [posix.fork() for _ in range(3)]",
    "def softmax(x): x.cpu()",
)


@pytest.fixture(scope="module")
def task():
    return get_task(TASK)


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator(device="sim:gfx942", seed=0) as evaluator:
        yield evaluator


@pytest.fixture
def ask(evaluator, task):
    """Evaluates an expression in a worker."""

    def ask(expression):
        evaluation = evaluator.evaluate(task, TELL.format(expression))
        return json.loads(evaluation.message.removeprefix("RuntimeError: "))

    return ask


def _descendants():
    """Processes of our template and of what it has started."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        parents[int(pid)] = int(text.rpartition(")")[2].split()[1])
    family = {shared_template()._process.pid}
    while more := {p for p, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def _descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_the_environment_is_scrubbed(ask, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_JUDGE", "1")
    assert set(ask("sorted(k.decode() for k in posix.environ)")) == {
        "HOME", "LANG", "OMP_NUM_THREADS", "PATH", "TMPDIR", "TRITON_CACHE_DIR",
        "TRITON_DEFAULT_FP_FUSION", "TRITON_HIP_USE_BLOCK_PINGPONG", "TRITON_HOME",
        "USER", "XDG_CACHE_HOME",
    }  # fmt: skip


def test_only_the_pipe_to_the_judge_and_its_page_are_open(evaluator, task):
    """Standard streams lead nowhere; 3 is the pipe, 4 the page that names what is compiled."""
    evaluation = evaluator.evaluate(task, DESCRIPTORS)
    assert evaluation.message == f"RuntimeError: ([0, 1, 2, 3, 4], {SIZE})"


def test_a_killed_worker_is_reported_with_its_signal(evaluator, task):
    evaluation = evaluator.evaluate(task, FAULT)
    assert evaluation.outcome is Outcome.RUNTIME_ERROR
    assert "SIGSEGV" in evaluation.message


def test_an_exit_is_reported_with_its_status(evaluator, task):
    assert "status 3" in evaluator.evaluate(task, KINDS[2]).message


def test_the_confinement_is_reported(task):
    session = SimDevice().open(task)
    session.close()
    evaluation = session.confinement
    assert set(evaluation) == {"active", "missing"}
    assert "resource limits" in evaluation["active"]
    assert not set(evaluation["active"]) & set(evaluation["missing"])
    assert all(isinstance(why, str) and why for why in evaluation["missing"].values())


def test_a_missing_barrier_is_noted_with_its_reason():
    def refused():
        raise PermissionError(1, "Operation not permitted")

    confinement = Confinement()
    assert not confinement.attempt("something", refused)
    assert confinement.attempt("another", lambda: None)
    assert (confinement.active, confinement.missing) == (
        ["another"],
        {"something": "Operation not permitted"},
    )


def test_the_interpreter_is_among_the_needed_folders():
    needed = needed_folders()
    for file in (os.__file__, json.__file__, pytest.__file__):
        assert any(file.startswith(folder) for folder in needed)
    assert not any(a != b and a.startswith(b + "/") for a in needed for b in needed)


@pytest.mark.sweep
def test_a_hundred_mixed_evaluations_leave_nothing(evaluator, task, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sources = [task.baseline_source if s == "baseline" else s for s in KINDS]
    evaluator.evaluate(task, sources[0])  # the baseline's worker stays
    template = shared_template()._process.pid
    homes = set(tmp_path.iterdir())
    processes, ours, theirs = _descendants(), _descriptors("self"), _descriptors(template)
    for i in range(100):
        evaluator.evaluate(task, sources[1 + i % (len(sources) - 1)])
    evaluator.evaluate(task, sources[0])
    assert _descendants() == processes
    assert _descriptors("self") == ours
    assert _descriptors(template) == theirs
    assert set(tmp_path.iterdir()) == homes


@pytest.mark.parametrize("wait", ["", "template.times(); "])
def test_a_template_ends_without_a_word(wait):
    code = f"from kernel_gym.sandbox.spawn import Template; template = Template(); {wait}"
    code += "template.close()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_template_has_no_thread_for_each_processor(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    template = Template()
    try:
        template.times()  # it is ready then
        assert len(os.listdir(f"/proc/{template._process.pid}/task")) == 1
    finally:
        template.close()


def test_a_template_loads_the_libraries_of_a_role_for_its_first_child_and_starts_no_thread():
    template = Template()
    try:
        _wait_for_spare_work(template)
        before = _resident_bytes(template._process.pid)
        for name in ("recorder", "tracer", "tracer"):
            template.fork(name, [], {}, WorkerLimits(memory=1 << 30, cpu_seconds=60)).close()
            template.times()
            sizes = before, _resident_bytes(template._process.pid)
            assert (name == "tracer") == (sizes[1] - sizes[0] > 20 << 20), sizes
        assert len(os.listdir(f"/proc/{template._process.pid}/task")) == 1
    finally:
        template.close()


def _wait_for_spare_work(template):
    """Waits until a template has loaded what the first child does not need: LLVM comes last."""
    template.times()
    process = Path(f"/proc/{template._process.pid}")
    for _ in range(100_000):
        state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        if "libLLVM" in (process / "maps").read_text() and state == "S":
            return


def test_requests_come_before_spare_work():
    code = """
import socket
from kernel_gym.protocol.request import encode
from kernel_gym.protocol.template import ReadTimes
from kernel_gym.sandbox import template
import json
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
done = []

def spare():
    for step in range(3):
        done.append(step)
        if step == 1:
            ours.send(json.dumps(encode(ReadTimes())[0]).encode())
        yield
    for _ in range(3):
        ours.recv(4096)
    ours.close()

send = template._send
template._send = lambda *given: (done.append("answer"), send(*given))
ours.send(json.dumps(encode(ReadTimes())[0]).encode())
template.serve(theirs, {}, spare())
print(done)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "['answer', 0, 1, 'answer', 2]\n", done.stderr


def test_a_child_that_is_closed_twice_keeps_its_status():
    template = Template()
    try:
        child = template.fork("recorder", [], {}, WorkerLimits(memory=1 << 30, cpu_seconds=60))
        status = child.close(grace=60.0)
        assert status  # it has not got its descriptors
        assert child.close() == status
    finally:
        template.close()


def _resident_bytes(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_template_that_cannot_start_says_so_at_its_first_request(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    template = Template()
    with pytest.raises(TemplateError, match="did not start"):
        template.times()
    assert not template.alive

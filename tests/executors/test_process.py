"""The process of a judge, which must not disturb the clocks of others on the machine."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_gym.executors import EvaluationRequest
from kernel_gym.executors.process import ProcessLost, ProcessWorker
from kernel_gym.storage.secret import process_secret


@pytest.mark.parametrize(("own", "found"), [(None, "1"), ("3", "3")])
def test_it_does_not_start_a_thread_for_each_processor(monkeypatch, own, found):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if own:
        monkeypatch.setenv("OMP_NUM_THREADS", own)
    worker = ProcessWorker("sim:gfx942", process_secret())
    try:
        with pytest.raises(ProcessLost, match="'no/such'"):
            worker.start(EvaluationRequest("no/such", "")).result()
        variables = Path(f"/proc/{worker._process.pid}/environ").read_text().split("\0")
    finally:
        worker.kill()
    assert f"OMP_NUM_THREADS={found}" in variables
    assert os.environ.get("OMP_NUM_THREADS") == own


def test_a_process_refuses_a_task_whose_texts_differ_from_the_submitters():
    worker = ProcessWorker("sim:gfx942", process_secret())
    request = EvaluationRequest("triton2triton/softmax", "not a kernel", 0, content="0" * 64)
    try:
        with pytest.raises(ProcessLost, match=r"other texts of the problem.*instead of 000000"):
            worker.start(request).result()
    finally:
        worker.kill()


PARENT = """
import multiprocessing, os, signal, threading
from kernel_gym.executors.process import end_with_parent

def child():
    end_with_parent()
    print(os.getpid(), flush=True)
    threading.Event().wait()

multiprocessing.get_context("fork").Process(target=child).start()
signal.pause()
"""


def test_a_process_ends_with_a_parent_that_is_killed():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        child = os.pidfd_open(int(parent.stdout.readline()))
        os.kill(parent.pid, signal.SIGKILL)
        select.select([child], [], [])  # never returns while the child lives
        os.close(child)

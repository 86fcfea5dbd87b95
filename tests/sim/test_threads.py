"""Workgroups over threads: every one runs once, and the engine's threads outlive no owner."""

import gc
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from kernel_gym.sim.engine.engine import Engine
from tests.sim.support import kernel_text, run

# Adds one to the word of the workgroup's number.
COUNT = """\ts_load_dwordx2 s[4:5], s[0:1], 0x0
	s_mov_b64 exec, 1
	v_mov_b32_e32 v1, s2
	v_lshlrev_b32_e32 v1, 2, v1
	global_load_dword v2, v1, s[4:5]
	s_waitcnt vmcnt(0)
	v_add_u32_e32 v2, 1, v2
	global_store_dword v1, v2, s[4:5]"""


def has_threads(count: int) -> bool:
    """Whether this process has so many; one that was joined is listed a moment longer."""
    tasks = Path("/proc/self/task")
    return any(len(list(tasks.iterdir())) == count for _ in range(1000))


def counts(engine: Engine, workgroups: int) -> np.ndarray:
    """How often each workgroup ran."""
    words = np.zeros(workgroups, np.uint32)
    result = run(engine, kernel_text(COUNT), (workgroups,), [words])
    assert result.wave_instructions == 9 * workgroups
    return words


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_workgroup_runs_once(threads):
    engine = Engine(threads=threads)
    for workgroups in (1, 2, 3, 5, 8, 17, 64, 1000, 4096):
        assert (counts(engine, workgroups) == 1).all()


def test_threads_are_kept_and_go_with_their_engine():
    gc.collect()  # engines of other tests
    before = len(list(Path("/proc/self/task").iterdir()))
    engine = Engine(threads=3)
    counts(engine, 1)
    assert has_threads(before)  # one workgroup needs none
    for _ in range(3):
        counts(engine, 64)
        assert has_threads(before + 2)
    del engine
    assert has_threads(before)


def ends_well(action) -> bool:
    """Whether an action succeeds in a forked process; one that hangs is killed."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # pytest-timeout's needs Python to run
        signal.alarm(20)
        try:
            action()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def test_a_fork_makes_threads_of_its_own():
    engines = [Engine(threads=2), Engine(threads=2)]
    for engine in engines:
        counts(engine, 64)

    def use():
        assert has_threads(1)
        assert (counts(engines[0], 64) == 1).all()
        assert has_threads(2)
        engines.clear()  # one with threads, one whose threads were left behind
        gc.collect()
        assert has_threads(1)

    assert ends_well(use)
    assert (counts(engines[0], 64) == 1).all()

"""The lock of a GPU: checks share it, timing has it alone, and neither waits for ever."""

import threading

from kernel_gym.devices.gpu_lock import GpuLock


def _enter(lock, kind, log, name, hold):
    def run():
        with getattr(lock, kind)():
            log.append(name)
            hold.wait(10)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def _until(condition):
    pause = threading.Event()
    for _ in range(500):
        if condition():
            return True
        pause.wait(0.01)
    return False


def test_those_who_share_are_in_together_and_alone_waits(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    lock, log, hold, last = GpuLock("gpu"), [], threading.Event(), threading.Event()
    readers = [_enter(lock, "shared", log, f"reader {i}", hold) for i in range(2)]
    assert _until(lambda: len(log) == 2)
    writer = _enter(lock, "alone", log, "writer", last)
    late = _enter(lock, "shared", log, "late reader", last)
    assert len(log) == 2
    hold.set()
    last.set()
    for thread in (*readers, writer, late):
        thread.join(10)
    assert sorted(log) == ["late reader", "reader 0", "reader 1", "writer"]
    assert log.index("writer") >= 2


def test_gpus_have_locks_of_their_own():
    first, second = GpuLock("gpu a"), GpuLock("gpu b")
    with first.alone(), second.alone():
        assert first.state != second.state

"""Executors with workers that tests can wait for."""

import queue

import pytest


@pytest.fixture
def recording():
    """Makes an executor class with workers to wait for, which may fail to be made."""

    def recording(kind):
        class Recording(kind):
            def __init__(self, *args, failures=0, **kwargs):
                self.made, self.failures = queue.Queue(), failures
                super().__init__(*args, **kwargs)

            def _make_worker(self):
                self.failures -= 1
                if self.failures >= 0:
                    raise OSError("no room for a worker")
                worker = super()._make_worker()
                self.made.put(worker)
                return worker

        return Recording

    return recording

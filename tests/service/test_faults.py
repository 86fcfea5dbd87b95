"""The service while its disk, its database or its executor fails."""

import sqlite3
import threading
import time

import httpx
import pytest

from kernel_gym.client import Client, Submission
from kernel_gym.executors.inline import InlineExecutor
from kernel_gym.service import dispatch, slow_headers
from kernel_gym.service.slow_headers import TimedHeaders
from kernel_gym.service.store import FILE, QueueUnusable, Store
from tests.service.test_service import DEVICE, TASK


@pytest.fixture
def impatient(monkeypatch):
    """Steps that failed are repeated at once."""
    monkeypatch.setattr(dispatch, "RETRY_SECONDS", 0.02)


def hold(folder):
    """Another program that writes to the queue's file."""
    other = sqlite3.connect(folder / FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


def until(true):
    while not true():
        time.sleep(0.01)


def test_work_continues_when_the_queue_can_be_written_again(serve, impatient, tmp_path):
    gate = threading.Event()

    class Waiting(InlineExecutor):
        def _start(self, request):
            gate.wait(60)
            return super()._start(request)

    url, service = serve(Waiting(DEVICE))
    service.store._db.execute("PRAGMA busy_timeout = 20")
    with Client(url) as client:
        queued = client.submit([Submission(task=TASK, source=f"x{n}(") for n in range(3)])
        until(lambda: client.result(queued[0].id).state == "running")
        other = hold(tmp_path / "service")
        gate.set()
        until(lambda: httpx.get(f"{url}/health").status_code == 503)
        assert "locked" in httpx.get(f"{url}/health").json()["status"]
        refused = httpx.post(f"{url}/v1/evaluations", json={"task": TASK, "source": "y("})
        assert refused.status_code == 503
        assert int(refused.headers["Retry-After"]) > 0
        assert "locked" in refused.json()["detail"]
        other.execute("ROLLBACK")
        done = [client.finished(one.id) for one in queued]
        assert [one.evaluation.outcome for one in done] == ["compile_error"] * 3
        assert client.evaluate(TASK, "z(").evaluation.outcome == "compile_error"
    until(lambda: httpx.get(f"{url}/health").json()["status"] == "ok")
    assert service.store.queued == 0
    assert service.store.in_flight("anybody") == 0


def test_health_tells_that_the_executor_has_ended(serve):
    executor = InlineExecutor(DEVICE)
    url, _ = serve(executor)
    assert httpx.get(f"{url}/health").status_code == 200
    executor.trouble = "no node is left"
    answer = httpx.get(f"{url}/health")
    assert (answer.status_code, answer.json()["status"]) == (503, "no node is left")


def test_a_failed_commit_changes_no_counter(tmp_path):
    store = Store(tmp_path)
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages}")  # a full disk
    from kernel_gym.service.jobs import Job

    job = Job("1", "anybody", "key", TASK, "x" * 100_000, 0, "kernel-opt")
    with pytest.raises(sqlite3.OperationalError, match="full"):
        store.add([job], ["digest"])
    assert (store.queued, store.in_flight("anybody")) == (0, 0)
    store._db.execute("PRAGMA max_page_count = 1000000")
    store.add([job], ["digest"])
    assert store.take().id == "1"
    store.close()


@pytest.mark.parametrize(
    "content", [b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_damaged_queue_is_one_line_with_what_to_do(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(QueueUnusable, match="recover") as refusal:
        Store(tmp_path)
    assert "\n" not in str(refusal.value)


def test_one_deadline_holds_for_a_whole_batch(serve):
    gate = threading.Event()

    class Waiting(InlineExecutor):
        def _start(self, request):
            gate.wait(60)
            return super()._start(request)

    url, service = serve(Waiting(DEVICE))
    waits = []
    waited = service.wait

    async def wait(job, seconds):
        waits.append(job.id)
        if len(waits) == 3:  # all wait before the first one has ended
            gate.set()
        return await waited(job, seconds)

    service.wait = wait
    body = {"evaluations": [{"task": TASK, "source": f"x{n}("} for n in range(3)]}
    answer = httpx.post(f"{url}/v1/evaluations?wait=60", json=body, timeout=60)
    assert answer.status_code == 200
    assert len(waits) == 3


class Transport:
    """A connection of which only the end matters."""

    def __init__(self):
        self.closed = False

    def get_extra_info(self, name, default=None):
        return default

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    def write(self, data):
        pass

    def set_protocol(self, protocol):
        pass

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


def test_half_a_header_is_not_waited_for_for_ever(monkeypatch):
    import asyncio

    import uvicorn
    from uvicorn.server import ServerState

    monkeypatch.setattr(slow_headers, "MAX_HEADER_SECONDS", 0.01)

    async def app(scope, receive, send):
        await asyncio.Event().wait()

    async def play(data):
        config = uvicorn.Config(app, http=TimedHeaders)
        config.load()
        protocol = TimedHeaders(config, ServerState(), {}, asyncio.get_running_loop())
        transport = Transport()
        protocol.connection_made(transport)
        protocol.data_received(data)
        await asyncio.sleep(0.1)
        return transport.closed

    assert asyncio.run(play(b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: "))
    assert not asyncio.run(play(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"))

"""The client without a service: what it loads, and what it does when nobody answers."""

import subprocess
import sys

import httpx
import pytest

from kernel_gym.client import Client, Refused, ServiceError, Submission, Unavailable, calls
from kernel_gym.client.calls import Ask, HttpAnswer, Pause
from kernel_gym.client.wire import Info


def test_the_client_loads_nothing_heavy():
    code = (
        "import sys, kernel_gym.client\n"
        "print([n for n in ('torch', 'triton', 'scipy', 'ray', 'fastapi') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def drive(call, answers):
    """Gives a call these answers; returns its result and what it asked for."""
    asked, answer = [], None
    answers = iter(answers)
    while True:
        try:
            wanted = call.send(answer)
        except StopIteration as end:
            return end.value, asked
        asked.append(wanted)
        answer = next(answers) if isinstance(wanted, Ask) else None


INFO = Info(
    version="1", protocol_version="1", device="sim:gfx942", clock="modelled", workers=1, room=2,
    rewards=(), secret_sha256="", full_records=True,
)  # fmt: skip


def test_a_request_is_sent_again_until_it_is_answered():
    good = HttpAnswer(200, INFO.model_dump_json().encode())
    lost, busy = HttpAnswer(0, b"lost"), HttpAnswer(503, b'{"detail": "busy"}', 3.0)
    result, asked = drive(calls.info(60.0), [lost, busy, good])
    assert result == INFO
    assert [type(one) for one in asked] == [Ask, Pause, Ask, Pause, Ask]
    assert asked[3].seconds == 3.0  # as the service asked


@pytest.mark.parametrize(
    ("answer", "longest"),
    [
        (HttpAnswer(0, b"lost"), calls.MAX_ABSENCE_SECONDS),
        (HttpAnswer(503, b"busy"), calls.MAX_RETRY_SECONDS),
    ],
)
def test_a_service_that_is_started_again_soon_has_its_clients_back(answer, longest):
    good = HttpAnswer(200, INFO.model_dump_json().encode())
    _, asked = drive(calls.info(600.0), [*[answer] * 12, good])
    pauses = [one.seconds for one in asked if isinstance(one, Pause)]
    assert longest / 2 <= max(pauses) <= longest
    assert pauses[0] <= calls.FIRST_RETRY_SECONDS


def test_a_submission_keeps_its_key():
    submission = Submission(task="t", source="x")
    call = calls.submit([submission], 60.0)
    first = call.send(None)
    assert isinstance(call.send(HttpAnswer(0, b"lost")), Pause)
    assert call.send(None) == first
    assert first.body.evaluations[0].key


def test_a_refusal_is_told_at_once():
    with pytest.raises(Refused, match="status 404: no such task") as refusal:
        drive(calls.info(60.0), [HttpAnswer(404, b'{"detail": "no such task"}')])
    assert refusal.value.status == 404


def test_a_service_that_does_not_answer_is_told():
    with pytest.raises(Unavailable, match="within 0 s: lost"):
        drive(calls.info(0.0), [HttpAnswer(0, b"lost")])
    with Client("http://127.0.0.1:1", patience=0.0) as client, pytest.raises(Unavailable):
        client.info()


def test_an_answer_of_another_program_is_told():
    with pytest.raises(ServiceError, match="no Info"):
        drive(calls.info(60.0), [HttpAnswer(200, b"<html>")])


def test_a_bad_source_is_refused_here():
    with pytest.raises(ValueError, match="surrogate"):
        Submission(task="t", source="\ud800")


def test_the_client_uses_no_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    seen = []
    with Client("http://127.0.0.1:2") as client:
        client._http._transport = httpx.MockTransport(
            lambda request: seen.append(request) or httpx.Response(200, text=INFO.model_dump_json())
        )
        assert client.info() == INFO
    assert str(seen[0].url) == "http://127.0.0.1:2/v1/info"

"""The service over a socket, with its own client and the simulator."""

import hashlib
import json
import socket
import subprocess
import sys
import threading

import httpx
import pytest

from kernel_gym.client import Client, Refused, Submission
from kernel_gym.client.wire import MAX_BODY_BYTES, MAX_SOURCE_BYTES
from kernel_gym.envs.sessions import Sessions
from kernel_gym.executors import EvaluationRequest, make_executor
from kernel_gym.executors.base import TaskDiffers
from kernel_gym.executors.inline import InlineExecutor
from kernel_gym.policies.evaluate import evaluate_policy
from kernel_gym.records import Evaluation, Outcome, Stage
from kernel_gym.service.settings import SettingsError, Token, read_tokens
from kernel_gym.storage.run_store import RunStore
from kernel_gym.storage.secret import process_secret, read_secret
from kernel_gym.tasks import get_task
from tests.test_architecture import ROOT

TASK = "triton2triton/softmax"
DEVICE = "sim:gfx942"
GOOD = get_task(TASK).start_source


def token(name="trainer", **limits):
    return Token(name=name, sha256=hashlib.sha256(name.encode()).hexdigest(), **limits)


def test_a_result_is_that_of_the_executor(serve):
    url, _ = serve()
    with Client(url) as client, make_executor("inline", device=DEVICE) as executor:
        result = client.evaluate(TASK, GOOD, seed=3)
        assert result.evaluation.canonical() == executor.evaluate(TASK, GOOD, 3).canonical()
        assert result.reward == pytest.approx(0.15, abs=0.02)
        assert "Correct on every workload" in result.feedback
        assert client.info().device == DEVICE
        assert "softmax" in client.task(TASK).prompt


def test_a_batch_is_queued_whole_or_not_at_all(serve):
    url, service = serve()
    with Client(url) as client:
        good = [Submission(task=TASK, source=f"x{n}(") for n in range(3)]
        with pytest.raises(Refused, match="did you mean") as refusal:
            client.submit([*good, Submission(task=f"{TASK}x", source="x")])
        assert refusal.value.status == 404
        assert service.store.in_flight("anybody") == 0
        queued = client.submit(good)
        done = [client.finished(one.id) for one in queued]
    assert [one.evaluation.outcome for one in done] == ["compile_error"] * 3
    assert [one.id for one in done] == [one.id for one in queued]


def test_the_same_key_is_the_same_submission(serve):
    url, _ = serve()
    with Client(url) as client:
        first = client.evaluate(TASK, "x(", key="one")
        again = client.evaluate(TASK, "x(", key="one")
        assert first == again
        with pytest.raises(Refused, match="another key") as refusal:
            client.evaluate(TASK, "y(", key="one")
    assert refusal.value.status == 409


def test_events_tell_each_state(serve):
    url, _ = serve()
    with Client(url) as client:
        (queued,) = client.submit([Submission(task=TASK, source="x(")])
    with httpx.stream("GET", f"{url}/v1/evaluations/{queued.id}/events", timeout=60) as answer:
        lines = list(answer.iter_lines())
    events = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    data = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert events[-1] == "done"
    assert [one["state"] for one in data] == events
    assert data[-1]["evaluation"]["outcome"] == "compile_error"


def test_an_episode_is_that_of_a_session(serve):
    url, _ = serve()
    sources = ("x(", GOOD, GOOD)
    with Client(url) as client:
        remote = client.session(TASK, max_turns=3, seed=7)
        told = [remote.submit(source) for source in sources]
        with pytest.raises(Refused, match="over after 3") as refusal:
            remote.submit(GOOD)
    assert refusal.value.status == 422
    assert sum(step.increment for step in told) == pytest.approx(told[-1].episode_reward)
    assert told[-1].increment == 0.0
    assert [step.done for step in told] == [False, False, True]
    assert [step.outcome for step in told] == ["compile_error", "passed", "passed"]
    assert told[1].evaluation == told[2].evaluation
    assert "softmax" in remote.info.prompt


def test_sessions_go_on_after_a_restart(serve):
    url, _service = serve()
    with Client(url) as client:
        name = client.session(TASK, max_turns=2).info.id
        first = client.step(name, "x(", key="first")
    again, _ = serve()
    with Client(again) as client:
        assert client.step(name, "x(", key="first") == first
        second = client.step(name, GOOD)
    assert (second.turn, second.done) == (2, True)
    assert first.increment + second.increment == pytest.approx(second.episode_reward)


class Broken(InlineExecutor):
    """A machine that fails."""

    def _start(self, request):
        future = super()._start(request)
        record = future.result().model_dump()
        failed = Evaluation(**record | {"outcome": Outcome.INFRA, "stage": Stage.SCREEN})
        answer = type(future)()
        answer.set_result(failed)
        return answer


def test_a_masked_evaluation_is_no_number(serve):
    url, _ = serve(Broken(DEVICE))
    with Client(url) as client:
        result = client.evaluate(TASK, "x(")
        step = client.session(TASK, max_turns=1).submit("x(")
    assert result.masked
    assert result.reward is None
    assert (step.reward, step.increment, step.episode_reward, step.done) == (None,) * 3 + (True,)
    answer = httpx.post(f"{url}/v1/slime", json={"response": "x(", "label": TASK}, timeout=60)
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0


class Faulty(InlineExecutor):
    """A program with a fault."""

    def _start(self, request):
        raise ZeroDivisionError("a fault")


def test_a_fault_of_the_service_is_told_without_details(serve):
    from kernel_gym.client import ServiceError

    url, _ = serve(Faulty(DEVICE))
    with Client(url) as client, pytest.raises(ServiceError, match="failed: ZeroDivisionError"):
        client.evaluate(TASK, "x(")


def test_trainers_that_call_a_url_get_their_form(serve):
    url, _ = serve()
    body = {"query": [f"p```python\n{GOOD}```"], "prompts": ["p"], "labels": [TASK]}
    answer = httpx.post(f"{url}/v1/openrlhf", json=body, timeout=60).json()
    assert answer["rewards"] == answer["scores"] == pytest.approx(0.15, abs=0.02)
    sample = {"prompt": "p", "response": "not a kernel", "label": TASK, "other": 1}
    assert httpx.post(f"{url}/v1/slime", json=sample, timeout=60).json() == 0.02
    bad = body | {"labels": []}
    assert httpx.post(f"{url}/v1/openrlhf", json=bad, timeout=60).status_code == 422


def test_limits_of_a_token(serve):
    gate = threading.Event()

    class Waiting(InlineExecutor):
        def _start(self, request):
            gate.wait(60)
            return super()._start(request)

    tokens = (token(in_flight=2), token("daily", per_day=1))
    url, _ = serve(Waiting(DEVICE), tokens=tokens)
    with Client(url, "trainer", patience=0.1) as client:
        queued = client.submit([Submission(task=TASK, source=f"x{n}(") for n in range(2)])
        again = [Submission(task=TASK, source="x0(", key=queued[0].key)]
        assert client.submit(again)[0].id == queued[0].id  # a known key takes no place
    body = {"task": TASK, "source": "y("}
    for name, told in (("trainer", "2 submissions in flight"), ("daily", "")):
        bearer = {"Authorization": f"Bearer {name}"}
        answer = httpx.post(f"{url}/v1/evaluations", json=body, headers=bearer)
        assert answer.status_code == (429 if told else 202)
        assert told in answer.text
    answer = httpx.post(f"{url}/v1/evaluations", json=body, headers=bearer)
    assert answer.status_code == 429
    assert "1 a day" in answer.text
    assert int(answer.headers["Retry-After"]) > 0
    gate.set()


def test_a_full_queue_is_told(serve):
    url, service = serve(max_queue=1)
    body = {"evaluations": [{"task": TASK, "source": "x("}, {"task": TASK, "source": "y("}]}
    answer = httpx.post(f"{url}/v1/evaluations", json=body)
    assert answer.status_code == 503
    assert "queue is full" in answer.text
    assert answer.headers["Retry-After"]
    assert service.store.queued == 0


def test_a_service_that_stops_refuses(serve):
    url, service = serve()
    service.drain_soon()
    while httpx.get(f"{url}/health").status_code != 503:
        pass
    answer = httpx.post(f"{url}/v1/evaluations", json={"task": TASK, "source": "x("})
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({"task": "triton2triton/softmaxx", "source": "x"}, 404, "did you mean"),
        ({"task": "softmax", "source": "x"}, 404, "triton/softmax"),
        ({"task": "../../etc/passwd", "source": "x"}, 404, "unknown task"),
        ({"task": "/tmp/suite.toml", "source": "x"}, 404, "unknown task"),
        ({"task": TASK, "source": "x", "reward": "kernel_op"}, 422, "kernel-opt"),
        ({"task": TASK, "source": "x", "reward": "os:system"}, 422, "unknown reward"),
        ({"task": TASK, "source": "x", "reward": "/tmp/reward.toml"}, 422, "unknown reward"),
        ({"task": TASK, "source": "x" * (MAX_SOURCE_BYTES + 1)}, 422, "expected at most"),
        ({"task": TASK, "source": "\ud800"}, 422, "surrogate"),
        ({"task": TASK, "source": "x", "seed": -1}, 422, "seed"),
        ({"task": TASK, "source": "x", "seed": 2**63}, 422, "seed"),
        ({"task": TASK, "source": "x", "device": "cuda:0"}, 422, "device"),
        ({"task": TASK}, 422, "source"),
        ({"evaluations": []}, 422, "evaluations"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_recorded(serve, body, status, told):
    url, service = serve()
    headers = {"Content-Type": "application/json"}
    answer = httpx.post(f"{url}/v1/evaluations", content=json.dumps(body), headers=headers)
    assert answer.status_code == status
    assert told in answer.json()["detail"]
    assert len(answer.text) < 2000
    assert service.store.used("anybody") == 0


def test_bodies_are_limited_before_they_are_read(serve):
    url, _ = serve()
    long = httpx.post(f"{url}/v1/evaluations", content=b" " * (MAX_BODY_BYTES + 1))
    assert long.status_code == 413
    parts = (b" " * 2**20 for _ in range(MAX_BODY_BYTES // 2**20 + 1))  # without a length
    assert httpx.post(f"{url}/v1/evaluations", content=parts).status_code == 413
    assert httpx.post(f"{url}/v1/evaluations", content=b'{"task": "\xff"}').status_code == 422
    assert httpx.post(f"{url}/v1/evaluations", content=b"[" * 100_000).status_code == 422


def half_sent(url, body, length):
    """Sends a request, closes the connection without reading the answer."""
    host, _, port = url.removeprefix("http://").partition(":")
    head = f"POST /v1/evaluations?wait=60 HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)


def test_a_client_that_goes_away_leaves_one_result(serve):
    started, gate = threading.Event(), threading.Event()

    class Waiting(InlineExecutor):
        def _start(self, request):
            started.set()
            gate.wait(60)
            return super()._start(request)

    url, service = serve(Waiting(DEVICE))
    body = json.dumps({"task": TASK, "source": "x(", "key": "one"}).encode()
    half_sent(url, body, len(body))
    assert started.wait(60)
    gate.set()
    with Client(url) as client:
        result = client.evaluate(TASK, "x(", key="one")  # its second try finds the first one
    assert result.state == "done"
    assert service.store.used("anybody") == 1
    assert service.store.in_flight("anybody") == 0


def test_a_client_that_goes_away_in_its_request_leaves_nothing(serve):
    url, service = serve()
    body = json.dumps({"task": TASK, "source": "x("}).encode()
    half_sent(url, body, len(body) + 1)
    assert httpx.get(f"{url}/health").json()["status"] == "ok"
    assert service.store.used("anybody") == 0


def test_tokens_are_apart(serve):
    trusted, other = token("trusted", full_records=True), token("other")
    url, _ = serve(tokens=(trusted, other))
    with Client(url, "trusted") as client, Client(url, "other") as stranger:
        result = client.evaluate(TASK, GOOD)
        with pytest.raises(Refused) as refusal:
            stranger.result(result.id)
        assert refusal.value.status == 404
        shown = stranger.evaluate(TASK, GOOD).evaluation
    assert result.evaluation.seed is not None
    assert shown.seed is None
    assert all(not w.dims for w in shown.workloads if w.split != "train")
    with pytest.raises(Refused, match="shortened records"):
        make_executor(url, token="other")
    for secret in (None, "another"):
        with Client(url, secret) as nobody, pytest.raises(Refused, match="unknown token") as error:
            nobody.info()
        assert error.value.status == 401


def test_only_some_tasks_are_allowed(serve):
    url, _ = serve(tasks=(TASK,))
    with Client(url) as client:
        assert httpx.get(f"{url}/v1/tasks").json() == [TASK]
        for name in ("triton2triton/gelu", "generated:seed=1,depth=3"):
            with pytest.raises(Refused, match="unknown task"):
                client.evaluate(name, "x")


def test_metrics_and_health(serve):
    url, _ = serve()
    with Client(url) as client:
        client.evaluate(TASK, "x(")
    text = httpx.get(f"{url}/metrics").text
    assert 'kernel_gym_evaluations_total{outcome="compile_error"} 1.0' in text
    assert "kernel_gym_queued 0.0" in text
    assert httpx.get(f"{url}/health").json()["status"] == "ok"
    routes = httpx.get(f"{url}/openapi.json").json()["paths"]
    assert {"/v1/evaluations", "/v1/sessions/{name}/submit", "/health"} <= set(routes)


def test_a_cancelled_submission_is_not_evaluated(serve):
    gate = threading.Event()

    class Waiting(InlineExecutor):
        def _start(self, request):
            gate.wait(60)
            return super()._start(request)

    url, _ = serve(Waiting(DEVICE))
    with Client(url) as client:
        queued = client.submit([Submission(task=TASK, source=f"x{n}(") for n in range(4)])
        answer = httpx.delete(f"{url}/v1/evaluations/{queued[-1].id}").json()
        gate.set()
        assert answer["state"] == "cancelled"
        assert client.finished(queued[0].id).state == "done"
        assert client.result(queued[-1].id).state == "cancelled"


def test_the_executor_of_a_service_gives_the_same_episode(serve):
    url, _ = serve()
    sources = ("x(", GOOD)
    steps = []
    for executor in (url, None):
        with Sessions(executor, task=TASK, device=DEVICE, max_turns=2) as sessions:
            session = sessions.begin(seed=5)
            steps.append([session.submit(source) for source in sources])
    for there, here in zip(*steps, strict=True):
        assert there.evaluation.canonical() == here.evaluation.canonical()
        assert (there.reward, there.increment, there.feedback) == (
            here.reward,
            here.increment,
            here.feedback,
        )


def test_a_run_over_http_is_replayed_with_the_same_service(serve, tmp_path):
    from kernel_gym.analysis.replay import replay, secret_of

    url, _ = serve()
    evaluate_policy("baseline", TASK, executor=url, out=tmp_path / "run", turns=1)
    store = RunStore(tmp_path / "run")
    assert secret_of(store).sha256 == process_secret().sha256
    assert read_secret(tmp_path / "run").sha256 == process_secret().sha256
    assert set(json.loads((tmp_path / "run" / "secret.json").read_text())) == {"sha256", "service"}
    with make_executor(url) as executor:
        (replayed,) = replay(store, executor)
    assert replayed.same


def test_a_service_with_other_texts_of_a_problem_is_refused(serve):
    url, _ = serve()
    with make_executor(url) as executor:
        assert executor.evaluate(TASK, "x(", seed=0).outcome is Outcome.COMPILE_ERROR
        request = EvaluationRequest(TASK, "x(", 0, content="0" * 64)
        with pytest.raises(TaskDiffers, match=f"{TASK}: the service judged a problem with other"):
            executor._start(request).result()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "token"),
        ("[[token]]\nname = 'a'", "sha256"),
        ("[[token]]\nname = 'a'\nsha256 = 'x'", "sha256"),
        (f"[[token]]\nname = 'a'\nsha256 = '{'0' * 64}'\nrate = 1", "rate"),
        (f"[[token]]\nname = 'a'\nsha256 = '{'0' * 64}'\n" * 2, "twice"),
        ("[[token", "TOML"),
    ],
)
def test_a_bad_file_of_tokens_is_told(tmp_path, text, told):
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=told):
        read_tokens(path)


@pytest.mark.slow
def test_a_trainer_that_only_speaks_http_learns(serve):
    url, service = serve()
    program = ROOT / "examples" / "http_trainer.py"
    done = subprocess.run(
        [sys.executable, program, url], check=True, capture_output=True, text=True
    )
    *steps, best = done.stdout.splitlines()
    assert len(steps) == 8
    assert best.startswith("best: ")
    assert "import kernel_gym" not in program.read_text(encoding="utf-8")
    assert service.store.used("anybody") == 8


def test_a_port_in_use_is_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "kernel_gym", "serve", "--device", "sim:gfx942"]
        run = subprocess.run(
            [*command, "--port", str(port), "--folder", str(tmp_path / "service")],
            capture_output=True,
            text=True,
            timeout=110,
        )
    assert run.returncode == 2
    assert f"--port {port}: Address already in use; name another port" in run.stderr
    assert run.stderr.count("\n") == 1
    assert not (tmp_path / "service").exists()

"""The endpoint policy against a real HTTP server whose answers are scripted."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.tasks import get_task
from kernel_gym.training.episode import Episode
from kernel_gym.training.policies import Conversation, PolicyError, make_policy
from kernel_gym.training.policies.openai import OpenAI, Pace, Sampling
from tests.training.test_policies import TURN

TASK = get_task("triton2triton/softmax")


class Server(ThreadingHTTPServer):
    """Answers chats by repeating their last message, after the failures that are scripted."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.failures, self.seen, self.lock = [], [], threading.Lock()
        self.models = [{"id": "small"}, {"id": "large"}]
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": len(data), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        assert self.path == "/v1/models"
        self.answer(200, {"data": self.server.models})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.seen.append((self.path, body, self.headers["Authorization"]))
            failure = self.server.failures.pop(0) if self.server.failures else None
        if failure == "hang up":
            self.close_connection = True
            self.connection.close()
        elif failure:
            self.answer(*failure, **({"Retry_After": 0} if failure[0] == 429 else {}))
        else:
            content = body["messages"][-1]["content"]
            message = {"role": "assistant", "content": f"So:\n```python\n{content}\n```\n"}
            usage = {"prompt_tokens": 1000, "completion_tokens": 50}
            self.answer(200, {"choices": [{"message": message}], "usage": usage})


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    found = Server()
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def chat(text, turns=()):
    return Conversation(Episode(TASK, tuple(turns)), ({"role": "user", "content": text},))


def policy(server, **kwargs):
    return OpenAI(server.url, **{"backoff": 0.0, "tries": 4, **kwargs})


def test_replies_come_in_order_with_their_tokens_and_their_price(server):
    prices = Sampling(max_tokens=7, temperature=0.5, prompt_price=2.0, completion_price=10.0)
    replies = policy(server, sampling=prices, parallel=4).reply(
        [chat(f"x = {i}") for i in range(9)]
    )
    assert [reply.source for reply in replies] == [f"x = {i}\n" for i in range(9)]
    assert replies[0].text.startswith("So:")
    assert (replies[0].prompt_tokens, replies[0].completion_tokens) == (1000, 50)
    assert replies[0].cost == pytest.approx(0.0025)
    path, body, key = server.seen[0]
    assert (path, key) == ("/v1/chat/completions", None)
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("small", 7, 0.5)


def test_the_model_may_be_named_and_the_key_is_sent(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    make_policy(f"openai:{server.url}#large").reply([chat("x")])
    assert server.seen[0][1]["model"] == "large"
    assert server.seen[0][2] == "Bearer secret"


def test_what_passes_is_tried_again(server):
    server.failures = [(503, b"busy"), (429, {"error": {"message": "slow"}}), "hang up"]
    (reply,) = policy(server).reply([chat("x = 1")])
    assert reply.source == "x = 1\n"
    assert len(server.seen) == 4


@pytest.mark.parametrize(
    ("failures", "requests", "message"),
    [
        ([(503, b"busy")] * 9, 4, "status 503: busy"),
        ([(401, {"error": {"message": "who?"}})], 1, "status 401: who?; OPENAI_API_KEY holds"),
        ([(404, {"message": "no such model"})], 1, "status 404: no such model"),
        ([(400, {"error": "bad"})], 1, "status 400: bad"),
        ([(200, {"choices": []})], 1, "an answer without choices"),
        (["hang up"] * 9, 4, "no answer"),
    ],
)
def test_what_does_not_pass_says_why(server, failures, requests, message):
    found = policy(server)
    server.failures = failures
    with pytest.raises(PolicyError, match=message.replace("?", r"\?")):
        found.reply([chat("x")])
    assert len(server.seen) == requests


def test_a_chat_that_outgrew_the_context_ends_its_episode_alone(server, caplog):
    server.failures = [(400, {"error": {"message": "maximum context length is 10"}})]
    found = policy(server, parallel=1).reply([chat("long", [TURN]), chat("x", [TURN])])
    assert found[0] is None
    assert found[1].source == "x\n"
    assert "maximum context length is 10" in caplog.text


def test_a_server_that_is_not_there_or_serves_nothing_is_refused(server):
    with pytest.raises(PolicyError, match="no answer"):
        OpenAI("http://127.0.0.1:9/v1", tries=1)
    with pytest.raises(PolicyError, match="expected a URL"):
        make_policy("openai:localhost")
    server.models = []
    with pytest.raises(PolicyError, match="serves no model"):
        policy(server)


def test_the_pace_spreads_requests_evenly():
    now, waited = [100.0], []
    pace = Pace(120, clock=lambda: now[0], sleep=waited.append)
    for _ in range(3):
        pace.wait()
    assert waited == [0.5, 1.0]
    now[0] += 10
    pace.wait()
    assert waited == [0.5, 1.0]


def test_a_run_whose_server_fails_stops_in_one_line_and_can_be_resumed(server, tmp_path):
    suite = tmp_path / "one.toml"
    suite.write_text(f'name = "one"\nsummary = "One task."\ntasks = ["{TASK.id}"]\n')
    server.failures = [(401, {"error": "who"})]
    arguments = ["eval", "--policy", f"openai:{server.url}", "--suite", str(suite), "--turns", "1"]
    arguments += ["--device", "sim:gfx942", "--seed", "0", "--out", str(tmp_path / "run")]
    arguments += ["--executor", "inline", "--resume"]
    stopped = CliRunner().invoke(app, arguments)
    assert stopped.exit_code == 1
    assert "status 401" in stopped.stderr
    assert "--resume" in stopped.stderr
    resumed = CliRunner().invoke(app, [*arguments, "--json"])
    assert resumed.exit_code == 0
    assert json.loads(resumed.stdout)["metrics"]["usage"]["completion_tokens"] == 50

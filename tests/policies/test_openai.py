"""The endpoint policy against a real HTTP server whose answers are scripted."""

import json
import threading
import time

import pytest
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.episodes.episode import Turn
from kernel_gym.policies import Options, PolicyError, Stop, make_policy
from kernel_gym.policies.endpoint import FAILURES, TIMEOUTS, Endpoint
from kernel_gym.policies.openai import ANSWERS, OpenAI
from kernel_gym.policies.pace import DaemonPool, Pace, in_order
from kernel_gym.records import Outcome, Stage
from kernel_gym.rewards import RewardResult
from kernel_gym.storage.run_records import Sampling
from kernel_gym.storage.run_store import RunStore
from tests.policies.chat_server import GOOD, TASK, chat, completion, serving
from tests.records import failure

BAD = (200, {"choices": []})
WRONG = failure(Outcome.WRONG_VALUES, Stage.TRAIN)
TURN = Turn("x", WRONG, RewardResult(0.05), "wrong")


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serving() as running:
        yield running


def policy(server, **kwargs):
    waiting = {"first_wait": 0.001, "longest_wait": 0.002, "patience": 60.0, **kwargs}
    sampling = waiting.pop("sampling", Sampling(parallel=waiting.pop("parallel", None)))
    return OpenAI(server.url, sampling, **waiting)


def test_replies_come_in_order_with_their_tokens_and_their_price(server):
    asked = Sampling(
        max_tokens=7, temperature=0.5, prompt_price=2.0, completion_price=10.0, parallel=4
    )
    replies = policy(server, sampling=asked).reply([chat(f"x = {i}") for i in range(9)])
    assert [reply.source for reply in replies] == [f"x = {i}\n" for i in range(9)]
    assert replies[0].text.startswith("So:")
    assert (replies[0].prompt_tokens, replies[0].completion_tokens) == (1000, 50)
    assert replies[0].cost == pytest.approx(0.0025)
    assert {reply.problem for reply in replies} == {""}
    path, body, key = server.seen[0]
    assert (path, key) == ("/v1/chat/completions", None)
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("small", 7, 0.5)
    assert "top_p" not in body


def test_the_model_may_be_named_and_the_key_is_sent(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    make_policy(f"openai:{server.url}#large").reply([chat("x")])
    assert server.seen[0][1]["model"] == "large"
    assert server.seen[0][2] == "Bearer secret"


def test_options_reach_the_server(server):
    options = Options(max_tokens=9, temperature=0.0, top_p=0.5, extra={"min_p": 0.1, "n": 1})
    player = make_policy(f"reflective:no-reflector:openai:{server.url}", options)
    player.reply([chat("x")])
    body = server.seen[0][1]
    assert {name: body[name] for name in ("max_tokens", "temperature", "top_p", "min_p", "n")} == {
        "max_tokens": 9,
        "temperature": 0.0,
        "top_p": 0.5,
        "min_p": 0.1,
        "n": 1,
    }
    assert player.sampling.max_tokens == 9


def test_a_policy_refuses_options_that_it_does_not_have(tmp_path):
    with pytest.raises(PolicyError, match="'baseline' has no option 'top_p'; it draws no replies"):
        make_policy("baseline", Options(top_p=0.5))
    with pytest.raises(PolicyError, match="'hf' has no option 'parallel'; it takes max_tokens"):
        make_policy(f"hf:{tmp_path}", Options(parallel=2))


def test_the_limit_of_tokens_is_sent_by_the_name_that_the_server_wants(server):
    def refuse(body):
        refusal = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        return (400, {"error": {"message": refusal}}) if "max_tokens" in body else None

    server.refuse = refuse
    replies = policy(server, parallel=1).reply([chat("x = 1"), chat("x = 2")])
    assert [reply.source for reply in replies] == ["x = 1\n", "x = 2\n"]
    assert ["max_tokens" in body for _, body, _ in server.seen] == [True, False, False]
    assert server.seen[-1][1]["max_completion_tokens"] == 4096


def test_what_passes_is_tried_again(server):
    server.script = [(503, b"busy"), (429, {"error": {"message": "slow"}}), "hang up"]
    (reply,) = policy(server).reply([chat("x = 1")])
    assert reply.source == "x = 1\n"
    assert len(server.seen) == 4


def test_a_server_that_is_away_is_waited_for_and_says_so_once(server, caplog):
    server.script = [GOOD, *[(502, b"gone")] * 40]
    (first,) = (player := policy(server)).reply([chat("x = 1")])
    (reply,) = player.reply([chat("x = 2")])
    assert (first.source, reply.source) == ("x = 1\n", "x = 2\n")
    assert len(server.seen) == 42
    logged = [record.getMessage() for record in caplog.records]
    assert len(logged) == 1
    assert "status 502: gone; the request is sent again, for 60 s more at most" in logged[0]


def test_what_is_waited_for_is_said_in_the_words_of_who_waits(server):
    hold = threading.Event()
    server.refuse = lambda body: hold.wait(30) and None
    late = Endpoint(server.url, patience=0.1, request_timeout=0.2)
    with pytest.raises(PolicyError, match=r"of the model within 0.2 s \(--request-timeout\)$"):
        late.send("POST", "/chat/completions", {"messages": [{"content": "x"}]})
    hold.set()
    nobody = Endpoint("http://127.0.0.1:9/v1", patience=0.1)
    with pytest.raises(PolicyError, match=r"no server answers there \(Connection refused\)$"):
        nobody.send("GET", "/models")
    server.refuse, server.script = (lambda body: None), ["hang up"] * 99
    with pytest.raises(PolicyError, match="of the model: the connection to its server was lost"):
        Endpoint(server.url, patience=0.1).send("POST", "/chat/completions", {"messages": []})


def test_waits_grow_to_a_limit_and_are_not_all_alike():
    endpoint = Endpoint("http://127.0.0.1:9/v1", first_wait=1.0, longest_wait=60.0)
    waits = [[endpoint._backoff(tries) for _ in range(20)] for tries in (1, 4, 7, 10_000)]
    for longest, own in zip((1.0, 8.0, 60.0, 60.0), waits, strict=True):
        assert longest / 2 <= min(own) < max(own) <= longest


def test_not_before_the_moment_that_the_server_names(server):
    server.script = [(429, b"slow", {"Retry_After": 1})]
    before = time.monotonic()
    policy(server).reply([chat("x")])
    assert time.monotonic() - before >= 1.0
    server.script = [(429, b"slow", {"Retry_After": 10**9})]
    with pytest.raises(PolicyError, match="status 429: slow"):
        policy(server).reply([chat("x")])
    server.script = [(429, b"slow", {"Retry_After": "in a while"})]
    assert policy(server).reply([chat("x = 1")])[0].source == "x = 1\n"


@pytest.mark.parametrize(
    ("script", "requests", "message"),
    [
        ([(503, b"busy")] * 10**5, None, "status 503: busy"),
        (["hang up"] * 10**5, None, "no answer"),
        ([(401, {"error": {"message": "who?"}})], 1, "status 401: who?; OPENAI_API_KEY holds"),
        ([(404, {"message": "no such model"})], 1, "status 404: no such model"),
        ([(400, {"error": "bad"})] * 2, 2, "status 400: bad"),
        ([BAD] * 9, ANSWERS + 1, "an answer without choices"),
    ],
)
def test_what_is_wrong_for_every_chat_stops_and_says_why(server, script, requests, message):
    player = policy(server, patience=0.3)
    server.script = list(script)
    with pytest.raises(PolicyError, match=message.replace("?", r"\?")):
        player.reply([chat("x")])
    assert requests in (None, len(server.seen))


@pytest.mark.parametrize("turns", [(), (TURN,)], ids=["first", "later"])
def test_a_chat_that_does_not_fit_ends_its_episode_alone(server, caplog, turns):
    def refuse(body):
        long = body["messages"][-1]["content"] == "long"
        return (400, {"error": {"message": "maximum context length is 10"}}) if long else None

    server.refuse = refuse
    replies = policy(server, parallel=1).reply([chat("long", turns), chat("x", turns)])
    assert isinstance(replies[0], Stop)
    assert "maximum context length is 10" in replies[0].reason
    assert replies[1].source == "x\n"
    assert "maximum context length is 10" in caplog.text


def test_a_chat_on_which_the_server_always_fails_ends_its_episode_alone(server):
    server.refuse = lambda body: (500, b"bug") if "poison" in str(body) else None
    player = policy(server, parallel=2)
    replies = player.reply([chat("poison"), *(chat(f"x = {i}") for i in range(20))])
    assert isinstance(replies[0], Stop)
    assert "status 500: bug" in replies[0].reason
    assert sum("poison" in str(body) for _, body, _ in server.seen) >= FAILURES
    assert [reply.source for reply in replies[1:]] == [f"x = {i}\n" for i in range(20)]


UNUSABLE = {
    "no choice": {"choices": []},
    "no object": [1],
    "no JSON": b"<html>hello</html>",
    "a stream": b'data: {"choices": []}\n\ndata: [DONE]\n',
    "an error": {"error": {"message": "overloaded"}},
    "a number": {"choices": [{"message": {"content": 3}}]},
    "no message": {"choices": ["hello"]},
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("body", UNUSABLE.values(), ids=UNUSABLE)
def test_an_answer_that_cannot_be_used_is_asked_for_again(server, body):
    server.script = [(200, body)] * (ANSWERS - 1)
    (reply,) = policy(server).reply([chat("x = 1")])
    assert reply.source == "x = 1\n"
    assert len(server.seen) == ANSWERS


@pytest.mark.parametrize("body", UNUSABLE.values(), ids=UNUSABLE)
def test_a_chat_without_a_usable_answer_is_a_failed_attempt(server, body):
    server.script = [(200, body)] * ANSWERS
    (reply,) = policy(server).reply([chat("x = 1")])
    assert (reply.text, reply.cost) == ("", 0.0)
    assert reply.problem.startswith("The server gave ")
    assert reply.source == f"# {reply.problem}\n"
    assert "\n" not in reply.problem


ODD = {
    "tools": (
        {"content": None, "tool_calls": [{"function": {"name": "run"}}]},
        "The reply calls tools (run)",
    ),
    "thoughts": ({"content": "", "reasoning_content": "hm"}, "thoughts and no answer"),
    "refusal": ({"content": None, "refusal": "I\nwill not"}, "The model refused: I will not"),
    "empty": ({"content": []}, "The reply is empty"),
}


@pytest.mark.parametrize(("message", "problem"), ODD.values(), ids=ODD)
def test_a_reply_without_a_text_says_what_it_is_instead(server, message, problem):
    server.script = [(200, completion(**message))]
    (reply,) = policy(server).reply([chat("x")])
    assert problem in reply.problem
    assert reply.source == f"# {reply.problem}\n"
    assert reply.completion_tokens == 50


def test_content_in_parts_is_read_and_thoughts_are_no_answer(server):
    parts = [
        {"type": "thinking", "text": "```\nx = 1\n```"},
        {"type": "text", "text": "```\nx = 2\n"},
        "```\n",
        {"type": "image_url", "image_url": {"url": "data:,"}},
        7,
    ]
    server.script = [(200, completion(parts, reasoning_content="x = 3"))]
    (reply,) = policy(server).reply([chat("x")])
    assert (reply.source, reply.problem) == ("x = 2\n", "")


def test_a_reply_that_was_cut_off_is_submitted_and_says_so(server):
    server.script = [(200, completion("```\nx = ", finish_reason="length"))]
    (reply,) = policy(server).reply([chat("x")])
    assert reply.source == "x = "
    assert "cut off" in reply.problem


@pytest.mark.parametrize("count", [-1, 2**70, True, "7", 1.5, None, [1]])
def test_counts_of_tokens_that_cannot_be_are_none(server, count):
    answer = completion("x = 1")
    answer["usage"] = {"prompt_tokens": count, "completion_tokens": 4}
    server.script = [(200, answer)]
    (reply,) = policy(server).reply([chat("x")])
    assert (reply.prompt_tokens, reply.completion_tokens) == (0, 4)


def test_a_server_that_is_not_there_or_serves_nothing_is_refused(server, monkeypatch):
    monkeypatch.setattr("kernel_gym.policies.endpoint.FIRST_CONTACT", 0.05)
    with pytest.raises(PolicyError, match="no server answers there"):
        OpenAI("http://127.0.0.1:9/v1")
    with pytest.raises(PolicyError, match="expected a URL"):
        make_policy("openai:localhost")
    with pytest.raises(PolicyError, match="Failed to parse"):
        make_policy("openai:http://[x/v1")
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


def test_after_an_error_nothing_more_is_begun_and_nothing_is_waited_for():
    begun, hold = [], threading.Event()

    def work(item):
        begun.append(item)
        if item == 0:
            raise ValueError(item)
        hold.wait()

    pool = DaemonPool(work, threads=2)
    futures = [pool.submit(item) for item in range(100)]
    with pytest.raises(ValueError, match="0"):
        in_order(futures)
    hold.set()
    assert len(begun) < 100


def test_a_request_without_an_answer_in_time_is_sent_again_and_then_given_up(server):
    release = threading.Event()
    server.refuse = lambda body: "slow" in str(body) and release.wait(30) and None
    player = policy(server, request_timeout=2.0, parallel=4)
    slow, *fast = player.request([chat("slow"), *(chat(f"x = {i}") for i in range(12))])
    assert [future.result().source for future in fast] == [f"x = {i}\n" for i in range(12)]
    stop = slow.result()
    release.set()
    assert isinstance(stop, Stop)
    assert "no answer" in stop.reason
    assert sum("slow" in str(body) for _, body, _ in server.seen) == TIMEOUTS


def run(server, out, *more):
    """Evaluates the policy on one task and one turn."""
    arguments = ["eval", "--policy", f"openai:{server.url}", "--suite", "SUITE", "--turns", "1"]
    arguments += ["--device", "sim:gfx942", "--seed", "0", "--out", str(out / "run")]
    suite = out / "one.toml"
    suite.write_text(f'name = "one"\nsummary = "One task."\ntasks = ["{TASK.id}"]\n')
    arguments[arguments.index("SUITE")] = str(suite)
    return CliRunner().invoke(app, [*arguments, "--executor", "inline", "--resume", *more])


def test_a_run_whose_server_fails_stops_in_one_line_and_can_be_resumed(server, tmp_path):
    server.script = [(401, {"error": "who"})]
    stopped = run(server, tmp_path)
    assert stopped.exit_code == 1
    assert "status 401" in stopped.stderr
    assert "--resume" in stopped.stderr
    resumed = run(server, tmp_path, "--json")
    assert resumed.exit_code == 0
    assert json.loads(resumed.stdout)["metrics"]["usage"]["completion_tokens"] == 50


def test_a_run_records_how_replies_were_drawn_and_what_they_cost(server, tmp_path):
    options = ("--temperature", "0.3", "--max-tokens", "64", "--price-in", "3", "--price-out", "9")
    done = run(server, tmp_path, *options, "--parallel", "2", "--extra-body", '{"seed": 1}')
    assert done.exit_code == 0, done.output
    sampling = RunStore(tmp_path / "run").config.sampling
    assert (sampling.temperature, sampling.max_tokens, sampling.extra) == (0.3, 64, {"seed": 1})
    (record,) = RunStore(tmp_path / "run").records()
    assert record.cost == pytest.approx((1000 * 3 + 50 * 9) / 1e6)
    other = run(server, tmp_path, "--temperature", "0.4", *options[2:])
    assert other.exit_code == 2
    assert "its sampling.temperature is 0.3, not 0.4" in other.stderr
    same = run(server, tmp_path, *options, "--parallel", "9", "--extra-body", '{"seed": 1}')
    assert same.exit_code == 0
    assert len(server.seen) == 1


@pytest.mark.parametrize("text", ["{", "[1]", "3"])
def test_extra_keys_that_are_no_object_are_bad_input(server, tmp_path, text):
    refused = run(server, tmp_path, "--extra-body", text)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: --extra-body: found")
    assert server.seen == []


def test_a_prompt_that_does_not_fit_is_recorded_and_not_tried_again(server, tmp_path):
    def refuse(body):
        fits = len(str(body["messages"])) < 500
        return None if fits else (400, {"error": {"message": "too long"}})

    server.refuse = refuse
    done = run(server, tmp_path, "--json")
    assert done.exit_code == 0, done.output
    store = RunStore(tmp_path / "run")
    (end,) = store.ends()
    assert (end.task, end.turns) == (TASK.id, 0)
    assert "too long" in end.reason
    assert "1 episode ended early: the server did not answer the chat: status 400" in done.stderr
    asked = len(server.seen)
    assert run(server, tmp_path).exit_code == 0
    assert len(server.seen) == asked


def test_a_failed_attempt_is_a_record_that_says_why(server, tmp_path):
    server.script = [(200, completion(None, tool_calls=[{"function": {"name": "run"}}]))]
    done = run(server, tmp_path, "--json")
    assert done.exit_code == 0, done.output
    (record,) = RunStore(tmp_path / "run").records()
    assert "calls tools (run)" in record.problem
    assert record.evaluation.outcome != "passed"
    assert record.reward < 0.1

"""A client cannot take from others: turns, time, memory, sizes, budgets and names."""

import asyncio
import contextlib
import hashlib
import json
import threading
import tracemalloc
from concurrent.futures import Future

import httpx
import pytest
from starlette.routing import Route

from kernel_gym.client.wire import MAX_BATCH, MAX_START_BYTES, MAX_TURN_BYTES, Batch, Submission
from kernel_gym.executors.inline import InlineExecutor
from kernel_gym.service import tasks as service_tasks
from kernel_gym.service.app import make_app
from kernel_gym.service.bodies import MAX_ERRORS, MAX_STRUCTURE_BYTES, BadBody, parse_body
from kernel_gym.service.jobs import Job
from kernel_gym.service.settings import ServiceSettings, Token
from kernel_gym.service.store import Store
from kernel_gym.service.workspaces import session_of_secret, session_secret
from kernel_gym.storage.secret import RunSecret
from kernel_gym.tasks.workload import Split
from tests.records import passing, workload

TASK = "triton2triton/softmax"
DEVICE = "sim:gfx942"
MEBIBYTE = 1 << 20


def token(name, **limits):
    return Token(name=name, sha256=hashlib.sha256(name.encode()).hexdigest(), **limits)


class Answering(InlineExecutor):
    """Evaluates nothing: each submission has passed."""

    def __init__(self):
        super().__init__(DEVICE)
        self.requests = []

    def _start(self, request):
        self.requests.append(request)
        rows = (workload(speedup=2.0), workload(Split.UNSEEN, speedup=1.5))
        record = passing(2.0, 1.5).model_copy(update={"seed": request.seed, "workloads": rows})
        future = Future()
        future.set_result(record.model_copy(update={"task": request.task}))
        return future


@contextlib.asynccontextmanager
async def opened(folder, *tokens):
    """The application with its life, and a function that gives a client of a token."""
    executor = Answering()
    app = make_app(ServiceSettings(folder, tokens=tokens), executor)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)

        def client(secret):
            headers = {"Authorization": f"Bearer {secret}"}
            return httpx.AsyncClient(transport=transport, base_url="http://s", headers=headers)

        yield app, client, executor


def run(folder, *tokens):
    """Decorates a coroutine function, which is run with `app`, `client` and `executor`."""

    def play(test):
        async def playing():
            async with opened(folder, *tokens) as parts:
                return await test(*parts)

        return asyncio.run(playing())

    return play


# -- turns -----------------------------------------------------------------------------------------


def job(token, number, priority=0):
    name = f"{token}-{number}"
    return Job(name, token, name, TASK, "x", 0, "kernel-opt", priority, queued_at=float(number))


def taken(store):
    names = []
    while (one := store.take()) is not None:
        names.append(one.id)
    return names


def test_tokens_take_turns_whatever_their_priorities_are(tmp_path):
    store = Store(tmp_path)
    loud = [job("loud", n, priority=100) for n in range(1000)]
    store.add(loud, ["x"] * len(loud))
    store.add([job("quiet", n, priority=-100) for n in range(3)], ["x"] * 3)
    order = taken(store)
    assert [order.index(f"quiet-{n}") for n in range(3)] == [1, 3, 5]
    assert len(order) == 1003
    assert store.queued == 0
    store.close()


def test_priority_orders_the_submissions_of_one_token(tmp_path):
    store = Store(tmp_path)
    store.add([job("a", n, priority=n) for n in range(3)], ["x"] * 3)
    assert taken(store) == ["a-2", "a-1", "a-0"]
    store.close()


def test_counts_of_the_queue_follow_each_change(tmp_path):
    store = Store(tmp_path)
    store.add([job(name, n) for name in "ab" for n in range(2)], ["x"] * 4)
    first = store.take()
    store.queue_again(first)
    assert store.queued == 4
    store.cancel("b-1", "b")
    assert store.cancel("b-1", "a") is None
    assert store.queued == 3
    store.close()
    again = Store(tmp_path)
    assert again.queued == 3
    assert len(taken(again)) == 3
    again.close()


# -- bodies ----------------------------------------------------------------------------------------


def many_keys(size):
    """A submission with unknown keys."""
    parts, length, number = [f'{{"task": "{TASK}", "source": "x"'], 0, 0
    while length < size:
        parts.append(f',"k{number}":1')
        length += len(parts[-1])
        number += 1
    return ("".join(parts) + "}").encode()


HOSTILE = {
    "unknown keys": many_keys(7 * MEBIBYTE),
    "wrong items": b'{"evaluations":[' + b"1," * (4 * MEBIBYTE - 20) + b"1]}",
    "empty objects": b'{"evaluations":[' + b"{}," * (2 * MEBIBYTE) + b"{}]}",
    "brackets": b"[" * (8 * MEBIBYTE),
    "an open text of quotes": b'{"task":"' + b'\\"' * (4 * MEBIBYTE - 20),
    "short texts": b'{"evaluations":[' + b'"",' * (2 * MEBIBYTE) + b"1]}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_large_hostile_body_is_refused_before_it_is_parsed(tmp_path, name, monkeypatch):
    """Neither the parser nor the validator gets it, so that memory stays near its own size."""
    given = []
    for model in (Batch, Submission):
        monkeypatch.setattr(model, "model_validate", lambda value: given.append(value))

    @run(tmp_path)
    async def answer(app, client, executor):
        async with client("x") as http:
            tracemalloc.start()
            try:
                answer = await http.post("/v1/evaluations", content=HOSTILE[name])
                return answer, tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    response, peak = answer
    assert response.status_code == 422, response.text[:200]
    assert len(response.text) < 400
    assert given == []
    assert peak < 6 * len(HOSTILE[name])


def test_the_largest_honest_batch_is_taken():
    source = 'x = "[{\\",:"\n' * 2000
    batch = Batch(
        evaluations=tuple(
            Submission(task=TASK, source=source, seed=2**62, priority=-100, key=f"{n:0128}")
            for n in range(MAX_BATCH)
        )
    )
    for text in (
        batch.model_dump_json(),
        json.dumps(json.loads(batch.model_dump_json()), indent=8),
    ):
        assert parse_body(text.encode(), (Batch, Submission)) == batch


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"task": TASK, "source": "x", **{f"k{n}": 1 for n in range(3000)}}, "unknown key"),
        ({"evaluations": [{}] * (MAX_BATCH + 1)}, "257 items"),
        ({"evaluations": [{"task": TASK, "source": "x", "z": 1}]}, "evaluations.0.'z'"),
        ({"task": [[[[[[[[[1]]]]]]]]], "source": "x"}, "brackets in each other"),
        ({"task": "x" * 10**6, "source": "x"}, "task"),
        ([], "expected an object"),
        ({"evaluations": [1] * MAX_BATCH}, "evaluations.0"),
        ({"evaluations": [{"seed": "x"}] * MAX_BATCH}, "evaluations.0.task: Field required"),
    ],
)
def test_few_errors_of_a_bad_body_are_named(body, told):
    with pytest.raises(BadBody) as raised:
        parse_body(json.dumps(body).encode(), (Batch, Submission))
    assert told in str(raised.value)
    assert str(raised.value).count(";") < MAX_ERRORS
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    "data", [b"", b"{", b"nul", b'{"task": "\xff"}', b'{"a": 1' + b"0" * 5000 + b"}", b"\\", b'"']
)
def test_what_is_no_json_is_refused(data):
    with pytest.raises(BadBody):
        parse_body(data, (Batch, Submission))


def test_structure_is_bounded_and_texts_are_not_structure():
    text = "[{,:" * MAX_STRUCTURE_BYTES
    body = json.dumps({"task": TASK, "source": text[: MAX_STRUCTURE_BYTES * 3]}).encode()
    assert parse_body(body, (Batch, Submission)).source == text[: MAX_STRUCTURE_BYTES * 3]
    with pytest.raises(BadBody, match="outside of its texts"):
        parse_body(b"[" + b"1," * MAX_STRUCTURE_BYTES + b"1]", (Batch, Submission))


def test_bodies_are_bounded_by_route(tmp_path):
    @run(tmp_path)
    async def statuses(app, client, executor):
        async with client("x") as http:
            begun = (await http.post("/v1/sessions", json={"task": TASK})).json()["id"]
            turn = f"/v1/sessions/{begun}/submit"
            start = await http.post("/v1/sessions", content=b" " * (MAX_START_BYTES + 1))
            long = await http.post(turn, content=b" " * (MAX_TURN_BYTES + 1))
            escaped = b'{"source": "' + b"\\u0041" * (256 << 10) + b'"}'
            return start.status_code, long.status_code, (await http.post(turn, content=escaped))

    assert statuses[:2] == (413, 413)
    assert statuses[2].status_code in (200, 202), statuses[2].text


def test_bodies_are_validated_outside_of_the_event_loop(tmp_path, monkeypatch):
    places = []
    validate = Submission.model_validate

    def noted(value):
        places.append(threading.current_thread().name)
        return validate(value)

    monkeypatch.setattr(Submission, "model_validate", noted)

    @run(tmp_path)
    async def answer(app, client, executor):
        async with client("x") as http:
            return await http.post("/v1/evaluations", json={"task": TASK, "source": "x"})

    assert answer.status_code == 202
    assert len(places) == 1
    assert places[0].startswith("bodies")


def test_without_a_token_no_body_is_read(tmp_path):
    read = []

    async def parts():
        read.append(1)
        yield b"{"

    @run(tmp_path, token("known"))
    async def answer(app, client, executor):
        async with client("unknown") as http:
            return await http.post("/v1/evaluations", content=parts())

    assert answer.status_code == 401


# -- generated tasks -------------------------------------------------------------------------------


def test_generated_tasks_are_admitted_in_a_thread_once(tmp_path, monkeypatch):
    name, places = "generated:seed=5,depth=2", []
    find = service_tasks.get_task

    def noted(task):
        places.append((task, threading.current_thread().name))
        return find(task)

    monkeypatch.setattr(service_tasks, "get_task", noted)

    @run(tmp_path)
    async def answers(app, client, executor):
        async with client("x") as http:
            asked = [http.get(f"/v1/tasks/{name}") for _ in range(3)]
            return [*await asyncio.gather(*asked), await http.get(f"/v1/tasks/{name}")]

    assert [answer.status_code for answer in answers] == [200] * 4
    assert [one for one in places if one[0] == name] == [(name, places[0][1])]
    assert places[0][1].startswith("admission")


def test_refused_and_malformed_names_are_kept_as_well(tmp_path, monkeypatch):
    calls = []
    find = service_tasks.get_task
    monkeypatch.setattr(service_tasks, "get_task", lambda n: calls.append(n) or find(n))

    @run(tmp_path)
    async def statuses(app, client, executor):
        async with client("x") as http:
            path = "/v1/tasks/generated:seed=x"
            return [(await http.get(path)).status_code for _ in range(2)]

    assert statuses == [404, 404]
    assert calls == ["generated:seed=x"]


def test_few_generated_tasks_of_a_token_wait(tmp_path, monkeypatch):
    gate = threading.Event()
    find = service_tasks.get_task

    def waiting(name):
        gate.wait(60)
        return find("triton2triton/softmax")

    monkeypatch.setattr(service_tasks, "get_task", waiting)

    @run(tmp_path, token("greedy"), token("other"))
    async def statuses(app, client, executor):
        async with client("greedy") as greedy, client("other") as other:
            most = service_tasks.MAX_WAITING_OF_TOKEN
            path = "/v1/tasks/generated:seed={},depth=2"
            waits = [asyncio.create_task(greedy.get(path.format(n))) for n in range(most)]
            tasks = app.state.service._tasks
            while len(tasks._waiting) < most:
                await asyncio.sleep(0)
            refused = await greedy.get(path.format(99))
            health = await greedy.get("/health")
            also = asyncio.create_task(other.get(path.format(77)))
            while len(tasks._waiting) < most + 1:
                await asyncio.sleep(0)
            gate.set()
            done = await asyncio.gather(*waits, also)
            return refused, health.status_code, {answer.status_code for answer in done}

    refused, health, done = statuses
    assert (refused.status_code, health, done) == (429, 200, {200})
    assert "Retry-After" in refused.headers


# -- hidden sizes ----------------------------------------------------------------------------------


async def evaluated(http, source, seed=7):
    body = {"task": TASK, "source": source, "seed": seed}
    return (await http.post("/v1/evaluations?wait=60", json=body)).json()


def test_hidden_sizes_of_one_source_are_not_those_of_another(tmp_path):
    @run(tmp_path, token("policy"), token("trainer", full_records=True))
    async def parts(app, client, executor):
        async with client("policy") as policy, client("trainer") as trainer:
            told = [await evaluated(policy, source) for source in ("a", "b", "a")]
            full = [await evaluated(trainer, source) for source in ("a", "b")]
            for _ in range(2):
                start = {"task": TASK, "seed": 7}
                begun = (await policy.post("/v1/sessions", json=start)).json()["id"]
                for source in ("c", "d"):
                    turn = f"/v1/sessions/{begun}/submit?wait=60"
                    await policy.post(turn, json={"source": source})
            return told, full, [(one.source, one.seed) for one in executor.requests]

    told, full, requests = parts
    hidden = [w for one in told for w in one["evaluation"]["workloads"] if w["split"] != "train"]
    assert hidden
    assert all(w["speedup"] is w["speedup_low"] is None for w in hidden)
    assert [one["evaluation"]["seed"] for one in told] == [None] * 3
    assert [one["evaluation"]["seed"] for one in full] == [7, 7]
    assert full[0]["evaluation"]["workloads"][1]["speedup"] == 1.5
    # What is sent again with the same seed is the same evaluation, which the executor keeps.
    assert [source for source, seed in requests if seed != 7] == ["a", "b", "c", "d"]
    assert len({seed for _, seed in requests if seed != 7}) == 4


# -- workspaces ------------------------------------------------------------------------------------


def test_a_token_of_a_session_is_good_for_nothing_else(tmp_path):
    @run(tmp_path, token("person", full_records=True), token("stranger"))
    async def parts(app, client, executor):
        async with client("person") as person, client("stranger") as stranger:
            begun = [
                (await person.post("/v1/sessions", json={"task": TASK, "max_turns": 2})).json()[
                    "id"
                ]
                for _ in range(2)
            ]
            own, other = begun
            free = await evaluated(person, "free")
            assert (await stranger.post(f"/v1/sessions/{own}/token")).status_code == 404
            secret = (await person.post(f"/v1/sessions/{own}/token")).json()["token"]
        async with client(secret) as agent:
            turns = [
                await agent.post(f"/v1/sessions/{own}/submit?wait=60", json={"source": source})
                for source in ("a", "b", "c")
            ]
            first = turns[0].json()
            allowed = [
                (await agent.get(f"/v1/sessions/{own}")).status_code,
                (await agent.get(f"/v1/evaluations/{first['id']}")).status_code,
            ]
            beside = {
                "begin": await agent.post("/v1/sessions", json={"task": TASK}),
                "evaluate": await agent.post("/v1/evaluations", json={"task": TASK, "source": "x"}),
                "cancel": await agent.delete(f"/v1/evaluations/{first['id']}"),
                "task": await agent.get(f"/v1/tasks/{TASK}"),
                "token": await agent.post(f"/v1/sessions/{own}/token"),
                "slime": await agent.post("/v1/slime", json={"response": "x", "label": TASK}),
                "openrlhf": await agent.post("/v1/openrlhf", json={}),
            }
            not_its_own = [
                await agent.get(f"/v1/sessions/{other}"),
                await agent.post(f"/v1/sessions/{other}/submit", json={"source": "x"}),
                await agent.get(f"/v1/evaluations/{free['id']}"),
                await agent.get(f"/v1/evaluations/{free['id']}/events"),
            ]
        return turns, allowed, beside, not_its_own, app.state.service.store.used("person")

    turns, allowed, beside, not_its_own, used = parts
    assert [turn.status_code for turn in turns] == [200, 200, 422]
    assert turns[0].json()["evaluation"]["seed"] is None
    assert allowed == [200, 200]
    assert {name: answer.status_code for name, answer in beside.items()} == dict.fromkeys(
        beside, 403
    )
    assert [answer.status_code for answer in not_its_own] == [404] * 4
    assert used == 3


def test_tokens_of_sessions_are_forged_by_nobody():
    secret, other = RunSecret.fresh(), RunSecret.fresh()
    text = session_secret(secret, "ab12")
    assert session_of_secret(secret, text) == "ab12"
    for forged in (text[:-1], text + "0", text.replace("ab12", "ab13"), "workspace-", "\u00e9", ""):
        assert session_of_secret(secret, forged) is None
    assert session_of_secret(other, text) is None


def test_a_token_of_a_session_ends_with_the_token_that_began_it(tmp_path):
    async def issued(app, client, executor):
        async with client("person") as person:
            begun = (await person.post("/v1/sessions", json={"task": TASK})).json()["id"]
            return begun, session_secret(executor.secret, begun)

    name, secret = run(tmp_path, token("person"))(issued)

    @run(tmp_path, token("another"))
    async def status(app, client, executor):
        async with client(secret) as agent:
            return (await agent.get(f"/v1/sessions/{name}")).status_code

    assert status == 401


# -- names of others -------------------------------------------------------------------------------

NEEDS_NO_NAME = {
    "/health", "/metrics", "/v1/info", "/v1/tasks", "/v1/tasks/{name:path}", "/v1/evaluations",
    "/v1/sessions", "/v1/openrlhf", "/v1/slime", "/openapi.json", "/docs", "/redoc",
    "/docs/oauth2-redirect",
}  # fmt: skip
OPEN = {"/health", "/metrics", "/openapi.json", "/docs", "/redoc", "/docs/oauth2-redirect"}


def routes(app):
    return [(m, r.path) for r in app.routes if isinstance(r, Route) for m in sorted(r.methods)]


def test_every_route_hides_what_belongs_to_others(tmp_path):
    """A route that is added later is tried as well, or has to be listed above."""

    @run(tmp_path, token("owner"), token("stranger"))
    async def answers(app, client, executor):
        async with client("owner") as owner:
            done = await evaluated(owner, "x")
            begun = (await owner.post("/v1/sessions", json={"task": TASK})).json()["id"]
        statuses = {}
        async with client("stranger") as stranger, client("nobody") as nobody:
            for method, path in routes(app):
                if path not in OPEN:
                    address = path.replace("{name:path}", TASK).replace("{name}", done["id"])
                    statuses["unknown", method, path] = (
                        await nobody.request(method, address)
                    ).status_code
                if path in NEEDS_NO_NAME:
                    continue
                own = begun if path.startswith("/v1/sessions/") else done["id"]
                for name in (own, "0" * 32, "%00", "..%2f" + own):
                    address = path.replace("{name}", name)
                    body = {"source": "x"} if method == "POST" else None
                    answer = await stranger.request(method, address, json=body)
                    statuses[name, method, path] = answer.status_code
                    assert own not in answer.text.replace(f"{own[:64]!r}", "")
        return statuses

    named = {key: status for key, status in answers.items() if key[0] != "unknown"}
    assert len({path for _, _, path in named}) == 5
    assert set(named.values()) <= {404, 405}, named
    unknown = {status for key, status in answers.items() if key[0] == "unknown"}
    assert unknown <= {401, 405}, answers


def test_the_description_of_bodies_is_in_the_schema(tmp_path):
    @run(tmp_path)
    async def schema(app, client, executor):
        async with client("x") as http:
            return (await http.get("/openapi.json")).json()

    for path in ("/v1/evaluations", "/v1/sessions", "/v1/sessions/{name}/submit", "/v1/slime"):
        body = schema["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        assert (
            "source" in json.dumps(body)
            or "task" in json.dumps(body)
            or "label" in json.dumps(body)
        )
        assert "$ref" not in json.dumps(body)

"""Datasets out and back: what is written is read by the usual readers, and replays."""

import contextlib
import json
import random
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

from kernel_gym.analysis.replay import secret_of
from kernel_gym.cli import app
from kernel_gym.exchange.back import is_prompt, judged, submissions, tasks_of
from kernel_gym.exchange.files import read_rows, write_rows
from kernel_gym.exchange.prompts import PROMPT_FORMATS, prompt_rows
from kernel_gym.exchange.replies import REPLY_FORMATS, JudgedReply, replies, reply_rows
from kernel_gym.executors import make_executor
from kernel_gym.policies.base import Policy, Reply
from kernel_gym.policies.evaluate import evaluate_policy
from kernel_gym.records import source_digest
from kernel_gym.storage.json_lines import StoreError
from kernel_gym.storage.run_records import ReplyTokens
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import get_task, load_suite

TASK = "triton2triton/softmax"
DEVICE = "sim:gfx942"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The run of the three examples: wrong, right and better."""
    folder = tmp_path_factory.mktemp("run") / "run"
    evaluate_policy("examples", TASK, device=DEVICE, executor="inline", out=folder)
    return RunStore(folder)


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
@pytest.mark.parametrize("kind", PROMPT_FORMATS)
def test_prompts_are_read_by_datasets(kind, suffix, tmp_path):
    datasets = pytest.importorskip("datasets")
    path = tmp_path / f"prompts{suffix}"
    rows = prompt_rows([get_task(TASK), get_task("torch2triton/gelu")], kind, DEVICE)
    write_rows(path, rows)
    loader = {"parquet": "parquet", "jsonl": "json"}[suffix[1:]]
    data = datasets.load_dataset(
        loader, data_files=str(path), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert len(data) == 2
    row = data[0]
    text = row["code"] if "code" in row else (row.get("prompt") or row["messages"])[0]["content"]
    assert "softmax" in text
    assert read_rows(path) == rows


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
@pytest.mark.parametrize("kind", PROMPT_FORMATS)
def test_prompts_come_back_as_a_suite(kind, suffix, tmp_path):
    names = ["torch2triton/gelu", TASK]
    path, suite = tmp_path / f"prompts{suffix}", tmp_path / "prompts.toml"
    write_rows(path, prompt_rows([get_task(name) for name in names], kind, DEVICE))
    done = CliRunner().invoke(app, ["import", str(path)])
    assert done.exit_code == 0, done.output
    assert [task.id for task in load_suite(suite).tasks] == names


FOREIGN = {"code": "import torch\n", "level": 1, "name": "1_Square", "problem_id": 1}


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (FOREIGN, "kernel-gym new"),
        ({"prompt": "p"}, "expected a column 'task'"),
        ({"prompt": "p", "task": 7}, "expected a column 'task'"),
        ({"prompt": "p", "reward_model": "x"}, "found str in 'reward_model'"),
        ({"prompt": "p", "task": f"{TASK}x"}, "did you mean"),
    ],
)
def test_a_prompt_without_its_fields_is_told_and_no_suite_is_written(row, told, tmp_path):
    with pytest.raises((StoreError, KeyError), match=told):
        tasks_of([row])
    path = tmp_path / "prompts.jsonl"
    path.write_text(json.dumps(row))
    done = CliRunner().invoke(app, ["import", str(path)])
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert not (tmp_path / "prompts.toml").exists()


@pytest.mark.parametrize("task", [TASK, "torch2triton/layer_norm"])
def test_a_row_of_kernelbench_is_a_module_that_computes_the_reference(task):
    (row,) = prompt_rows([get_task(task)], "kernelbench", DEVICE)
    scope = {}
    exec(row["code"].replace("Scale.FULL", "Scale.SIM"), scope)
    torch.manual_seed(0)
    inputs = scope["get_inputs"]()
    output = scope["Model"](*scope["get_init_inputs"]())(*inputs)
    problem = get_task(task).problem
    expected = problem.oracle(*inputs)[0]
    torch.testing.assert_close(output.double(), expected, atol=1e-2, rtol=1e-2)
    assert (row["name"], row["level"], row["problem_id"]) == (problem.name, problem.level, 1)


def test_rows_of_apex_have_its_columns(store):
    row, *_ = reply_rows(store, "apex", "right")
    assert {"prompt", "response", "score", "kernel_type", "task_id"} < set(row)
    assert (row["task_id"], row["kernel_type"]) == (TASK, "softmax")
    assert row["score"] > 0
    del row["evidence"]  # as Apex writes it
    (stored,) = submissions([row])
    assert stored.source == row["response"].removesuffix("\n") or stored.source == row["response"]


def test_prompts_are_read_by_the_dataset_of_verl(tmp_path):
    module = pytest.importorskip("verl.utils.dataset.rl_dataset")
    from omegaconf import OmegaConf

    path = tmp_path / "prompts.parquet"
    write_rows(path, prompt_rows([get_task(TASK)], "verl", DEVICE))
    config = OmegaConf.create(
        {"cache_dir": str(tmp_path), "filter_overlong_prompts": False, "max_prompt_length": 8000}
    )
    dataset = module.RLHFDataset(str(path), tokenizer=None, config=config)
    assert len(dataset) == 1
    row = dataset.dataframe[0]
    assert row["reward_model"]["ground_truth"] == TASK
    assert row["extra_info"]["tools_kwargs"]["submit_kernel"]["create_kwargs"]["task"] == TASK


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
@pytest.mark.parametrize("kind", REPLY_FORMATS)
def test_rows_of_a_run_replay(kind, suffix, store, tmp_path):
    path = tmp_path / f"rows{suffix}"
    write_rows(path, reply_rows(store, kind))
    stored = submissions(read_rows(path))
    with make_executor("local", device=DEVICE, workers=2, secret=secret_of(store)) as executor:
        results = list(judged(stored, executor))
    assert [what for _, _, what in results] == [""] * len(stored)
    assert {one.source for one in stored} == {store.source(r) for r in store.records()}


SOURCE = "def softmax(x):\n    return x\n"
REPLY = f"Here it is.\n```python\n{SOURCE}```\n"


@pytest.mark.parametrize(
    "row",
    [
        {"input": "p", "output": REPLY, "gts": TASK, "score": 0.1, "step": 3},
        {
            "input_prompt": "p", "output_response": REPLY, "score": [0.0, 0.1],
            "env_class": "kernel_gym", "env_extras": {"task": TASK}, "data_source": "kernel-gym",
        },
        {"prompt": "p", "response": REPLY, "task_id": TASK, "score": 0.1},
        {"messages": [{"role": "assistant", "content": REPLY}], "task": TASK},
    ],
    ids=["verl", "skyrl", "apex", "messages"],
)  # fmt: skip
def test_replies_that_a_trainer_wrote_are_read(row, tmp_path):
    assert not is_prompt(row)
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row))
    (stored,) = submissions(read_rows(path))
    assert (stored.task, stored.source, stored.evidence) == (TASK, SOURCE, {})


def test_a_later_turn_has_the_feedback_that_it_answered(store):
    rows = reply_rows(store, "messages")
    assert [len(row["messages"]) for row in rows] == [2, 4, 6]
    assert [row["reward"] for row in rows] == [record.reward for record in store.records()]
    last = rows[-1]["messages"]
    assert [message["role"] for message in last] == ["user", "assistant"] * 3
    assert last[:2] == rows[0]["messages"]
    first = store.records()[0].evaluation
    assert str(first.outcome).split("_")[0] in last[2]["content"].lower()
    (verl,) = [row for row in reply_rows(store, "verl") if row["extra_info"]["index"] == 2]
    assert verl["prompt"] == last[:-1]


TOKENS = ReplyTokens(prompt_ids=(1, 2), ids=(3, 4), logprobs=(-0.5, -0.25))


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
@pytest.mark.parametrize("kind", ["messages", "verl"])
def test_what_was_written_is_read_back(kind, suffix, store, tmp_path):
    written = [replace(reply, tokens=None) for reply in replies(store)]
    written[1] = replace(written[1], tokens=TOKENS)
    path = tmp_path / f"rows{suffix}"
    write_rows(path, list(REPLY_FORMATS[kind](written)))
    for stored, reply in zip(submissions(read_rows(path)), written, strict=True):
        assert (stored.task, stored.source) == (reply.record.task, reply.source)
        assert (stored.messages, stored.tokens) == (reply.messages, reply.tokens)
        assert stored.reward == reply.record.reward


def test_tokens_of_a_run_are_in_its_rows(tmp_path):
    class Writer(Policy):
        def reply(self, conversations):
            return [Reply("x", "def softmax(x):\n    return x\n", tokens=TOKENS)]

    folder = tmp_path / "run"
    evaluate_policy(Writer(), TASK, device=DEVICE, executor="inline", turns=1, out=folder)
    (row,) = reply_rows(RunStore(folder), "messages")
    assert row["prompt_token_ids"] == [1, 2]
    assert (row["response_token_ids"], row["response_logprobs"]) == ([3, 4], [-0.5, -0.25])


@pytest.mark.parametrize(
    "columns",
    [
        {"response_token_ids": [1]},
        {"prompt_token_ids": "x", "response_token_ids": [1], "response_logprobs": [0.0]},
        {"prompt_token_ids": [], "response_token_ids": [1], "response_logprobs": []},
    ],
)
def test_tokens_that_do_not_fit_are_told(columns):
    row = {"messages": [{"role": "assistant", "content": "x"}], "task": TASK, **columns}
    with pytest.raises(StoreError, match="row 1: "):
        submissions([row])


def test_pairs_have_intervals_that_are_apart(store):
    rows = reply_rows(store, "preferences")
    for row in rows:
        low, high = row["evidence_rejected"], row["evidence_chosen"]
        assert (low["speedup"] or 0.0) < high["speedup_low"]
    assert {row["evidence_rejected"]["turn"] for row in rows} >= {1}


def test_filters(store):
    kept = {only: len(reply_rows(store, "messages", only)) for only in ("all", "right", "gain")}
    assert kept["all"] == 3
    assert kept["gain"] <= kept["right"] < kept["all"]


def test_evidence_hides_what_policies_must_not_see(store):
    text = json.dumps(reply_rows(store, "messages"))
    for record in store.records():
        for workload in record.evaluation.workloads:
            if workload.split != "train":
                assert json.dumps(workload.dims)[1:-1] not in text


def test_a_changed_row_is_told(store):
    (row, *_) = reply_rows(store, "messages", "right")
    changed = json.loads(json.dumps(row))
    changed["messages"][-1]["content"] += "\n```python\ndef softmax(x):\n    return x\n```\n"
    with pytest.raises(StoreError, match="not the one that its evidence"):
        submissions([changed])
    other = json.loads(json.dumps(row))
    other["evidence"]["record_sha256"] = "0" * 64
    with make_executor("inline", device=DEVICE, secret=secret_of(store)) as executor:
        ((_, _, what),) = judged(submissions([other]), executor)
    assert what == "the record has another hash"
    with (
        make_executor("inline", device=DEVICE) as executor,
        pytest.raises(StoreError, match="was drawn with the secret"),
    ):
        list(judged(submissions([row]), executor))


KNOWN = dict.fromkeys(("outcome", "record_sha256", "source_sha256", "secret_sha256"), "")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"messages": [{"role": "assistant", "content": "x"}]}, "expected a column 'task'"),
        ({"messages": [], "task": TASK}, "found no chat"),
        ({"messages": [{"role": "user", "content": "x"}], "task": TASK}, "found no reply"),
        ({"task": TASK}, "found no reply"),
        ({"task_id": TASK}, "found no reply"),
        ({"gts": TASK, "output": None}, "found no reply"),
        ({"task": TASK, "response": 7}, "found no reply"),
        ({"task": TASK, "response": "x", "extra_info": "y"}, "found str in 'extra_info'"),
        ({"task": TASK, "response": "x", "evidence": "y"}, "found str as evidence"),
        ({"task": TASK, "response": "x", "evidence": {}}, "found None as 'outcome'"),
        ({"task": TASK, "response": "x", "evidence": {**KNOWN, "seed": "x"}}, "'x' as 'seed'"),
        ({"task_id": None, "response": "x"}, "expected a column 'task'"),
        ({"messages": [{"role": "assistant", "content": "x"}], "task": f"{TASK}x"}, "did you mean"),
    ],
)
def test_a_row_without_its_fields_is_told(row, told):
    with pytest.raises((StoreError, KeyError), match=told):
        submissions([row])


@pytest.mark.parametrize("content", [b"{", b"[1]\n", b"\xff\n"])
def test_a_malformed_file_is_told(content, tmp_path):
    for suffix in (".jsonl", ".parquet"):
        path = tmp_path / f"rows{suffix}"
        path.write_bytes(content)
        with pytest.raises(StoreError, match="found"):
            read_rows(path)
    with pytest.raises(StoreError, match="no such file"):
        read_rows(tmp_path / "no.jsonl")


def test_lines_end_at_line_feeds_alone(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": "one\u2028two\x85three"}\r\n\n{"a": "four"}', encoding="utf-8")
    assert read_rows(path) == [{"a": "one\u2028two\x85three"}, {"a": "four"}]


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_parquet_file_is_told(seed, tmp_path):
    path, rng = tmp_path / "rows.parquet", random.Random(seed)
    write_rows(path, [{"a": "x" * 50, "b": {"c": 1}}] * 20)
    content = bytearray(path.read_bytes())
    for _ in range(4):
        content[rng.randrange(len(content))] = rng.randrange(256)
    path.write_bytes(content)
    with contextlib.suppress(StoreError):  # every other error fails
        read_rows(path)


SOURCES = {
    "fences": '"""Use:\n```python\nsoftmax(x)\n```\n"""\n',
    "carriage returns": "import torch\r\n",
    "no last line feed": "import torch",
    "a lone surrogate": "# \udc80\n",
}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_comes_back_to_the_byte(kind, store, tmp_path):
    record = next(iter(store.records()))
    source = SOURCES[kind]
    evaluation = record.evaluation.model_copy(update={"source_sha256": source_digest(source)})
    reply = JudgedReply(
        record.model_copy(update={"evaluation": evaluation}),
        source,
        ({"role": "user", "content": ""},),
    )
    (row,) = REPLY_FORMATS["messages"]([reply])
    write_rows(tmp_path / "rows.jsonl", [row])
    (stored,) = submissions(read_rows(tmp_path / "rows.jsonl"))
    assert stored.source == source


@pytest.mark.parametrize("seed", ["9" * 5000, "-1", "\u0663", "1e3"])
def test_a_seed_that_is_none_is_told(seed, store):
    (row, *_) = reply_rows(store, "messages")
    with pytest.raises(StoreError, match="as 'seed'"):
        submissions([row | {"evidence": row["evidence"] | {"seed": seed}}])

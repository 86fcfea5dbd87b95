"""The corpus of graphs: its split, its pairs, and the dataset that the command writes."""

import itertools
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.episodes.conversation import PROMPTS, graph_prompt
from kernel_gym.tasks import get_task
from kernel_gym.training import graph_corpus
from kernel_gym.training.config import read_config
from kernel_gym.training.corpus import CorpusError
from kernel_gym.training.graph_corpus import (
    GraphSplit,
    admitted_tasks,
    draw_pairs,
    graph_of,
    held_out_pair,
    held_out_tasks,
    split_of,
    syntax_digest,
)

CONFIG = Path(__file__).parents[2] / "kernel_gym/training/configs/writer_gpu.toml"


@pytest.fixture(scope="module")
def pairs():
    return draw_pairs(150, 4, 0, graph_prompt("sim:gfx942"))


def names(task):
    return [step.op.name for step in graph_of(task).steps]


def test_pairs_are_the_same_for_a_seed_and_have_a_tree_of_their_own(pairs):
    prompt = graph_prompt("sim:gfx942")
    assert draw_pairs(150, 4, 0, prompt) == pairs
    assert draw_pairs(150, 4, 1, prompt) != pairs
    assert len({syntax_digest(row.source) + row.prompt for row in pairs}) == len(pairs)
    assert {row.structure for row in pairs} == {"whole", "persistent", "chunks"}


def test_no_held_out_pair_or_chain_is_in_training(pairs):
    follow = {pair for row in pairs for pair in itertools.pairwise(names(row.task))}
    assert not any(held_out_pair(*pair) for pair in follow)
    chains = {tuple(names(row.task)) for row in pairs}
    held_out = held_out_tasks(8, 4)
    assert not chains & {tuple(names(task)) for task in held_out}
    assert [split_of(graph_of(task)) for task in held_out] == (
        [GraphSplit.HELD_OUT_GRAPH] * 4 + [GraphSplit.HELD_OUT_PAIR] * 4
    )
    assert any(held_out_pair(*pair) for pair in itertools.pairwise(names(held_out[-1])))


def test_shards_of_several_processes_give_one_corpus_without_repeats(monkeypatch, pairs):
    monkeypatch.setattr(graph_corpus, "SHARD", 100)
    prompt = graph_prompt("sim:gfx942")
    drawn = draw_pairs(150, 4, 0, prompt)
    assert drawn[:75] == pairs[:75]
    assert len({syntax_digest(row.source) + row.prompt for row in drawn}) == 150


def test_a_share_of_the_pairs_is_bound_to_the_widest_row_of_the_prompt():
    rows = draw_pairs(150, 4, 0, graph_prompt("sim:gfx942"), bound=0.3)
    bound = [row for row in rows if row.structure == "bound"]
    assert 20 < len(bound) < 70
    for row in bound:
        widest = max(int(size.split()[-1]) for size in row.prompt.splitlines()[0].split(","))
        block = row.schedule["size"]
        assert block // 2 < widest <= block
        assert f"BLOCK={block}, " in row.source


def test_an_exhausted_space_is_named(monkeypatch):
    monkeypatch.setattr(graph_corpus, "MAX_REPEATS", 0)
    with pytest.raises(CorpusError, match=r"found \d+ different kernels, expected 3000"):
        draw_pairs(3000, 2, 0, lambda task: "")


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        ("def f(a):\n  return a[1:]\n", "def g(b):  # other\n    return b[1:]", True),
        ("x[1:]", "x[:1]", False),
        ("a = b + b", "a = b + c", False),
        ("f(k=1)", "f(j=1)", False),
        ("x.sum()", "x.max()", False),
        ("min(a, b)", "max(a, b)", False),
    ],
)
def test_a_syntax_tree_counts_up_to_names(first, second, equal):
    assert (syntax_digest(first) == syntax_digest(second)) is equal


def test_the_tasks_of_the_configurations_are_those_that_the_rule_draws():
    config = read_config(CONFIG)
    held_out, half = config.tasks.held_out, len(config.tasks.held_out) // 2
    split_at = {
        GraphSplit.TRAIN: config.tasks.train,
        GraphSplit.HELD_OUT_GRAPH: held_out[:half],
        GraphSplit.HELD_OUT_PAIR: held_out[half:],
    }
    for split, tasks in split_at.items():
        assert {split_of(graph_of(task)) for task in tasks} == {split}
        assert list(tasks[:4]) == admitted_tasks(split, 4, config.corpus.max_depth)


def test_a_prompt_has_the_sizes_and_a_line_for_each_step():
    task = get_task("generated:seed=1778,depth=3")
    lines = PROMPTS["graph"]("sim:gfx942")(task).splitlines()
    assert lines[1:] == [
        "h1 = layer_norm(h0, w1, b1, 1e-5)",
        "h2 = mul_x(h1, h0)",
        "h3 = layer_norm(h2, w3, b3, 1e-5)",
    ]
    assert lines[0].startswith("float16 ")
    assert lines[0].count(",") == 3
    with pytest.raises(ValueError, match="has no graph"):
        PROMPTS["graph"]("sim:gfx942")(get_task("triton2triton/softmax"))


def test_the_command_writes_a_dataset_with_a_card(tmp_path):
    arguments = ["corpus", str(tmp_path), "--pairs", "3", "--held-out", "2", "--judge", "1"]
    result = CliRunner().invoke(app, [*arguments, "--workers", "1", "--max-depth", "2"])
    assert result.exit_code == 0, result.output
    train = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text().splitlines()]
    held_out = [json.loads(line) for line in (tmp_path / "held_out.jsonl").read_text().splitlines()]
    assert [row["outcome"] for row in (*train, *held_out)] == ["passed", None, None] + [
        "passed"
    ] * 2
    assert [message["role"] for message in train[0]["prompt"] + train[0]["completion"]] == [
        "user",
        "assistant",
    ]
    card = (tmp_path / "README.md").read_text()
    assert "| train | 3 |" in card
    assert "| test | 2 | 2 | 2 | 2 |" in card
    assert [row["task"] for row in held_out] == held_out_tasks(2, 2)
    result = CliRunner().invoke(app, ["corpus", str(tmp_path), "--pairs", "0"])
    assert result.exit_code == 2
    assert "expected --pairs or --inductor" in result.output


def test_more_graphs_than_there_are_is_an_error(monkeypatch):
    monkeypatch.setattr(graph_corpus, "MAX_REPEATS", 0)
    with pytest.raises(CorpusError, match=r"found \d+ graphs \(train\), expected 500"):
        admitted_tasks(GraphSplit.TRAIN, 500, 2)

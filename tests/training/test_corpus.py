"""The corpus: drawn from templates, evaluated, kept when right, written and read back."""

import json
import re

import pytest

from kernel_gym.episodes.conversation import LaunchPrompt, brief_prompt
from kernel_gym.episodes.edits import STARTS, submission
from kernel_gym.episodes.episode import Episode
from kernel_gym.executors import make_executor
from kernel_gym.policies import ScheduleSearch
from kernel_gym.rewards import get_reward
from kernel_gym.tasks import get_task
from kernel_gym.training.corpus import CorpusError, generate, read_corpus, write_corpus
from kernel_gym.training.scoring import Scorer, draw_seed

TASK, OTHER = "torch2triton/gelu", "torch2triton/swiglu"


def test_the_search_submits_each_variant_once_in_an_order_of_its_own():
    orders = [[v.source for v in ScheduleSearch(seed).order(episode())] for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert len(set(orders[0])) == len(orders[0])
    assert ScheduleSearch(0).submit(episode()) == orders[0][0]


def test_the_search_has_nothing_for_hip():
    assert ScheduleSearch().submit(Episode(get_task("hip2hip/softmax"))) is None


def episode():
    return Episode(get_task(TASK))


def test_a_corpus_has_what_was_found_and_survives_its_file(tmp_path):
    with make_executor("inline", device="sim:gfx942", seed=0) as executor:
        scorer = Scorer(executor, get_reward(), tmp_path)
        rows = generate(scorer, [TASK, OTHER], 2, 0, brief_prompt("sim:gfx942"))
        assert [row.task for row in rows] == [TASK, TASK, OTHER, OTHER]
        evaluation = executor.evaluate(TASK, rows[0].source, draw_seed(0, "corpus"))
    assert rows[0].reward == get_reward()(evaluation).value
    assert rows[0].speedup == evaluation.speedup
    assert rows[0].clock == "modelled"
    write_corpus(tmp_path / "corpus.jsonl", rows)
    assert read_corpus(tmp_path / "corpus.jsonl") == rows


def test_a_corpus_of_edits_has_what_each_reply_answers(tmp_path):
    task = "triton2triton/row_sum"
    with make_executor("inline", device="sim:gfx942", seed=0) as executor:
        scorer = Scorer(executor, get_reward(), tmp_path)
        rows = generate(scorer, [task], 2, 0, LaunchPrompt("sim:gfx942"))
        with pytest.raises(CorpusError, match="'triton2triton/gelu' has no launch with BLOCK"):
            generate(scorer, ["triton2triton/gelu"], 2, 0, LaunchPrompt("sim:gfx942"))
    assert submission(Episode(get_task(task)), rows[0].reply) == rows[0].source
    assert len(rows) == 2 * STARTS
    assert [f"BLOCK={row.schedule['BLOCK']}" in row.source for row in rows] == [True] * len(rows)
    assert all(re.search(r"SEARCH\n(.*)\n", row.reply)[1] in row.prompt for row in rows)


@pytest.mark.parametrize(
    "row",
    [
        {
            "prompt": [{"role": "user", "content": "write"}],
            "completion": [{"role": "assistant", "content": "x = 1\n"}],
            "structure": "whole",
            "speedup": 2.0,
        },
        {
            "messages": [
                {"role": "user", "content": "write"},
                {"role": "assistant", "content": "Here:\n```python\nx = 1\n```\n"},
            ],
            "reward": 0.5,
            "evidence": {"run": "secret"},
        },
    ],
)
def test_rows_of_datasets_are_read_too(tmp_path, row):
    path = tmp_path / "train.jsonl"
    path.write_text(json.dumps({"task": TASK, **row}) + "\n")
    (read,) = read_corpus(path)
    chat = [*row.get("prompt", []), *row.get("completion", []), *row.get("messages", [])]
    assert (read.task, read.prompt, read.source) == (TASK, "write", "x = 1\n")
    assert read.reply == chat[1]["content"]
    assert (read.speedup, read.reward) == (row.get("speedup"), row.get("reward"))


def test_a_chat_of_several_turns_is_no_row(tmp_path):
    chat = [{"role": role, "content": ""} for role in ("user", "assistant", "user", "assistant")]
    path = tmp_path / "train.jsonl"
    path.write_text(json.dumps({"task": TASK, "messages": chat}) + "\n")
    with pytest.raises(CorpusError, match=r"line 1.*expected a prompt and a reply"):
        read_corpus(path)
    path.write_text(json.dumps({"task": TASK, "messages": "hello"}) + "\n")
    with pytest.raises(CorpusError, match="line 1"):
        read_corpus(path)


def test_a_task_without_templates_and_a_bad_line_are_named(tmp_path):
    with make_executor("inline", device="sim:gfx942", seed=0) as executor:
        scorer = Scorer(executor, get_reward(), tmp_path)
        with pytest.raises(CorpusError, match="'hip2hip/softmax' has no templates"):
            generate(scorer, ["hip2hip/softmax"], 2, 0, brief_prompt("sim:gfx942"))
    (tmp_path / "bad.jsonl").write_text('{"task": "a/b"}\n')
    with pytest.raises(CorpusError, match="line 1, key 'source'"):
        read_corpus(tmp_path / "bad.jsonl")
    with pytest.raises(CorpusError, match="cannot be read"):
        read_corpus(tmp_path / "none.jsonl")

"""The corpus: drawn from templates, evaluated, kept when right, written and read back."""

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

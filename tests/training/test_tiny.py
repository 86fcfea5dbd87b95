"""The tokenizer of a policy that is made from nothing: its pieces, and that no text is lost."""

import re

import pytest

from kernel_gym.episodes.conversation import LaunchPrompt, graph_prompt
from kernel_gym.episodes.edits import draw_edits
from kernel_gym.episodes.rewrites import REWRITES
from kernel_gym.tasks import get_task

pytest.importorskip("transformers")
pytestmark = pytest.mark.train

TASK = get_task("triton2triton/row_sum")
_EDITS = re.compile(r"<<<<<<< SEARCH\n[\s\S]*?>>>>>>> REPLACE.*\n")


@pytest.fixture(scope="module")
def texts():
    """Prompts and replies, in turn."""
    prompt = LaunchPrompt("sim:gfx942")
    edits = [e for same in draw_edits(TASK.start_source, 40, 0, prompt.space) for e in same]
    return [text for e in edits for text in (prompt.of(TASK, e.start), e.reply)]


@pytest.fixture(scope="module")
def tokenizer(texts):
    from kernel_gym.training.tiny import make_tokenizer

    return make_tokenizer(texts, vocabulary=1024)


def test_a_text_is_read_back_as_it_was_written(tokenizer, texts):
    for text in (*texts[:200], TASK.start_source, "an unseen naïve text\n\n =======\n"):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_what_replies_share_is_one_token_a_line_and_each_number_is_one_choice(tokenizer, texts):
    lines = max(texts[1::2], key=len).splitlines(keepends=True)
    assert len(lines) == 21
    spelled = [line for line in lines if len(tokenizer.tokenize(line)) > 1]
    assert spelled == [line for line in lines if re.match(r"BLOCK=\d", line)]
    assert {"4096", "16"} <= {piece for line in texts[1::2] for piece in tokenizer.tokenize(line)}
    assert max(len(tokenizer(reply)["input_ids"]) for reply in texts[1::2]) < 40


def test_an_edit_made_everywhere_is_one_token():
    from kernel_gym.training.tiny import make_tokenizer

    same = draw_edits(TASK.start_source, 9, 0, LaunchPrompt("cuda:0").space)
    replies = [e.reply for edits in same for e in edits]
    tokenizer = make_tokenizer(replies, vocabulary=1024)
    every = [edit for edit in _EDITS.findall(REWRITES["rows"]) if edit.endswith("ALL\n")]
    assert len(every) == 10
    assert [len(tokenizer.tokenize(edit)) for edit in every] == [1] * 10
    assert max(len(tokenizer(reply)["input_ids"]) for reply in replies) < 56
    for reply in replies[:: len(same[0])]:
        assert tokenizer.decode(tokenizer(reply)["input_ids"]) == reply


def test_the_vocabulary_is_no_larger_than_asked_for(texts):
    from kernel_gym.training.tiny import make_tokenizer

    assert len(make_tokenizer(texts, vocabulary=300)) <= 300


def test_of_clauses_each_name_of_a_value_and_each_number_is_one_token():
    from kernel_gym.training.graph_corpus import draw_pairs
    from kernel_gym.training.tiny import make_tokenizer

    rows = draw_pairs(60, 3, 0, graph_prompt("sim:gfx942"))
    texts = [text for row in rows for text in (row.prompt, row.source)]
    tokenizer = make_tokenizer(texts, 2048, "clauses")
    for text in (*texts, TASK.start_source):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    pieces = tokenizer.tokenize("    h2 = h1 + m2\n")
    assert {"h1", "h2", "m2"} <= set(pieces)
    lengths = [len(tokenizer(row.source)["input_ids"]) for row in rows]
    assert sum(lengths) / len(lengths) < 250

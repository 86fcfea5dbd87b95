"""Replies that edit a kernel: where they lead, what they apply to, and those that do not apply."""

import pytest

from kernel_gym.records import Outcome, Stage
from kernel_gym.rewards import RewardResult
from kernel_gym.tasks import get_task
from kernel_gym.training.edits import EditError, apply_edits, submission
from kernel_gym.training.episode import Episode, Turn
from tests.records import failure, passing

TASK = get_task("triton2triton/row_argmax")
START = TASK.start_source


def edit(old, new):
    return f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


def test_edits_are_applied_in_order_and_may_delete():
    text = f"First:\n{edit('a', 'b')}then\n{edit('bc', 'x')}"
    assert apply_edits("ac d", text) == "x d"
    assert apply_edits("a\nc\n", "<<<<<<< SEARCH\na\n=======\n>>>>>>> REPLACE") == "\nc\n"
    assert apply_edits("f(x)", edit("f(\\1)", "y").replace("\\1", "x")) == "y"


def test_white_space_counts_only_where_the_text_occurs_as_it_is():
    source = "f(\n    a,\n    b,\n)\ng(a, b)\n"
    assert apply_edits(source, edit("a, b", "c")) == "f(\n    a,\n    b,\n)\ng(c)\n"
    assert apply_edits(source, edit("f( a, b", "f(c")) == "f(c,\n)\ng(a, b)\n"
    with pytest.raises(EditError, match=r"'a,  b' occurs 2 times"):
        apply_edits(source, edit("a,  b", "c"))
    with pytest.raises(EditError, match="occurs 0 times"):
        apply_edits(source, edit("a,b", "c"))


@pytest.mark.parametrize(("source", "times"), [("xyz", 0), ("a a", 2)])
def test_an_edit_that_does_not_apply_once_is_refused_with_the_count(source, times):
    with pytest.raises(EditError, match=f"edit 1: 'a' occurs {times} times, expected once"):
        apply_edits(source, edit("a", "b"))


def test_a_reply_without_edits_is_the_source_itself():
    assert submission(Episode(TASK), "```python\nx = 1\n```") == "x = 1\n"
    assert submission(Episode(TASK), "x = 1") == "x = 1"


def test_edits_apply_to_the_fastest_kernel_that_passed_and_at_first_to_the_start():
    episode = Episode(TASK)
    assert submission(episode, edit("BLOCK=256", "BLOCK=512")) == START.replace("=256", "=512")
    wrong = failure(Outcome.WRONG_VALUES, Stage.TRAIN)
    for source, found in (("slow", passing(1.5, 1.5)), ("fast", passing(3.0, 3.0)), ("bad", wrong)):
        episode = episode.after(Turn(source, found, RewardResult(0.0), ""))
    assert submission(episode, edit("fast", "faster")) == "faster"


def test_edits_that_do_not_apply_are_submitted_with_the_reason_and_do_not_compile():
    source = submission(Episode(TASK), edit("BLOCK=1", "BLOCK=2"))
    assert source.startswith("# edit 1: 'BLOCK=1' occurs 0 times")
    with pytest.raises(SyntaxError):
        compile(source, "reply", "exec")

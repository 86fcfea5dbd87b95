"""Replies that edit a kernel: where they lead, what they apply to, and those that do not apply."""

import itertools
import random
from collections import Counter
from keyword import iskeyword

import pytest

from kernel_gym.episodes.conversation import LaunchPrompt
from kernel_gym.episodes.edits import (
    MEASURED,
    SIMULATED,
    STARTS,
    EditError,
    _name,
    apply_edits,
    choices,
    draw_edits,
    edit_launch,
    launches,
    space_of,
    submission,
    varied_starts,
)
from kernel_gym.episodes.episode import Episode
from kernel_gym.records import Outcome, Stage
from kernel_gym.rewards import RewardResult
from kernel_gym.tasks import get_task
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


def test_an_edit_of_all_is_made_wherever_it_can_be():
    every = edit("a", "b").replace("REPLACE", "REPLACE ALL")
    assert [apply_edits(text, every) for text in ("a a", "x")] == ["b b", "x"]
    assert (
        apply_edits("a\n(a)\n", edit("a\n", "b\n").replace("REPLACE", "REPLACE ALL")) == "b\n(a)\n"
    )


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
    for source, evaluation in (
        ("slow", passing(1.5, 1.5)),
        ("fast", passing(3.0, 3.0)),
        ("bad", wrong),
    ):
        episode = episode.after(source, evaluation, RewardResult(0.0))
    assert submission(episode, edit("fast", "faster")) == "faster"


def test_edits_that_do_not_apply_are_submitted_with_the_reason_and_do_not_compile():
    source = submission(Episode(TASK), edit("BLOCK=1", "BLOCK=2"))
    assert source.startswith("# edit 1: 'BLOCK=1' occurs 0 times")
    with pytest.raises(SyntaxError):
        compile(source, "reply", "exec")


@pytest.mark.parametrize("space", [SIMULATED, MEASURED], ids=["simulated", "measured"])
def test_every_launch_edit_leads_where_it_says(space):
    names = choices(START, space)
    schedules = [dict(zip(names, one, strict=True)) for one in itertools.product(*names.values())]
    edits = [edit_launch(START, schedule) for schedule in schedules]
    numbers = len(space.blocks) * len(space.warps)
    assert len({e.source for e in edits}) == len(edits) == numbers * 2 ** len(space.rewrites)
    for e in edits:
        assert apply_edits(START, e.reply) == e.source
        (call,) = launches(e.source)
        assert call.endswith("BLOCK={BLOCK}, num_warps={num_warps})".format_map(e.schedule))
        marks = {"shaped": "tl.constexpr(a)", "rows": "_row(ROWS)"}
        assert all((marks[name] in e.source) == e.schedule[name] for name in space.rewrites)


def test_shapes_are_compiled_in_only_where_one_kernel_is_launched_once():
    assert choices(START, SIMULATED)["shaped"] == (0, 1)
    two = START.replace("@triton.jit", "@triton.jit\ndef other(x):\n    pass\n\n\n@triton.jit")
    assert choices(two, SIMULATED)["shaped"] == choices(two, MEASURED)["rows"] == (0,)
    assert choices("kernel[grid](x, BLOCK=block)", SIMULATED) == {}


def test_a_launch_that_names_its_warps_on_another_line_is_none_to_choose_for():
    launch = "kernel[grid](\n    x,\n    BLOCK=64,{}\n)"
    assert choices(launch.format(""), SIMULATED)["BLOCK"] == SIMULATED.blocks
    assert choices(launch.format(" num_warps=2"), SIMULATED)["BLOCK"] == SIMULATED.blocks
    assert choices(launch.format("\n    num_warps=2"), SIMULATED) == {}


def test_a_device_has_the_space_of_its_clock():
    assert space_of("sim:gfx942") is SIMULATED
    assert space_of("cuda:0") is space_of("rocm:0") is MEASURED


def test_each_drawn_schedule_is_reached_from_the_start_kernel_and_from_edited_ones():
    drawn = draw_edits(START, 8, 3, SIMULATED)
    assert drawn == draw_edits(START, 8, 3, SIMULATED) != draw_edits(START, 8, 4, SIMULATED)
    assert len({edits[0].source for edits in drawn}) == 8
    for edits in drawn:
        assert edits[0].start == START
        assert len({e.start for e in edits[1:]}) == STARTS - 1
        assert {apply_edits(e.start, e.reply) for e in edits[:1]} == {edits[0].source}
        names = {launches(e.source)[0].partition("[")[0] for e in edits}
        assert len(names) == STARTS
        grids = {launches(e.source)[0].partition("[")[2].partition("]")[0] for e in edits}
        assert len(grids) > STARTS // 2
        assert "rows," in grids
        assert {launches(e.source)[0].partition("]")[2] for e in edits} == {
            launches(edits[0].source)[0].partition("]")[2]
        }


@pytest.mark.parametrize("space", [SIMULATED, MEASURED], ids=["simulated", "measured"])
def test_schedules_are_drawn_with_each_choice_equally_often(space):
    count = len(space.blocks) * len(space.warps)
    schedules = [edits[0].schedule for edits in draw_edits(START, count, 3, space)]
    distinct = {tuple(one.values()) for one in schedules}
    assert count * 0.7 < len(schedules) == len(distinct) <= count
    for name, values in choices(START, space).items():
        edits = draw_edits(START, len(values), 3, space)
        assert Counter(e[0].schedule[name] for e in edits) == dict.fromkeys(values, 1)
    assert draw_edits("kernel[grid](x, BLOCK=block)", count, 3, space) == []


@pytest.mark.parametrize("seed", [429, 2784, 15237, 24266, 31244])
def test_a_kernel_is_never_renamed_to_a_keyword(seed):
    """The first words drawn from these seeds are 'if', 'as', 'is', 'or' and 'in'."""
    assert not iskeyword(_name(random.Random(seed)))


def test_starts_are_varied_by_every_block_and_edited_as_they_are():
    starts = varied_starts(START, SIMULATED)
    assert len(set(starts)) == len(starts) == len(SIMULATED.blocks)
    assert START in starts
    for start, block in zip(starts, SIMULATED.blocks, strict=True):
        assert launches(start)[0].endswith(f"(..., BLOCK={block})")
        reached = submission(Episode(TASK, start=start), edit(f"BLOCK={block}", "BLOCK=2048"))
        assert reached == START.replace("=256", "=2048")
    unread = submission(Episode(TASK, start=starts[0]), edit("BLOCK=256", "BLOCK=2048"))
    assert unread.startswith("# edit 1: 'BLOCK=256' occurs 0 times")
    assert varied_starts("kernel[grid](x, BLOCK=block)", SIMULATED) == []


def test_launches_are_found_over_several_lines_and_in_nothing_malformed():
    assert launches("def f(x):\n    k[(1, 2)](\n        x, B=1\n    )\n    g(x)\n") == [
        "k[1, 2](..., B=1)"
    ]
    assert launches("def f(:") == []


def test_the_launch_prompt_shows_the_launch_and_refuses_a_task_without():
    prompt = LaunchPrompt("sim:gfx942")
    assert "BLOCK=256)" in prompt(TASK)
    assert "BLOCK=64)" in prompt.of(TASK, START.replace("=256", "=64"))
    for name in ("torch2triton/row_argmax", "hip2hip/softmax"):
        with pytest.raises(ValueError, match="no launch to edit"):
            prompt(get_task(name))


def test_edits_cannot_grow_a_source_without_end():
    doubled = "<<<<<<< SEARCH\na\n=======\naa\n>>>>>>> REPLACE ALL\n"
    with pytest.raises(EditError, match="edit 19: the source becomes longer than any may be"):
        apply_edits("a", doubled * 60)


@pytest.mark.parametrize("piece", ["<<<<<<< SEARCH\n", "a\n=======\n", ">>>>>>> REPLACE\n"])
def test_an_edit_that_never_ends_is_no_edit(piece):
    assert apply_edits("a = 1\n", "<<<<<<< SEARCH\n" + piece * 100_000) == "a = 1\n"

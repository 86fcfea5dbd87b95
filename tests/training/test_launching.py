"""Launches, their edits, and the edits that a corpus is made of."""

import pytest

from kernel_gym.tasks import get_task
from kernel_gym.training.conversation import LaunchPrompt
from kernel_gym.training.edits import apply_edits, submission
from kernel_gym.training.episode import Episode
from kernel_gym.training.launching import (
    BLOCKS,
    STARTS,
    WARPS,
    draw_edits,
    launch_edits,
    launches,
    row_length,
    varied_starts,
)
from tests.training.test_edits import edit

TASK = get_task("triton2triton/row_argmax")
START = TASK.start_source
SEVERAL_LINES = get_task("triton2triton/huber_loss").start_source
WORDS = ("vocab", "cols", "lane")


@pytest.mark.parametrize("start", [START, SEVERAL_LINES])
def test_every_launch_edit_leads_where_it_says(start):
    edits = launch_edits(start)
    assert len({e.source for e in edits}) == len(edits) == 4 * len(BLOCKS) * len(WARPS)
    for e in edits:
        assert apply_edits(start, e.reply) == e.source
        compile(e.source, "edited", "exec")
        (call,) = launches(e.source)
        block = e.schedule["block"]
        size = f"min({block}, triton.next_power_of_2(cols))" if e.schedule["fit"] else block
        assert call.endswith(f"(..., BLOCK={size}, num_warps={e.schedule['warps']})")
        assert ("tl.constexpr(cols)" in e.source) == e.schedule["constant"]
    assert launch_edits("kernel[grid](x, BLOCK=block)") == []
    unknown = launch_edits("kernel[grid](x, BLOCK=64)")
    assert len(unknown) == len(BLOCKS) * len(WARPS)


def test_the_length_of_a_row_is_what_follows_the_last_stride():
    call = "kernel[(rows,)](x, x.stride(0), y.stride(0), {}eps, BLOCK=64)"
    assert row_length(call.format("width,\n    ")) == "width"
    assert row_length(call.format("")) == "eps"
    assert row_length("kernel[(rows,)](x, width, BLOCK=64)") == ""
    assert row_length(call.format("width, ") + "\n" + call.format("width, ")) == ""
    assert row_length("kernel[grid](x.stride(0), len(x))") == ""


def test_each_drawn_schedule_is_reached_from_the_start_kernel_and_from_edited_ones():
    drawn = draw_edits(START, 8, 3, WORDS)
    assert drawn == draw_edits(START, 8, 3, WORDS) != draw_edits(START, 8, 4, WORDS)
    assert len({edits[0].source for edits in drawn}) == 8
    for edits in drawn:
        assert len(edits) == STARTS
        assert edits[0].start == START
        assert all(e.schedule == edits[0].schedule for e in edits)
        (name,) = {launches(edits[0].source)[0].partition("[")[0]}
        others = {launches(e.source)[0].partition("[")[0] for e in edits[1:]}
        assert len(others) == STARTS - 1
        assert name not in others
        assert {row_length(e.start) for e in edits[1:]} == {"vocab", "cols"}
        for e in edits:
            changed = launches(e.source)[0].partition("]")[2]
            assert changed == launches(edits[0].source)[0].partition("]")[2].replace(
                "cols", row_length(e.start)
            )


def test_starts_are_varied_by_every_block_and_edited_as_they_are():
    starts = varied_starts(START)
    assert len(set(starts)) == len(starts) == len(BLOCKS)
    assert START in starts
    for start, block in zip(starts, BLOCKS, strict=True):
        assert launches(start)[0].endswith(f"(..., BLOCK={block})")
        reached = submission(Episode(TASK, start=start), edit(f"BLOCK={block}", "BLOCK=2048"))
        assert reached == START.replace("=256", "=2048")
    unread = submission(Episode(TASK, start=starts[0]), edit("BLOCK=256", "BLOCK=2048"))
    assert unread.startswith("# edit 1: 'BLOCK=256' occurs 0 times")
    assert varied_starts("kernel[grid](x, BLOCK=block)") == []


def test_launches_are_found_over_several_lines_and_in_nothing_malformed():
    assert launches("def f(x):\n    k[(1, 2)](\n        x, B=1\n    )\n    g(x)\n") == [
        "k[1, 2](..., B=1)"
    ]
    assert launches("def f(:") == []


def test_the_launch_prompt_shows_launch_and_length_and_refuses_a_task_without():
    prompt = LaunchPrompt("sim:gfx942")
    assert prompt(TASK) == "# Edit\nrow_argmax_kernel[rows,](..., BLOCK=256)\n# cols\n"
    assert "BLOCK=64)" in prompt.of(TASK, START.replace("=256", "=64"))
    assert prompt.of(TASK, "k[g](x, B=1)") == "# Edit\nk[g](..., B=1)\n"
    for name in ("torch2triton/row_argmax", "hip2hip/softmax"):
        with pytest.raises(ValueError, match="no launch to edit"):
            prompt(get_task(name))

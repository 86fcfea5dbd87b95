"""How tasks are put to a policy."""

from kernel_gym.episodes.conversation import brief_prompt, full_prompt
from kernel_gym.tasks import get_task
from kernel_gym.tasks.guide import guide

TASK = get_task("triton2triton/row_sum")


def test_the_full_prompt_has_the_facts_and_the_guide_of_the_device():
    text = full_prompt("sim:gfx942")(TASK)
    assert guide("gfx942", "triton", {"rows"}) in text
    assert "MI300X" in text
    assert TASK.start_source.strip() in text


def test_the_brief_prompt_has_the_workloads_of_the_device_and_no_more():
    text = brief_prompt("sim:gfx942")(TASK)
    assert text.count("rows=") >= 3
    assert guide("gfx942", "triton", {"rows"}) not in text

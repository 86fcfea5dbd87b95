"""Which part of a reply is the submission."""

import pytest

from kernel_gym.episodes.reply import extract_source
from kernel_gym.tasks import get_task

TRITON, HIP = get_task("triton2triton/softmax"), get_task("hip2hip/softmax")
USE = "import torch\n\nprint(softmax(torch.rand(4, 4)))\n"


def fenced(*blocks):
    return "So:\n" + "Then:\n".join(f"```\n{block}```\n" for block in blocks) + "Done.\n"


@pytest.mark.parametrize("task", [TRITON, HIP], ids=["triton", "hip"])
def test_an_example_of_its_use_behind_the_kernel_is_no_submission(task):
    source = task.kernel_source
    use = USE if task is TRITON else "int main() {\n  return softmax(x, y, 1, 2, nullptr);\n}\n"
    assert extract_source(fenced(source, use), task) == source
    assert extract_source(fenced(use, source), task) == source


def test_of_several_kernels_the_last_is_the_submission():
    first, last = (f"def softmax(x):\n    return {i}\n" for i in range(2))
    assert extract_source(fenced(first, last, USE), TRITON) == last


@pytest.mark.parametrize(
    "block", ["x = softmax\n", "def softmax_kernel(x):\n    pass\n", "    def softmax(x): ...\n"]
)
def test_a_block_that_only_names_the_function_does_not_define_it(block):
    good = "softmax = make()\n"
    assert extract_source(fenced(good, block), TRITON) == good
    assert extract_source(fenced("y = 1\n", block), TRITON) == block


def test_a_block_that_was_cut_off_is_the_submission_without_the_words_before():
    assert extract_source("Here:\n```python\ndef softmax(x):\n    ret", TRITON) == (
        "def softmax(x):\n    ret"
    )


def test_what_was_thought_is_no_submission_where_an_answer_follows():
    source = "def softmax(x):\n    return 2\n"
    thought = "<think>\n```\ndef softmax(x):\n    return 1\n```\n</think>\n"
    assert extract_source(thought + fenced(source), TRITON) == source
    assert extract_source(thought + source, TRITON) == "\n" + source
    assert extract_source(thought + "See above.", TRITON) == "def softmax(x):\n    return 1\n"
    assert extract_source("<think>well</think>x = 1\n", TRITON) == "x = 1\n"


def test_indented_fences_and_line_ends_of_windows_are_read():
    assert extract_source("1. So:\r\n   ```python\r\nx = 1\r\n   ```\r\n") == "x = 1\r\n"


def test_a_hostile_reply_takes_no_time():
    """Patterns of fences and calls on which careless expressions take minutes."""
    for text in ("softmax(" * 20_000, "```\n" * 50_000, "```x" * 50_000, "softmax\n" * 50_000):
        for task in (TRITON, HIP):
            extract_source(fenced(text), task)


def test_a_module_with_an_extension_defines_the_entry_point_in_python():
    source = "module = load_inline(name='x')\ndef softmax(x):\n    return module.run(x)\n"
    assert extract_source(fenced(source, "y = softmax(x)\n"), HIP) == source

"""The static screen stops forbidden sources and no other ones."""

import pytest

from kernel_gym.judge.protocol import MAX_SOURCE_BYTES
from kernel_gym.judge.screen import screen
from kernel_gym.tasks import get_task, load_suite
from kernel_gym.tasks.task import kernel_path

FORBIDDEN = {
    "ctypes": "import ctypes",
    "submodule": "import concurrent.futures",
    "from": "from subprocess import run",
    "evaluator": "from kernel_gym.judge import values",
    "frame": "f = (lambda: 0).__globals__",
    "open": "open('/etc/passwd')",
    "eval": "eval('1')",
    "import hook": "__import__('os')",
    "patch": "import torch\ntorch.allclose = lambda *a: True",
    "patch deep": "import triton\ntriton.runtime.driver.active = None",
    "delete": "import torch\ndel torch.cuda.synchronize",
    "inside a function": "def softmax(x):\n    import threading\n    return x",
}


@pytest.mark.parametrize("source", FORBIDDEN.values(), ids=FORBIDDEN)
def test_the_plainly_forbidden_is_rejected_with_its_line(source):
    assert screen(source, "triton").rejection.startswith("line ")


@pytest.mark.parametrize(
    "source",
    ["", "   \n", "x = 1\0", "x = '\ud800'", "x" * (MAX_SOURCE_BYTES + 1)],
    ids=["empty", "blank", "null byte", "lone surrogate", "too large"],
)
def test_text_that_is_no_source_is_rejected(source):
    assert screen(source, "triton").rejection


@pytest.mark.parametrize("source", ["def f(:\n", "(" * 5000], ids=["syntax", "nesting"])
def test_text_that_does_not_parse_is_left_to_the_build(source):
    assert not screen(source, "triton").rejection


@pytest.mark.parametrize(
    "line",
    [
        'int x = system("ls");',
        "#include <fstream>\nstd::ofstream f;",
        '#include "/etc/passwd"',
        "__attribute__((constructor)) void f() {}",
        "void* h = dlopen(0, 1);",
    ],
)
def test_hip_that_reaches_out_is_rejected(line):
    assert screen(f"#include <hip/hip_runtime.h>\n{line}\n", "hip").rejection


def test_words_in_comments_are_no_offence():
    assert not screen("// do not call system(\n/* fork() */\n", "hip").rejection


def test_every_baseline_of_the_quickstart_suite_passes():
    for task in load_suite("quickstart").tasks:
        task = get_task(str(task))
        text = kernel_path(task.problem, task.language).read_text()
        assert screen(text, task.language).rejection == ""


def test_labels_say_what_was_noticed():
    source = "import triton\n@triton.autotune(configs=[], key=[])\ndef k(): pass\n"
    assert screen(source, "triton").labels == ("autotune",)

"""Comments of C++, and the time that hostile sources take in the judge's process."""

from __future__ import annotations

import itertools
import time

import pytest

from kernel_gym.judge.comments import without_comments
from kernel_gym.judge.protocol import MAX_SOURCE_BYTES
from kernel_gym.judge.screen import screen
from kernel_gym.sim.asm.lines import FUNCTION_TYPE
from kernel_gym.sim.asm.metadata import read_metadata

MAX_SECONDS = 5.0
"""Of processor time: a linear reader needs a twentieth of it, a quadratic one minutes."""
PIECES = [
    *("/*", "*/", "//", '"', "'", '\\"', 'R"(', 'R"a(', ")a", "\\\n", "\n", " ", "\\", "/* "),
    *("system ", "execv", "process_vm_", "__attribute__ ", "__attribute__((", "# include ", "#"),
    *("#include < ", "std::", "connect ", "((", "x"),
]


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("a // x\nb", "a  \nb"),
        ("a /* x\n y */ b", "a \n b"),
        ("a /* x", "a  "),
        ('f("/*"); g("*/")', 'f("/*"); g("*/")'),
        ("c = '\"'; // x", "c = '\"';  "),
        ('f("\\"/*"); // x', 'f("\\"/*");  '),
        ('R"x( /* )" // )x" /**/ b', 'R"x( /* )" // )x"   b'),
        ('u8R"( // )" b', 'u8R"( // )" b'),
        ("/* *\\\n/ b\nc", "  b\n\nc"),
        ("s\\ \nys", "sys\n"),
        ("x \\", "x "),
        ('"open\n// x', '"open\n '),
    ],
)
def test_comments_become_spaces(source, code):
    assert without_comments(source) == code


def test_code_behind_a_comment_mark_within_quotes_is_screened():
    source = 'const char *a = "/*";\nint b = system("x"); const char *c = "*/";'
    assert screen(source, "hip").rejection.startswith("line 2: ")


def test_code_behind_a_comment_whose_end_is_continued_is_screened():
    assert "starts a process" in screen('/* *\\\n/ int b = system("x"); /* */', "hip").rejection


@pytest.mark.parametrize("first", PIECES)
def test_any_source_of_the_largest_size_is_screened_soon(first):
    start = time.process_time()
    for second in ("", *PIECES[::5]):
        half = MAX_SOURCE_BYTES // 2 - 8
        blocks = first * (half // len(first)) + second * (half // max(1, len(second)))
        mixed = (first + second) * (2 * half // len(first + second))
        screen(blocks, "hip")
        screen(mixed, "hip")
    assert time.process_time() - start < MAX_SECONDS


@pytest.mark.parametrize("line", ["\n", " ", " \n", ".type a,\n", "\t.type", ".type " + "a" * 99])
def test_types_of_functions_are_found_soon(line):
    text = line * ((4 << 20) // len(line))
    start = time.process_time()
    FUNCTION_TYPE.findall(text)
    assert time.process_time() - start < MAX_SECONDS


@pytest.mark.parametrize(
    "line",
    ["\n", " ", "  - .symbol: k\n", "      - .name: a\n", " .args:\n", ".a: 1 ", ".symbol: 'a"],
)
def test_metadata_is_read_soon(line):
    begin = "amdhsa.kernels:\n  - .symbol: k.kd\n    .args:\n"
    start = time.process_time()
    read_metadata(begin + line * ((4 << 20) // len(line)))
    assert time.process_time() - start < MAX_SECONDS


def test_all_kinds_of_argument_lists_are_read():
    names = ["      - .name: a\n        .offset: 0\n", "      - .offset: 8\n        .size: 4\n"]
    for chosen in itertools.permutations(names):
        text = "amdhsa.kernels:\n  - .args:\n" + "".join(chosen) + "    .symbol: 'k.kd'\n"
        read = read_metadata(text)["k"]
        assert {(a.name, a.offset, a.size) for a in read.args} == {("a", 0, 0), ("", 8, 4)}

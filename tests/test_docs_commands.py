"""Each command on a page is one that exists: its options, and the number of its arguments.

Commands that only read are run as well. The pages whose blocks run whole are in `test_docs.py`.
"""

import re
import shlex

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from benchmarks.__main__ import app as benchmarks
from kernel_gym.cli import app as kernel_gym
from tests.test_architecture import ROOT

(USAGE_ERROR,) = typer.BadParameter.__bases__  # Typer has a copy of click
PROGRAMS = {
    ("kernel-gym",): get_command(kernel_gym),
    ("python", "-m", "benchmarks"): get_command(benchmarks),
}
FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:kernel-gym|python -m benchmarks) [^`]*)`")
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
LEFT_OUT = "..."
"""Stands on a page for arguments that a reader knows."""
READS = ("kernel-gym judges list", "kernel-gym judges show", "kernel-gym tasks list")


def lines_of_blocks():
    """Page and text of each line of a fenced block that begins a program."""
    for page in PAGES:
        for block in FENCE.findall(page.read_text(encoding="utf-8")):
            for line in re.sub(r"\\\n\s*", " ", block).splitlines():
                start = re.match(
                    r"\s*(?:\S+/bin/|\w+=\S+ )?(kernel-gym|python -m benchmarks) ", line
                )
                if start and not re.search(r"\S {3,}[^#\s]", line):  # not a diagram
                    yield page.name, line[start.start(1) :]


def inline():
    """Page and text of each program in a line of prose or a cell of a table."""
    for page in PAGES:
        for text in INLINE.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
            for line in text.split("; "):
                yield page.name, line


def resolved(line):
    """The command of a line, the context to parse its arguments in, and these arguments."""
    words = shlex.split(line, comments=True)
    words = words[: words.index(";")] if ";" in words else words
    words = [word.removesuffix(";") for word in words]
    program = next(name for name in PROGRAMS if tuple(words[: len(name)]) == name)
    command, words = PROGRAMS[program], words[len(program) :]
    context = command.context_class(command, info_name=program[0])
    while hasattr(command, "resolve_command"):
        _, words, _ = command.make_parser(context).parse_args(words) if words else ({}, [], [])
        if not words:
            break
        if words[0] not in command.commands and "make" in command.commands:
            words = ["make", *words]  # the default of `kernel-gym package`
        name, command, words = command.resolve_command(context, words)
        assert command is not None, f"no command {name!r}"
        context = command.context_class(command, info_name=name, parent=context)
    return command, context, words


def check(line):
    """Fails if an option or an argument of the line is not there."""
    command, context, words = resolved(line)
    given = [word for word in words if word != LEFT_OUT]
    values, rest, _ = command.make_parser(context).parse_args(given)
    extra = context.allow_extra_args
    assert not rest or extra, f"too many arguments: {rest}"
    for parameter in command.params:
        value = values.get(parameter.name)
        if parameter.required and LEFT_OUT not in words:
            assert value not in (None, []), f"{parameter.name} is missing"


def test_a_line_that_is_wrong_is_found():
    check("kernel-gym check triton2triton/softmax FILE --seed 0")
    for wrong in ("check T FILE --sed 0", "check T", "check T F G", "chek T F"):
        with pytest.raises((AssertionError, USAGE_ERROR)):
            check(f"kernel-gym {wrong}")


def test_the_lines_of_blocks_can_be_given():
    lines = list(lines_of_blocks())
    assert len(lines) > 100
    wrong = []
    for page, line in lines:
        try:
            check(line)
        except (AssertionError, USAGE_ERROR) as error:
            wrong.append(f"{page}: {line}: {error}")
    assert wrong == []


def test_options_in_prose_exist():
    texts = list(inline())
    assert len(texts) > 200
    wrong = []
    for page, text in texts:
        words = shlex.split(text.replace("'", ""))
        options = {
            word.partition("=")[0] for word in words if word.startswith("--") and word != "--"
        }
        if "--" in words:
            options = {word for word in words[: words.index("--")] if word.startswith("--")}
        try:
            command, context, _ = resolved(
                shlex.join(w for w in words if w.partition("=")[0] not in options)
            )
            known = {
                name
                for each in command.get_params(context)
                for name in (*each.opts, *each.secondary_opts)
            }
            missing = options - known - {"--tasks-path"}
        except (AssertionError, USAGE_ERROR) as error:
            missing = error
        if missing:
            wrong.append(f"{page}: {text}: {missing}")
    assert wrong == []


@pytest.mark.parametrize("line", sorted({t for _, t in lines_of_blocks() if t.startswith(READS)}))
def test_a_command_that_only_reads_runs(line):
    words = shlex.split(line, comments=True)[1:]
    result = CliRunner().invoke(kernel_gym, words)
    assert result.exit_code == 0, result.output
    assert result.output

"""The documentation runs: the fenced blocks of pages and tutorials, and examples in docstrings."""

import doctest
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.test_architecture import FLOOR, ROOMS, ROOT, modules

LINK = re.compile(r"(?:\]\(|^\[[^\]]+\]: )(?!https?:)([^)#\s]+)", re.MULTILINE)
"""The page of a link, inline or as a definition at the end of a page."""
CODE = re.compile(r"^```\w*\n.*?^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """Language and text of each fenced block that is to be run."""
    return FENCE.findall((ROOT / page).read_text(encoding="utf-8"))


@pytest.fixture
def shell():
    """Environment in which `kernel-gym` is the one under test."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "EXAMPLES": str(ROOT / "examples")}


@pytest.mark.slow
def test_the_quickstart_runs(tmp_path, shell, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runnable = blocks("docs/quickstart.md")
    assert len(runnable) >= 4
    for language, text in [runnable[1], *runnable]:  # the first block of Python runs twice
        if language == "python":
            exec(compile(text, "quickstart.md", "exec"), {})
        else:
            subprocess.run(["bash", "-euo", "pipefail", "-c", text], env=shell, check=True)
    assert (tmp_path / "runs" / "mine" / "report.html").stat().st_size > 10_000


def test_the_front_pages_have_one_example_and_it_runs(capsys):
    pages = ("README.md", "docs/index.md")
    texts = [text for page in pages for language, text in blocks(page) if language == "python"]
    (text,) = set(texts)
    assert len(texts) == len(pages)
    exec(compile(text, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert [f"turn {turn}: " in printed for turn in (1, 2, 3)] == [True] * 3
    assert "turn 3: passed, reward 0.15" in printed
    assert printed.count(": passed") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        "environments",
        "rewards",
        "tutorials/evaluate-a-model",
        pytest.param("tutorials/from-profile-to-kernel", marks=pytest.mark.sweep),
        "tutorials/add-a-problem",
        "tutorials/add-a-reward",
        "tutorials/train-a-policy",
    ],
)
def test_the_examples_of_a_page_run(page, tmp_path, shell, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runnable = blocks(f"docs/{page}.md")
    assert runnable
    for language, text in runnable:
        if language == "python":
            exec(compile(text, f"{page}.md", "exec"), {})
        else:
            subprocess.run(["bash", "-euo", "pipefail", "-c", text], env=shell, check=True)


def with_examples():
    """Names of the modules that hold examples."""
    for room in ROOMS:
        for path in modules(room):
            if re.search(r"^ *>>> ", path.read_text(encoding="utf-8"), re.MULTILINE):
                inside = path.relative_to(ROOT).with_suffix("").parts
                yield ".".join(part for part in inside if part != "__init__")


@pytest.mark.parametrize("name", sorted(with_examples()))
def test_docstring_examples_run(name):
    result = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


def test_links_between_pages_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        text = CODE.sub("", page.read_text(encoding="utf-8"))  # `kernel[grid](x)` is no link
        for link in LINK.findall(text):
            if not link.endswith(".png"):
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_page_of_the_architecture_has_every_room_on_its_floor():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    stated: dict[str, int] = {}
    floor = 0
    for number, rooms in re.findall(r"^\| (\d*) *\| (`.*?`) \|", text, re.MULTILINE):
        floor = int(number or floor)
        stated.update(dict.fromkeys(re.findall(r"`(\w+)`", rooms), floor))
    floors = {room: number + 1 for room, number in FLOOR.items()}
    floors["kernel_gym"] = floors.pop("__init__")
    del floors["__main__"]
    assert stated == floors


DATE = re.compile(
    r"\b20\d\d-\d\d-\d\d\b|\b(?:January|February|March|April|May|June|July|August"
    r"|September|October|November|December) 20\d\d\b"
)
DATED = {"compare.md", "suites-operators.md"}
"""Pages that say when the work of others was as they describe it."""


def test_only_figures_decisions_and_the_changelog_are_dated():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("tut*/*.md")]
    dated = {page.name for page in pages if DATE.search(page.read_text(encoding="utf-8"))}
    figures = {page.name for page in (ROOT / "docs").glob("benchmarks*.md")}
    assert dated >= DATED
    assert dated - figures - DATED - {"CHANGELOG.md"} == set()


MAX_PAGE_WORDS = 2500


def test_no_page_is_too_long():
    pages = {page.name: page for page in (ROOT / "docs").glob("*.md")}
    pages |= {f"{page.parent.name}/{page.name}": page for page in (ROOT / "docs").glob("*/*.md")}
    words = {name: len(page.read_text(encoding="utf-8").split()) for name, page in pages.items()}
    assert {name for name, count in words.items() if count > MAX_PAGE_WORDS} == set()

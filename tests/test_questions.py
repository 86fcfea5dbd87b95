"""Readers' questions are answered where `questions.toml` says, and README leads there."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.test_architecture import ROOT
from tests.test_docs import CODE, LINK

HEADING = re.compile(r"^(#+) (.*)$", re.MULTILINE)
MAX_LINKS = 3
"""Links that a reader follows from README, at most."""
READERS = tomllib.loads(Path(__file__).with_name("questions.toml").read_text(encoding="utf-8"))
QUESTIONS = [question for questions in READERS.values() for question in questions]


def anchor(heading):
    """The name of a heading in links, as GitHub and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def section(text, name):
    """The text under a heading up to the next one of its level or above, with single spaces."""
    comments = CODE.sub(lambda block: re.sub("^#", "%", block.group(), flags=re.MULTILINE), text)
    headings = list(HEADING.finditer(comments))
    for number, heading in enumerate(headings):
        if anchor(heading[2]) == name:
            level = len(heading[1])
            ends = (h.start() for h in headings[number + 1 :] if len(h[1]) <= level)
            return " ".join(text[heading.start() : next(ends, None)].split())
    return None


def links_from(start):
    """The least number of links from a page to each page that can be reached from it."""
    steps, waiting = {start: 0}, [start]
    for page in waiting:
        text = CODE.sub("", page.read_text(encoding="utf-8"))
        for link in LINK.findall(text):
            target = (page.parent / link).resolve()
            if target.suffix == ".md" and target.exists() and target not in steps:
                steps[target] = steps[page] + 1
                waiting.append(target)
    return steps


def test_each_reader_has_ten_questions():
    assert {reader: len(questions) for reader, questions in READERS.items()} == {
        "rl_researcher": 10,
        "kernel_engineer": 10,
        "benchmark_author": 10,
    }


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked["question"])
def test_the_page_answers(asked):
    text = section((ROOT / asked["page"]).read_text(encoding="utf-8"), asked["heading"])
    assert text is not None, f"{asked['page']} has no heading #{asked['heading']}"
    assert asked["answer"] in text


def test_a_few_links_lead_from_the_readme_to_each_answer():
    steps = links_from(ROOT / "README.md")
    far = {q["page"]: steps.get(ROOT / q["page"]) for q in QUESTIONS}
    assert {page: n for page, n in far.items() if n is None or n > MAX_LINKS} == {}


def test_an_answer_counts_under_its_heading_alone():
    text = "# One\nan\nanswer\n```sh\n# no heading\n```\n## Part\nof it\n# `Two`, last\nother\n"
    assert "an answer" in section(text, "one")
    assert "of it" in section(text, "one")
    assert "other" not in section(text, "one")
    assert section(text, "two-last") == "# `Two`, last other"
    assert section(text, "no-heading") is None


def test_a_page_without_a_link_is_not_reached(tmp_path):
    (tmp_path / "README.md").write_text("[a](a.md)")
    (tmp_path / "a.md").write_text("[b](b.md#part)")
    for name in ("b.md", "c.md"):
        (tmp_path / name).write_text("")
    steps = links_from(tmp_path / "README.md")
    assert {page.name: n for page, n in steps.items()} == {"README.md": 0, "a.md": 1, "b.md": 2}

"""Pages of decisions: all in the index, with the same sections, one page long, links that lead."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
DECISIONS = sorted((DOCS / "decisions").glob("[0-9]*.md"))
SECTIONS = ["Context", "Decision", "Consequences", "What was tried and failed", "Figures"]
MAX_LINES = 60
LINK = re.compile(r"(?:\]\(|^\[[^\]]+\]: )(?!https?:)([^)\s#]*)#([^)\s]+)", re.MULTILINE)
"""A link to a section, inline or as a definition at the end of a page."""


def title_of(path):
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix(f"# {path.name[:4]}. ")


def anchors(text):
    """The names of the sections of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_there_are_decisions_numbered_without_gaps():
    assert len(DECISIONS) >= 15
    assert [int(path.name[:4]) for path in DECISIONS] == [*range(1, len(DECISIONS) + 1)]


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_is_one_page_with_all_sections(path):
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS
    assert all(part.strip() for part in re.split(r"^## .*$", text, flags=re.MULTILINE))
    assert len(text.splitlines()) <= MAX_LINES


def test_the_index_lists_every_decision_by_its_title():
    index = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d{4}) \| \[(.+)\]\((.+)\) \| \S.* \|$", index, re.MULTILINE)
    assert rows == [(path.name[:4], title_of(path), path.name) for path in DECISIONS]


def test_the_site_lists_every_decision():
    site = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    assert re.findall(r"- decisions/(\d.*\.md)$", site, re.MULTILINE) == [p.name for p in DECISIONS]


def test_the_page_of_a_replaced_decision_names_the_new_one():
    index = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d{4}) .*Replaced by (\d{4})\.", index, re.MULTILINE)
    files = {path.name[:4]: path for path in DECISIONS}
    assert len(rows) >= 5
    for old, new in rows:
        assert f"Replaced by [{new}]({files[new].name})" in files[old].read_text(encoding="utf-8")
        assert int(new) > int(old)


@pytest.mark.parametrize(
    "page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS))
)
def test_links_to_sections_lead_to_sections(page):
    missing = [
        f"{target}#{anchor}"
        for target, anchor in LINK.findall(page.read_text(encoding="utf-8"))
        if anchor
        not in anchors(((page.parent / target) if target else page).read_text(encoding="utf-8"))
    ]
    assert missing == []

"""Brings pages from the top of the repository into the site, and adapts their links.

MkDocs calls these functions (`hooks` in mkdocs.yml). The pages in `docs/` link to files as they lie
in the repository, so that the links work in a checkout too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages at the top of the repository, and where they are in the site."""
ARCHIVE = re.compile(r"\[([^\]]+)\]\((?:\.\./)*archive/[^)]*\)")
"""A link to the archive, which is in the repository only."""
ARCHIVE_NAME = re.compile(r"^\[([^\]]+)\]: (?:\.\./)*archive/.*\n?", re.MULTILINE)
"""The definition of such a link at the end of a page."""


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages from the top of the repository."""
    for name, target in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, target, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Points links to the site's pages, and turns links to the archive into text."""
    for name, target in PAGES.items():
        markdown = markdown.replace(f"](../{name}", f"]({target}")
        markdown = markdown.replace(f"](../../{name}", f"](../{target}")
    for name in ARCHIVE_NAME.findall(markdown):
        markdown = re.sub(rf"\[([^\]]+)\]\[{re.escape(name)}\]", r"\1", markdown)
    return ARCHIVE.sub(r"\1 (in the repository)", ARCHIVE_NAME.sub("", markdown))

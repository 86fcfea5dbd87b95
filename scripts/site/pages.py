"""Brings pages from the top of the repository into the site, and adapts their links.

MkDocs calls these functions (`hooks` in mkdocs.yml). The pages in `docs/` link to files as they lie
in the repository, so that the links work in a checkout too.
"""

from __future__ import annotations

import sys
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


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages from the top of the repository, the page of tasks and the matrix of judges."""
    for name, target in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, target, content=text))
    sys.path.insert(0, str(ROOT))  # the package of benchmarks is in no wheel
    files.append(File.generated(config, "tasks.md", content=_page_of_tasks()))
    files.append(File.generated(config, "judges/matrix.html", content=_matrix_of_judges()))
    return files


def _page_of_tasks() -> str:
    """Returns the table of tasks, made from the stored verdicts."""
    from benchmarks.tasks_page import control_table

    return control_table()


def _matrix_of_judges() -> str:
    """Returns the verdicts of all judges on the quick set as a page that a reader can filter."""
    from benchmarks.judges_page import ROWS, stored_rows
    from kernel_gym.judges.page import matrix_page
    from kernel_gym.judges.report import quick_rows

    return matrix_page(quick_rows(stored_rows(ROOT / ROWS)))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Points links to the site's pages."""
    for name, target in PAGES.items():
        markdown = markdown.replace(f"](../{name}", f"]({target}")
        markdown = markdown.replace(f"](../../{name}", f"](../{target}")
    return markdown

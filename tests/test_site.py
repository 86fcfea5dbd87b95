"""The site of the documentation in a real browser: readable, named, and used by keyboard.

Needs MkDocs (the extra `docs`) and a Chromium (`scripts/browser.sh`).
"""

import functools
import http.server
import os
import subprocess
import sys
import threading

import pytest

from tests.browser import (
    CHROMIUM,
    DESK,
    FOCUSED,
    OVERFLOW,
    PHONE,
    UNREADABLE,
    levels,
    skips,
    tree_of,
    unnamed,
)
from tests.test_architecture import ROOT

pytest.importorskip("mkdocs")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: scripts/browser.sh"),
]
PAGES = ("", "quickstart", "compare", "leaderboard", "judges/settings", "api/records", "tasks")
"""The home page, and pages with code, wide tables, figures and signatures."""
OF_THE_THEME = {"image", "table"}
"""Roles that may lack a name: icons of the theme, and tables, which Markdown cannot name."""
CONTENT = "document.querySelector('article').getBoundingClientRect().top < innerHeight"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, *_):
        """Says nothing."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", folder]
    subprocess.run(command, cwd=ROOT, check=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    return folder


@pytest.fixture(scope="module")
def address(folder):
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def visited(browser, address, names, size, scheme):
    """Yields each page with its name, and with what it reported or asked of other hosts."""
    page, told = browser.new_page(viewport=size, color_scheme=scheme), []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: told.append(request.url))
    for name in names:
        told.clear()
        page.goto(f"{address}{name}/" if name else address)
        own = (address, "data:", "blob:")
        yield page, name, [each for each in told if not each.startswith(own)]
    page.close()


def faults(browser, address, names, size, scheme):
    """Returns the faults of pages, by name."""
    wrong = {}
    for page, name, told in visited(browser, address, names, size, scheme):
        contrast, tree = page.evaluate(UNREADABLE), tree_of(page)
        assert contrast["seen"] > 20, name
        each = {
            "told": told,
            "contrast": contrast["poor"],
            "too wide": max(0, page.evaluate(OVERFLOW)),
            "unnamed": [role for role in unnamed(tree) if role not in OF_THE_THEME],
            "skipped levels": skips(tree),
            "titles": levels(tree).count(1) - 1,
            "main parts": [node.role for node in tree].count("main") - 1,
        }
        if any(each.values()):
            wrong[name] = {key: value for key, value in each.items() if value}
    return wrong


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_pages_are_readable_fit_and_have_names(browser, address, size, scheme):
    assert faults(browser, address, PAGES, size, scheme) == {}


@pytest.mark.sweep
@pytest.mark.parametrize(("size", "scheme"), [(PHONE, "light"), (DESK, "dark")])
def test_every_page_is_readable_fits_and_has_names(browser, address, folder, size, scheme):
    names = [str(path.parent.relative_to(folder)) for path in folder.rglob("index.html")]
    names = ["" if name == "." else name for name in names]
    assert len(names) > 100
    assert faults(browser, address, names, size, scheme) == {}


def test_a_page_is_found_and_read_by_keyboard(browser, address):
    page = browser.new_page(viewport=DESK)
    page.goto(address)
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED)["name"] == "Skip to content"
    page.keyboard.press("/")
    page.keyboard.type("leaderboard that can be checked")
    page.locator(".md-search-result__link").first.wait_for()
    for _ in range(10):
        page.keyboard.press("ArrowDown")
        if page.evaluate("document.activeElement.href || ''").startswith(f"{address}leaderboard/"):
            break
    assert page.evaluate(FOCUSED)["seen"]
    page.keyboard.press("Enter")
    page.wait_for_url(f"{address}leaderboard/**", wait_until="commit", timeout=120_000)
    assert page.evaluate(CONTENT)
    page.close()

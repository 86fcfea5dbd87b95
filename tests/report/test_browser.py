"""The report in a real browser: nothing goes wrong, everything fits a phone, all text is readable.

Needs a Chromium: `scripts/browser.sh` installs one where apt-get may be used.
"""

import shutil

import pytest

from kernel_gym.report import write_report
from tests.report.runs import TASKS, measures, played

playwright = pytest.importorskip("playwright.sync_api")

NAMES = ("chromium-headless-shell", "chromium", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: scripts/browser.sh")
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}

OPEN_ALL = """() => {
  document.querySelectorAll('details').forEach(one => one.open = true);
  document.querySelectorAll('article').forEach(one => one.style.contentVisibility = 'visible');
}"""
OVERFLOW = "document.documentElement.scrollWidth - window.innerWidth"
UNREADABLE = """() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const found = parse(getComputedStyle(at).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found;
    }
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    if (!text || ['TITLE', 'title', 'STYLE', 'style'].includes(element.tagName)) continue;
    const style = getComputedStyle(element), svg = element.closest('svg');
    const ink = light(parse(svg ? style.fill : style.color)), paper = light(behind(element));
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    seen += 1;
    if (ratio < 4.5) poor.push(`${text.slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return {seen, poor};
}"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    store = played(tmp_path_factory.mktemp("run"))
    return write_report(store, measures(store)).as_uri()


def opened(browser, address, size=DESK, scheme="light"):
    """The page with everything on it unfolded, and what the console was told meanwhile."""
    page, told = browser.new_page(viewport=size, color_scheme=scheme), []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: told.append(request.url))
    page.goto(address)
    page.evaluate(OPEN_ALL)
    return page, told


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_is_reported_asked_for_or_too_wide(browser, address, size):
    page, told = opened(browser, address, size)
    assert told == [address]  # the page itself, and no other request, error or warning
    assert page.evaluate(OVERFLOW) <= 0
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_is_readable(browser, address, scheme):
    """WCAG 2.2, success criterion 1.4.3: a contrast of 4.5 to 1."""
    page, _ = opened(browser, address, PHONE, scheme)
    found = page.evaluate(UNREADABLE)
    assert found["seen"] > 300
    assert found["poor"] == []
    page.close()


def test_the_schemes_differ_and_plots_follow(browser, address):
    papers, inks = set(), set()
    for scheme in ("light", "dark"):
        page, _ = opened(browser, address, scheme=scheme)
        papers.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        inks.add(page.evaluate("getComputedStyle(document.querySelector('svg text')).fill"))
        page.close()
    assert len(papers) == len(inks) == 2


def test_a_row_and_a_dot_lead_to_their_task(browser, address):
    page, _ = opened(browser, address, PHONE)
    for links in (".tasks a", "#by-task-figure_1 a, svg a"):
        page.locator(f":is({links})[href='#{TASKS[0].replace('/', '-')}']").first.click()
        box = page.locator("article").first.bounding_box()
        assert 0 <= box["y"] < PHONE["height"] / 2
        page.goto(address)
    page.close()

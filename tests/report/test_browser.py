"""The report in a real browser: nothing goes wrong, everything fits a phone, all text is readable.

Needs a Chromium: `scripts/browser.sh` installs one where apt-get may be used.
"""

import pytest

from kernel_gym.report import write_report
from kernel_gym.report.leaderboard_pages import build_leaderboard
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
from tests.report.runs import TASKS, many, measures, played
from tests.report.test_leaderboard import played as ranked_run

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: scripts/browser.sh")

OPEN_ALL = """() => {
  document.querySelectorAll('details').forEach(one => one.open = true);
  document.querySelectorAll('.task').forEach(one => one.style.contentVisibility = 'visible');
}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    store = played(tmp_path_factory.mktemp("run"))
    return write_report(store, measures(store)).as_uri()


def opened(browser, address, size=DESK, scheme="light"):
    """The page with every section open, and its messages, errors and requests."""
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
    contrast = page.evaluate(UNREADABLE)
    assert contrast["seen"] > 300
    assert contrast["poor"] == []
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
        box = page.locator("details.task").first.bounding_box()
        assert 0 <= box["y"] < PHONE["height"] / 2
        page.goto(address)
    page.close()


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """The page of a run of 200 tasks."""
    store = many(tmp_path_factory.mktemp("large"), 200)
    return write_report(store, measures(store)).as_uri()


FIRST_VIEW = """() => ({
  text: [...document.querySelectorAll('noscript')].reduce(
    (sum, one) => sum - one.innerHTML.length, document.documentElement.outerHTML.length),
  elements: document.getElementsByTagName('*').length,
  height: document.documentElement.scrollHeight,
})"""
SHOWN = "[...document.querySelectorAll('.tasks tbody tr')].filter(row => !row.hidden)"


def test_the_first_view_of_200_tasks_is_small(browser, large):
    page = browser.new_page(viewport=DESK)
    page.goto(large)
    view = page.evaluate(FIRST_VIEW)
    assert view["text"] < 1_000_000  # sections that are folded are one text each
    assert view["elements"] < 10_000
    assert view["height"] < 40_000
    page.close()


def test_a_folded_task_is_filled_in_when_it_is_opened(browser, large):
    page, told = browser.new_page(viewport=DESK), []
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("console", lambda message: told.append(message.text))
    page.goto(large)
    first = page.locator("details.task").nth(0)
    assert first.locator("pre").count() == 0
    first.locator("summary").first.click()
    first.locator("pre.code").first.wait_for()
    link = page.locator(".tasks tbody tr a").nth(150)
    link.click()
    other = page.locator(page.evaluate("location.hash"))
    other.locator("pre.code").first.wait_for()
    assert 0 <= other.bounding_box()["y"] < DESK["height"] / 2
    plot = page.locator("#speed details")
    plot.locator("summary").click()
    plot.locator("svg").wait_for()
    assert told == []
    page.close()


def test_tasks_are_searched_chosen_and_sorted(browser, large):
    page = browser.new_page(viewport=DESK)
    page.goto(large)
    page.get_by_role("searchbox").fill("hip2hip  ADD")
    names = page.evaluate(f"{SHOWN}.map(row => row.cells[0].textContent)")
    assert names
    assert all("hip2hip" in name and "add" in name for name in names)
    assert page.locator(".controls output").text_content() == f"{len(names)} of 200"
    assert page.locator("details.task:visible").count() == len(names)
    page.get_by_role("searchbox").fill("")
    page.get_by_label("Show").select_option("hack")
    assert page.evaluate(f"{SHOWN}.length") == 0
    page.get_by_label("Show").select_option("")
    for _ in range(2):
        page.get_by_role("button", name="speedup").click()
        order = page.evaluate(f"{SHOWN}.map(row => Number(row.cells[3].dataset.value))")
        sections = page.evaluate("[...document.querySelectorAll('.task')].map(one => one.id)")
        rows = page.evaluate(f"{SHOWN}.map(row => row.dataset.task)")
        assert sections == rows
        assert order in (sorted(order), sorted(order, reverse=True))
    assert order == sorted(order) != sorted(order, reverse=True)
    page.close()


def test_without_a_script_everything_can_be_read(browser, large):
    context = browser.new_context(viewport=DESK, java_script_enabled=False)
    page = context.new_page()
    page.goto(large)
    assert page.locator(".controls:visible").count() == 0
    task = page.locator("details.task").nth(7)
    task.locator("summary").first.click()
    assert task.locator("pre.code").first.is_visible()
    context.close()


def test_a_screen_reader_has_a_name_for_everything_in_200_tasks(browser, large):
    page = browser.new_page(viewport=DESK)
    page.goto(large)
    tree = tree_of(page)
    assert unnamed(tree) == []
    assert (levels(tree).count(1), skips(tree)) == (1, [])
    roles = [node.role for node in tree]
    assert (roles.count("main"), roles.count("searchbox")) == (1, 1)
    assert roles.count("rowheader") > 200  # each task, kind and group names its row
    assert roles.count("link") < 300  # dots of plots have no links beside those of the table
    page.close()


def test_the_report_of_200_tasks_is_used_by_keyboard(browser, large):
    page = browser.new_page(viewport=DESK)
    page.goto(large)

    def press(key, until):
        for _ in range(40):
            page.keyboard.press(key)
            focus = page.evaluate(FOCUSED)
            assert focus["marked"], focus["name"]
            assert focus["seen"], focus["name"]
            if until(focus["name"]):
                return
        raise AssertionError("the element was not reached")

    press("Tab", lambda name: page.get_by_role("searchbox").evaluate("e => e.matches(':focus')"))
    page.keyboard.type("attention")
    shown = page.evaluate(f"{SHOWN}.length")
    assert 0 < shown < 50
    press("Tab", lambda name: name == "speedup")
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort]").count() == 1
    press("Tab", lambda name: "attention" in name)
    page.keyboard.press("Enter")
    task = page.locator(page.evaluate("location.hash"))
    task.locator("pre.code").first.wait_for()
    press("Tab", lambda name: task.evaluate("e => e.contains(document.activeElement)"))
    page.close()


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """The folder of a leaderboard of two runs."""
    folder = tmp_path_factory.mktemp("board")
    runs = [ranked_run(folder / name, name, speed) for name, speed in (("a", 1.0), ("b", 2.0))]
    build_leaderboard(runs, folder / "site")
    return folder / "site"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["index.html", "run-1/cells/1.html"])
def test_a_leaderboard_fits_a_phone_is_readable_and_asks_for_nothing(browser, board, page, scheme):
    address = (board / page).as_uri()
    shown, told = opened(browser, address, PHONE, scheme)
    assert told == [address]
    assert shown.evaluate(OVERFLOW) <= 0
    assert shown.evaluate(UNREADABLE)["poor"] == []
    shown.close()


@pytest.mark.parametrize("page", ["index.html", "run-1/cells/1.html"])
def test_a_screen_reader_has_a_name_for_everything_on_a_leaderboard(browser, board, page):
    shown, _ = opened(browser, (board / page).as_uri())
    tree = tree_of(shown)
    assert [role for role in unnamed(tree) if role != "table"] == []  # its region has the name
    assert (levels(tree).count(1), skips(tree)) == (1, [])
    shown.close()


def test_a_leaderboard_is_read_by_keyboard(browser, board):
    shown, _ = opened(browser, (board / "index.html").as_uri())
    reached = set()
    for _ in range(20):
        shown.keyboard.press("Tab")
        reached.add(shown.evaluate("document.activeElement.getAttribute('aria-label')"))
    cells = {name for name in reached if name and "reward" in name}
    assert {"Ranks", "Best submissions"} <= reached
    assert len(cells) == 12  # each cell of six tasks and two runs has a name of its own
    shown.close()

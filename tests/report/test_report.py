"""The report: whole, readable, and equal for equal runs."""

import re
from html.parser import HTMLParser

import pytest

from kernel_gym.records import KernelFacts, Outcome, Stage
from kernel_gym.report import render_report, write_report
from kernel_gym.store import RunStore
from tests.records import failure, passing
from tests.test_store import CONFIG, record

TASKS = ("triton2triton/softmax", "hip2hip/transpose")
CONFIG = CONFIG.model_copy(update={"tasks": TASKS})


@pytest.fixture
def store(tmp_path):
    store = RunStore.start(tmp_path, CONFIG)
    wrong = failure(Outcome.WRONG_VALUES, Stage.TRAIN, detail="</pre><script>alert(1)</script>")
    store.append(record(TASKS[0], 1, wrong), "def softmax(x):\n    return '<b>'\n")
    store.append(record(TASKS[0], 2, passing(2.0, 1.5)), "def softmax(x):\n    return x + 1\n")
    store.append(record(TASKS[1], 1, passing(0.5, 4.0)), "// hip\n")
    return store


class _Balance(HTMLParser):
    """Checks that elements close in the order in which they opened, and collects ids."""

    VOID = frozenset({"meta", "br", "hr", "img", "link", "input"})

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self._note(attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self._note(attrs)

    def handle_endtag(self, tag):
        assert self.open
        assert self.open.pop() == tag

    def _note(self, attrs):
        self.ids += [value for key, value in attrs if key == "id"]
        self.links += [value for key, value in attrs if key.endswith("href")]


def test_it_is_well_formed_and_links_only_to_itself(store):
    page = _Balance()
    page.feed(render_report(store))
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert page.links
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)


def test_it_needs_no_network(store):
    text = render_report(store)
    addresses = set(re.findall(r"https?://[^\s\"'<]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "<script" not in text
    assert "@import" not in text


def test_it_shows_what_a_reader_looks_for(store):
    text = render_report(store)
    for phrase in (
        "2 of 2",
        "(modelled)",
        "no GPU was measured",
        "Changes from turn 1",
        "Changes from the start kernel",
        "rows=33 cols=2503",
        "triton 3.9.0",
        "prefers-color-scheme: dark",
    ):
        assert phrase in text, phrase
    assert text.count("<svg") == 2
    assert text.count('class="badge"') == 2


def test_it_is_the_same_every_time(store):
    assert render_report(store) == render_report(RunStore(store.folder))


def test_plots_take_their_colours_from_the_page(store):
    text = render_report(store)
    assert "var(--seen)" in text
    assert "#030303" not in text


def test_a_run_without_submissions_has_a_report(tmp_path):
    text = render_report(RunStore.start(tmp_path, CONFIG))
    assert "No submission." in text
    assert "<svg" not in text


def test_it_is_written_into_the_run_folder(store):
    assert write_report(store) == store.folder / "report.html"
    assert (store.folder / "report.html").read_text(encoding="utf-8") == render_report(store)


PROFILE = {
    "of_peak": {"matrix": 0.0, "hbm": 0.62},
    "utilisation": {"vector": 0.31},
    "stalls": {"memory wait": 0.7, "issue": 0.3},
}


def test_the_profile_of_the_best_submission_is_drawn(tmp_path):
    store = RunStore.start(tmp_path, CONFIG)
    for turn, speedup in ((1, 3.0), (2, 2.0)):
        found = passing(speedup, 1.5)
        kernel = KernelFacts(name="softmax", vgprs=8, sgprs=8, profile=PROFILE)
        found = found.model_copy(update={"kernels": (kernel,)})
        store.append(record(TASKS[0], turn, found), f"x = {turn}\n")
    page = render_report(store)
    assert page.count("Profile of softmax") == 1
    assert "memory wait" in page
    assert "62%" in page
    assert "hbm" in page
    assert page.index("Profile of softmax") < page.index("Turn 2")
    balance = _Balance()
    balance.feed(page)
    assert len(balance.ids) == len(set(balance.ids))

"""The report: whole, safe, and equal for equal runs."""

import re
from html.parser import HTMLParser

import pytest

from kernel_gym.report import write_report
from kernel_gym.store import RunStore
from tests.records import passing
from tests.report.runs import CONFIG, MARKUP, TASKS, measures, played, rendered
from tests.test_store import end_all, record


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return played(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def text(store):
    return rendered(store)


class _Balance(HTMLParser):
    """Checks that elements close in the order in which they opened, and collects ids."""

    VOID = frozenset({"meta", "br", "hr", "img", "link", "input", "wbr"})

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
        self.links += [value for key, value in attrs if key.endswith("href") and value != "data:,"]


def test_it_is_well_formed_and_links_only_to_itself(text):
    page = _Balance()
    page.feed(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    for task in TASKS:
        assert page.links.count("#" + task.replace("/", "-")) >= 1


def test_it_needs_no_network_and_no_script(text):
    addresses = set(re.findall(r"https?://[^\s\"'<]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "<script" not in text
    assert "@import" not in text
    assert MARKUP not in text
    assert text.count("&lt;script&gt;") >= 2  # shown, as text


def test_it_shows_what_a_reader_looks_for(text):
    for phrase in (
        "2 of 3",
        "(modelled)",
        "no GPU was measured",
        "Changes from turn 1",
        "Changes from the start kernel",
        "Changes from the baseline",
        "Compile facts",
        "Profile of softmax",
        "memory wait",
        "What the hacks did",
        "Unseen-shape quadrants",
        "rows=33 cols=2503",
        "triton 3.9.0",
        "not solved",
        "prefers-color-scheme: dark",
    ):
        assert phrase in text, phrase


def test_it_has_every_plot(text):
    names = re.findall(r'<svg role="img" aria-label="([^"]+)"', text)
    assert names == [
        "fast_p over p",
        "histogram of speedups",
        "speedup of each task",
        "speedup on seen against unseen workloads",
        "arithmetic rate over intensity under the roofline",
        "share solved by turn",
        "best speedup by turn",
        "speedup by category and mode",
    ]


def test_it_is_written_into_the_run_folder_and_the_same_every_time(store, text):
    again = RunStore(store.folder)
    assert write_report(again, measures(again)) == store.folder / "report.html"
    assert (store.folder / "report.html").read_text(encoding="utf-8") == text


def test_plots_take_their_colours_from_the_page(text):
    for variable in ("--seen", "--unseen", "--good", "--bad", "--faint"):
        assert f"var({variable})" in text
    assert not re.search(r"#0[1-7]0[1-7]0[1-7]", text)


def test_a_run_without_submissions_has_a_report(tmp_path):
    text = rendered(RunStore.start(tmp_path, CONFIG))
    assert "No submission." in text
    assert "<svg" not in text


def test_an_unfinished_run_says_so(tmp_path, text):
    store = RunStore.start(tmp_path, CONFIG)
    store.append(record(TASKS[0], 1, passing(2.0, 1.5)), "x")
    store.end(TASKS[0])
    assert "2 of 3 tasks unfinished" in rendered(store)
    assert "unfinished" not in text


def test_a_run_in_which_nothing_is_right_has_a_report(tmp_path):
    store = played(tmp_path)
    only = RunStore.start(tmp_path / "wrong", CONFIG)
    only.append(store.turns(TASKS[2])[0], "x")
    end_all(only)
    names = re.findall(r'aria-label="([^"]+)"', rendered(only))
    assert names == ["fast_p over p", "speedup by category and mode"]


def test_the_baseline_of_a_task_from_pytorch_is_the_pytorch(tmp_path):
    store = RunStore.start(tmp_path, CONFIG)
    found = played(tmp_path / "other").turns(TASKS[1])[0]
    evaluation = found.evaluation.model_copy(update={"task": TASKS[2]})
    store.append(found.model_copy(update={"task": TASKS[2], "evaluation": evaluation}), "x = 1\n")
    text = rendered(store)
    assert "The PyTorch it is timed against" in text
    assert "Changes from the baseline" not in text


def test_of_many_submissions_the_right_ones_are_counted(tmp_path):
    store = RunStore.start(tmp_path, CONFIG.model_copy(update={"turns": 9}))
    for turn in range(1, 10):
        store.append(record(TASKS[0], turn, passing(1.5, 1.2)), f"x = {turn}")
    text = rendered(store)
    assert "<td>9 of 9</td>" in text
    assert 'class="marks">none' in text

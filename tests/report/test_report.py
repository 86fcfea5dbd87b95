"""The report: whole, safe, and equal for equal runs."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from kernel_gym.analysis.summary import summarise
from kernel_gym.report.code import highlight_diff
from kernel_gym.storage.json_lines import write_lines
from kernel_gym.storage.run_records import RunSession
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import get_task
from tests.records import passing, workload
from tests.report.runs import CONFIG, MARKUP, TASKS, many, measures, played, rendered
from tests.storage.test_run_store import end_all, record


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


def test_the_headline_says_which_speedups_have_ratios_that_count_as_limits(tmp_path, text):
    row = workload(speedup=40.0)
    fast = passing(10.0, 10.0).model_copy(update={"workloads": (row,)})
    store = RunStore.start(tmp_path, CONFIG)
    store.append(record(TASKS[0], 1, fast), "x")
    end_all(store)
    limits = "in 1 of 1 tasks ratios beyond 0.1x to 10x count as these limits"
    assert limits in rendered(store)
    assert "count as these limits" not in text


def test_it_is_well_formed_and_links_only_to_itself_and_its_episodes(store, text):
    page = _Balance()
    page.feed(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        assert link[1:] in page.ids if link.startswith("#") else (store.folder / link).is_file()
    for task in TASKS:
        assert page.links.count("#" + task.replace("/", "-")) >= 1


def test_it_needs_no_network_and_runs_its_own_script_alone(text):
    addresses = set(re.findall(r"https?://[^\s\"'<]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert text.count("<script") == text.count("<script>") == 1
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src " in text
    assert f"'sha256-{digest}'" in text
    assert not re.search(r"\b(fetch|XMLHttpRequest|import|eval|WebSocket)\b", script)
    assert not re.search(r"\son\w+=", text.replace(script, ""))
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
    assert rendered(RunStore(store.folder)) == text
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
    assert "tasks unfinished" not in text


def test_a_run_in_which_nothing_is_right_has_a_report(tmp_path):
    store = played(tmp_path)
    only = RunStore.start(tmp_path / "wrong", CONFIG)
    only.append(store.turns(TASKS[2])[0], "x")
    end_all(only)
    names = re.findall(r'<svg role="img" aria-label="([^"]+)"', rendered(only))
    assert names == ["fast_p over p", "speedup by category and mode"]


def test_the_baseline_of_a_task_from_pytorch_is_the_pytorch(tmp_path):
    store = RunStore.start(tmp_path, CONFIG)
    turn = played(tmp_path / "other").turns(TASKS[1])[0]
    evaluation = turn.evaluation.model_copy(update={"task": TASKS[2]})
    store.append(turn.model_copy(update={"task": TASKS[2], "evaluation": evaluation}), "x = 1\n")
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


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return rendered(many(tmp_path_factory.mktemp("large"), 200))


class _FirstView(HTMLParser):
    """Counts what a browser with scripts builds before anything is opened."""

    def __init__(self):
        super().__init__()
        self.elements, self.folded, self.inside = 0, 0, False

    def handle_starttag(self, tag, attrs):
        self.elements += not self.inside
        self.inside = self.inside or tag == "noscript"
        self.folded += tag == "noscript"

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "noscript"


def test_a_page_of_200_tasks_is_small_and_folded(large):
    assert len(large.encode()) < 3_000_000
    assert len(re.sub(r"<noscript>.*?</noscript>", "", large, flags=re.DOTALL)) < 1_000_000
    view = _FirstView()
    view.feed(large)
    assert view.folded == 200 + 1  # and the plot by task
    assert view.elements < 10_000


def test_a_page_of_200_tasks_has_everything_without_a_script(large):
    page = _Balance()
    page.feed(large)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert large.count("Compile facts") == 200
    assert large.count("line 7 of what the compiler said") == 200


def test_a_task_is_found_by_what_a_reader_types_and_chooses(text):
    rows = dict(re.findall(r'data-task="([^"]+)" data-words="([^"]+)"', text))
    category = get_task(TASKS[0]).problem.category.lower()
    assert rows["triton2triton-softmax"] == f"{TASKS[0]} {category} wrong_values passed"
    states = re.findall(r'data-state="([^"]+)"', text)
    assert states == ["solved faster", "solved", "unsolved hack"]


def test_marks_are_told_apart_without_colour(text):
    marks = re.findall(r'<span class="mark \w+" role="img" title="([^"]+)">(.)</span>', text)
    assert marks == [("wrong values", "✗"), ("passed", "✓"), ("passed", "✓"), ("hack", "!")]


def test_it_says_when_the_run_was_made_how_long_it_took_and_how(tmp_path):
    store = RunStore.start(tmp_path, CONFIG)
    with store.session("kernel-gym eval --policy 'a b'"):
        pass
    lines = (tmp_path / "sessions.jsonl").read_text().splitlines()
    first, last = map(RunSession.model_validate_json, lines)
    assert (first.ended, first.started) == (None, last.started)
    ended = last.model_copy(update={"started": 86400.0, "ended": 86400.0 + 3700})
    killed = ended.model_copy(update={"started": 1e5, "ended": None})
    write_lines(tmp_path / "sessions.jsonl", [ended, killed])
    text = rendered(RunStore(tmp_path))
    assert "1970-01-02 00:00 UTC · 1 h 1 min · in 2 parts" in text
    assert "kernel-gym eval --policy &#39;a b&#39;" in text


def test_why_an_episode_ended_and_what_was_wrong_with_a_reply_are_shown(tmp_path):
    store = RunStore.start(tmp_path, CONFIG)
    cut = record(TASKS[0], 1).model_copy(update={"problem": "The reply was <cut> off."})
    store.append(cut, "x")
    store.end(TASKS[0], reason="the prompt does not fit")
    text = rendered(store)
    assert "The reply was &lt;cut&gt; off." in text
    assert "after 1 turns: the prompt does not fit" in text


def test_headline_and_table_show_the_same_submission(tmp_path):
    """The best is that with the highest reward, however fast another is on seen shapes."""
    store = RunStore.start(tmp_path, CONFIG.model_copy(update={"turns": 3}))
    sure = passing(2.0, 2.0)
    lucky = passing(3.0, 1.0).model_copy(update={"speedup_low": 1.5})
    store.append(record(TASKS[0], 1, lucky), "x = 1")
    store.append(record(TASKS[0], 2, sure), "x = 2")
    end_all(store)
    measured = measures(store)
    headline = measured.metrics["headline"]
    assert summarise(store).tasks[0].best_turn == 2
    assert headline["geometric_speedup_of_correct"]["value"] == pytest.approx(2.0)
    assert measured.attempts[0]["speedup"] == 2.0


def test_a_hostile_source_stays_text_when_a_folded_task_is_opened(tmp_path):
    store = many(tmp_path, 25)
    bad = "</noscript><img src=x onerror=alert(1)>"
    (tmp_path / store.records()[2].source).write_text(bad)
    text = rendered(store)
    assert bad not in text
    shown = re.sub(r"</?(span|i)( [^>]*)?>", "", text)
    assert "&lt;/noscript&gt;&lt;img src=x onerror=alert(1)&gt;" in shown


def test_a_source_that_was_rewritten_is_shown_once_and_not_as_a_diff():
    lines = [f"y{i} = x{i}" for i in range(20)]
    before, after = "\n".join(lines), "\n".join(line.upper() for line in lines)
    assert highlight_diff(before, after) == ""
    assert "Y3 = X3" in highlight_diff(before, "\n".join([*lines[:3], "Y3 = X3", *lines[4:]]))


def test_right_workloads_that_are_not_timed_share_a_row(tmp_path):
    text = rendered(many(tmp_path, 21))
    rows = re.findall(r"<tr><td>adversarial</td><td>([^<]+)</td>", text)
    assert len(rows) == 21
    assert all(row.count("; ") == 3 for row in rows)

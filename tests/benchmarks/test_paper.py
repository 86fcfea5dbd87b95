"""The technical report is built from stored results: its template holds none."""

import re
from pathlib import Path

import pytest

from benchmarks.figures import BenchmarkError, load_benchmarks
from benchmarks.judges_front import CHART, FRONT_PAGES, front_page, judge_chart
from benchmarks.judges_page import stored_rows
from benchmarks.paper import TEMPLATE, paper_page
from kernel_gym.judges.report import quick_rows, scores

ROOT = Path(__file__).parents[2]
CALL = re.compile(r"\{\{.*?\}\}", re.DOTALL)
CODE = re.compile(r"`[^`]*`")
NAME = re.compile(r"\b[A-Za-z]+\d\w*\b")
"""Names of chips, types and versions: MI300X, gfx942, fp64."""


def template():
    return (ROOT / TEMPLATE).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def stored():
    pytest.importorskip("markdown")  # of the extra `docs`
    return load_benchmarks(ROOT / "benchmarks/results")


def test_the_template_holds_no_digit_of_a_result():
    text = NAME.sub("", CODE.sub("", CALL.sub("", template())))
    assert re.findall(r".*\d.*", text) == []


def test_every_figure_of_the_report_is_stored(stored, monkeypatch):
    monkeypatch.chdir(ROOT)
    page = paper_page(template(), stored)
    assert "{{" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")  # nothing is loaded
    assert page.count("<figure><svg") == 1
    entry = stored.subjects["suite"].entries[0]
    assert f"<strong>{entry.value}</strong> {entry.unit}" in page


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("table('nothing')", "no results of 'nothing'"),
        (
            "figure('suite', 'nothing')",
            r"'nothing' in suite\.json; run: python -m benchmarks renew",
        ),
    ],
)
def test_a_missing_result_names_its_command(stored, monkeypatch, call, message):
    monkeypatch.chdir(ROOT)
    with pytest.raises(BenchmarkError, match=message):
        paper_page(f"{{{{ {call} }}}}", stored)


@pytest.mark.parametrize("page", FRONT_PAGES, ids=str)
def test_a_front_page_has_the_stored_rows_and_is_short(page):
    rows = stored_rows(ROOT / "benchmarks/results/judges")
    text = (ROOT / page).read_text(encoding="utf-8")
    assert front_page(page, text, rows) == text, "run: python -m benchmarks renew"
    assert len(text.split()) < 1000


def test_the_chart_is_that_of_the_stored_rows():
    rows = stored_rows(ROOT / "benchmarks/results/judges")
    chart = judge_chart(scores(quick_rows(rows)))
    assert (ROOT / CHART).read_text(encoding="utf-8") == chart, "run: python -m benchmarks renew"


def test_the_chart_has_a_bar_for_each_judge():
    judged = scores(quick_rows(stored_rows(ROOT / "benchmarks/results/judges")))
    chart = judge_chart(judged)
    assert chart.count("<rect") == len(judged)
    assert chart.index("kernel-gym") < chart.index("tritonbench")  # the fewest errors come first

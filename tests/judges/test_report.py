"""Rates, their intervals, the matrix, and the adapters' texts."""

import ast
import json
from pathlib import Path

import pytest

from benchmarks.judges_page import ROWS as STORED
from benchmarks.judges_page import judges_pages, stored_rows
from kernel_gym.errors import InputError
from kernel_gym.judges import corpus
from kernel_gym.judges.adapter import NAMES, load_adapter
from kernel_gym.judges.own import NAME
from kernel_gym.judges.page import kind_table, matrix_page, score_table
from kernel_gym.judges.report import (
    ErrorRate,
    badge,
    disagreements,
    held_out,
    present_rows,
    scores,
)
from kernel_gym.judges.verdicts import JudgeAnswer, JudgeVerdict, short_message

ROOT = Path(__file__).parents[2]


def row(name, answer, judge="some", **fields):
    candidate = corpus.find(name)
    return JudgeVerdict(
        judge=judge,
        commit="none",
        candidate=name,
        digest=candidate.digest,
        truth=candidate.truth,
        answer=answer,
        cpu_seconds=1.0,
        **fields,
    )


ROWS = [
    row("relu/right_plain", JudgeAnswer.ACCEPTED, paid=2.0),
    row("relu/right_strided", JudgeAnswer.REFUSED),
    row("relu/wrong_tail", JudgeAnswer.ACCEPTED, paid=2.0, message="<b>fine</b>"),
    row("relu/wrong_half", JudgeAnswer.OPEN),
    row("relu/cheat_library", JudgeAnswer.ACCEPTED, paid=3.0),
    row("relu/cheat_clock", JudgeAnswer.REFUSED),
    row("relu/right_itself", JudgeAnswer.ACCEPTED, paid=1.25),
]


def test_rates_count_errors_of_given_verdicts():
    (score,) = scores(ROWS)
    assert (score.refused_right.errors, score.refused_right.number) == (1, 2)
    assert (score.accepted_wrong.errors, score.accepted_wrong.number) == (1, 1)
    assert (score.accepted_cheats.errors, score.accepted_cheats.number) == (1, 2)
    assert (score.paid_cheats, score.itself, score.open) == (3.0, (1.25, 1.25), 1)


def test_intervals_are_exact():
    rate = ErrorRate.of(0, 40)
    assert rate.low == 0
    assert rate.high == pytest.approx(1 - 0.025 ** (1 / 40))
    assert ErrorRate.of(0, 0).text == "-"


def test_rows_of_an_older_corpus_are_left_out():
    old = ROWS[0].model_copy(update={"digest": "0" * 16})
    assert present_rows([old]) == []


def test_held_out_rows_are_those_of_the_drawn_third():
    drawn = [one.name for one in corpus.candidates() if one.held_out]
    assert {one.candidate for one in held_out(ROWS)} == {r.candidate for r in ROWS} & set(drawn)


def test_tables_and_page_show_errors():
    assert "| some | 1 of 2: 50.0 %" in score_table(scores(ROWS))
    assert "| `wrong_tail` | 1/1 |" in kind_table(ROWS)
    page = matrix_page(ROWS)
    assert '<td class="error" title="&lt;b&gt;fine&lt;/b&gt;">accepted 2</td>' in page
    assert page.count('class="open"') == 1


def test_a_badge_states_the_errors_of_one_judge():
    stated = json.loads(badge(scores(ROWS)))
    assert stated["message"] == "refuses 1/2 right, accepts 1/1 wrong and 1/2 cheats"
    assert (stated["label"], stated["color"]) == ("some", "red")
    assert json.loads(badge(scores(ROWS[1:2])))["color"] == "yellow"
    assert json.loads(badge(scores(ROWS[:1])))["color"] == "brightgreen"
    with pytest.raises(InputError, match="found 2"):
        badge(scores([*ROWS, row("relu/right_plain", JudgeAnswer.REFUSED, judge="other")]))
    with pytest.raises(InputError, match="no verdict"):
        badge(scores([row("relu/wrong_half", JudgeAnswer.OPEN)]))


def test_verdicts_that_differ_from_the_truth_are_listed():
    chosen = [corpus.find("relu/right_strided"), corpus.find("relu/cheat_clock")]
    first, last = disagreements(ROWS, chosen)
    assert first.startswith("disagrees: relu/right_strided is right, some refused")
    assert last == "1 of 2 verdicts differ from the stated truth"


def test_messages_have_no_folders():
    text = "File '/home/someone/x/judge.py', line 3: 1/2\n\x1b[0m"
    assert short_message(text) == "File 'judge.py', line 3: 1/2 [0m"


@pytest.mark.parametrize("name", NAMES)
def test_adapters_write_texts_that_parse(name, tmp_path):
    adapter = load_adapter(name)
    assert adapter.name == name
    with pytest.raises(InputError, match="found no"):
        adapter.prepare(corpus.find("swiglu/right_plain"), tmp_path, tmp_path)
    ast.parse(adapter.script)


def test_stored_rows_are_of_one_commit_and_of_this_corpus():
    rows = stored_rows(ROOT / STORED)
    assert len({one.runner for one in rows}) == 1
    assert not any(one.runner.endswith("+") for one in rows), "the tree that made them was changed"
    quick = {one.digest for one in (*corpus.quick(), *corpus.against_itself())}
    for judge in {one.judge for one in rows}:
        own = [one for one in rows if one.judge == judge]
        assert {one.digest for one in own} == quick, judge
        assert len({(one.commit, one.runner) for one in own}) == 1, judge


def test_a_judge_stored_on_the_whole_corpus_has_all_of_it_at_one_commit():
    rows = stored_rows(ROOT / STORED / "whole")
    assert len({one.runner for one in rows}) == 1
    assert not any(one.runner.endswith("+") for one in rows)
    compared = {one.judge: one.commit for one in stored_rows(ROOT / STORED)}
    chosen = sorted(one.digest for one in (*corpus.candidates(), *corpus.against_itself()))
    for judge in {one.judge for one in rows}:
        own = [one for one in rows if one.judge == judge]
        assert sorted(one.digest for one in own) == chosen, judge
        if judge != NAME:  # our commit is that of the tree
            assert {one.commit for one in own} == {compared[judge]}, judge


def test_rows_of_the_second_corpus_are_whole_and_of_one_commit():
    rows = stored_rows(ROOT / STORED / "sums")
    assert len({one.runner for one in rows}) == 1
    assert not any(one.runner.endswith("+") for one in rows)
    compared = {one.judge: one.commit for one in stored_rows(ROOT / STORED)}
    for judge in {one.judge for one in rows}:
        own = [one for one in rows if one.judge == judge]
        assert sorted(one.digest for one in own) == sorted(one.digest for one in corpus.sums())
        if judge != NAME:
            assert {one.commit for one in own} == {compared[judge]}, judge


def test_the_pages_have_the_stored_rows():
    for page, text in judges_pages(ROOT).items():
        assert text == page.read_text(), page

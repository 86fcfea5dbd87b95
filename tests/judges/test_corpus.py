"""The corpus: its size, its headers, and the part that no rule is made for."""

import ast
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from kernel_gym.errors import InputError
from kernel_gym.judges import corpus

ROOT = Path(__file__).parents[2]
OF_THE_JUDGE = (
    "judge",
    "devices",
    "exploits",
    "evaluator.py",
    "worker",
    "launcher",
    "plans",
    "sim",
    "simulated_rocm",
    "sandbox",
    "hidden.py",
)


EVERY = (*corpus.candidates(), *corpus.sums())


def test_the_corpus_is_large_enough():
    every = corpus.candidates()
    assert len({one.problem.name for one in every}) >= 40
    assert len(every) >= 400
    assert len({one.name for one in EVERY}) == len(EVERY)
    assert min(Counter(one.problem.name for one in every).values()) >= 10
    assert {one.truth for one in every} == set(corpus.CLASSES)


def test_headers_state_class_kind_evidence_and_argument():
    for one in EVERY:
        fields = corpus.header(one.source)
        assert set(fields) == {"Class", "Kind", "Evidence", "Truth"}, one.name
        assert one.kind.startswith(one.truth)
        assert (one.evidence == "none") == (one.truth == "right")
        assert one.evidence in (*corpus.FACTS, "none")


def test_each_file_stands_alone():
    for one in EVERY:
        assert "$" not in one.source + one.problem.source
        tree = ast.parse(one.source)
        assert any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body)


def test_about_a_third_is_held_out_of_each_class():
    for truth in corpus.CLASSES:
        drawn = [one.held_out for one in EVERY if one.truth == truth]
        assert 0.25 < sum(drawn) / len(drawn) < 0.45


def test_no_file_of_the_judge_names_the_corpus():
    names = {one.name for one in EVERY} | {one.kind for one in EVERY}
    names -= {"right_plain"}
    for room in OF_THE_JUDGE:
        place = ROOT / "kernel_gym" / room
        files = [place] if place.is_file() else sorted(place.rglob("*.py"))
        assert files
        for path in files:
            text = path.read_text(encoding="utf-8")
            assert "kernel_gym.judges" not in text, path
            assert not [name for name in names if name in text], path


def test_skipped_candidates_exist_as_templates():
    table = tomllib.loads((corpus.FOLDER / "problems.toml").read_text(encoding="utf-8"))
    for family, problems in table.items():
        for row in problems.values():
            for kind in row.get("skip", ()):
                assert (corpus.FOLDER / family / f"{kind}{corpus.SUFFIX}").is_file()


def test_the_quick_set_has_each_kind():
    assert {one.kind for one in corpus.quick()} == {one.kind for one in corpus.candidates()}
    assert len(corpus.quick()) <= 80


def test_an_unknown_name_is_refused():
    with pytest.raises(InputError, match="no candidate 'relu/none'"):
        corpus.find("relu/none")


def test_the_second_corpus_has_programs_that_work_together():
    every = corpus.sums()
    assert len(every) >= 80
    assert {one.truth for one in every} == set(corpus.CLASSES)
    assert {"race", "outside"} <= {one.evidence for one in every}
    assert not {one.problem.name for one in every} & {
        one.problem.name for one in corpus.candidates()
    }

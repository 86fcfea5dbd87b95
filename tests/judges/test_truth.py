"""The oracles agree with headers, and notice a header that is false."""

import dataclasses

import pytest

from kernel_gym.judges import corpus
from kernel_gym.judges.forked import call_forked
from kernel_gym.judges.truth import settle

KINDS = ("right_plain", "wrong_tail", "cheat_content")


@pytest.mark.slow
@pytest.mark.sweep
def test_claims_hold_and_a_false_one_does_not(tmp_path):
    chosen = [corpus.find(f"excess/{kind}") for kind in KINDS]
    record = tmp_path / "facts.jsonl"
    assert [one.holds for one in settle(chosen, record)] == [True] * len(chosen)
    lines = record.read_text()
    false = dataclasses.replace(chosen[1], truth="right", evidence="none")
    assert [one.holds for one in settle([false], record)] == [False]
    assert record.read_text() == lines, "what the record has is not observed again"


@pytest.mark.slow
@pytest.mark.sweep
def test_races_and_reads_outside_are_observed():
    kinds = ("right_last", "wrong_order", "wrong_race", "wrong_outside")
    settled = list(settle([corpus.find(f"rms_all/{kind}") for kind in kinds]))
    assert [one.holds for one in settled] == [True] * len(kinds)
    right, order, race, outside = (one.facts for one in settled)
    assert right == {"compiled": (), "interpreted": ()}
    assert order["interpreted"] == race["interpreted"] == ("race",)
    assert "outside" in outside["compiled"]


@pytest.mark.sweep
def test_all_claims_hold():
    failed = [one.candidate.name for one in settle(corpus.candidates()) if not one.holds]
    assert failed == []


def raise_unprintable():
    class Unprintable(Exception):
        def __str__(self):
            raise ValueError

    raise Unprintable


def test_a_child_that_hangs_or_ends_is_an_error():
    hung = call_forked(lambda: __import__("time").sleep(60), 0.2)
    assert hung["error"] == "not done in 0 s"
    assert "ended without" in call_forked(lambda: __import__("os")._exit(3), 30)["error"]
    assert call_forked(lambda: 1 // 0, 30)["error"].startswith("ZeroDivisionError")
    assert call_forked(lambda: {1, 2}, 30)["error"].startswith("TypeError")
    assert "ended without" in call_forked(raise_unprintable, 30)["error"]
    assert call_forked(lambda: [1, "a"], 30)["value"] == [1, "a"]


def test_a_child_leaves_its_parent_as_it_was():
    import time

    def patch() -> int:
        time.time = lambda: 0.0
        return int(time.time())

    assert call_forked(patch, 30)["value"] == 0
    assert time.time() > 1

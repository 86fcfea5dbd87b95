"""Figures from files of findings: complete ones are counted, incomplete ones are refused."""

import datetime

import pytest

from benchmarks.figures import BenchmarkEntry, Subject
from benchmarks.renewal import DEVICE, count_right, kept_where_equal
from kernel_gym.commands.exploits import SUITE
from kernel_gym.errors import InputError
from kernel_gym.exploits.loader import load_exploits
from kernel_gym.exploits.runner import Finding
from kernel_gym.records import Outcome
from tests.records import evaluation

EXPLOITS = load_exploits(SUITE)[:3]


def findings():
    """One exploit that is refused as expected, one that passes and gains, one that is refused."""
    outcomes = (Outcome.PASSED, *(sorted(e.expected)[0] for e in EXPLOITS[1:]))
    return [
        Finding(exploit, evaluation(outcome))
        for exploit, outcome in zip(EXPLOITS, outcomes, strict=True)
    ]


def test_blocked_exploits_are_counted(tmp_path):
    assert count_right(EXPLOITS, findings(), tmp_path) == 2


def test_a_file_without_a_finding_on_each_candidate_is_refused(tmp_path):
    with pytest.raises(InputError, match=f"no finding on {EXPLOITS[2].name}.*--device {DEVICE}"):
        count_right(EXPLOITS, findings()[:2], tmp_path / "findings.jsonl")


def entry(value, commit, day):
    return BenchmarkEntry(
        id="rate",
        subject="speed",
        metric="Tasks",
        value=value,
        unit="of 9",
        clock="none",
        machine="epyc",
        command="python -m benchmarks tasks",
        commit=commit,
        date=datetime.date(2026, 11, day),
        counts={"tasks": 9},
    )


@pytest.mark.parametrize(("value", "commit"), [(7, "aaaaaaa"), (8, "bbbbbbb")])
def test_a_figure_keeps_its_commit_unless_it_changes(value, commit):
    stored = Subject(title="Speed", entries=(entry(7, "aaaaaaa", 1),))
    today = Subject(title="Speed", entries=(entry(value, "bbbbbbb", 2),))
    assert kept_where_equal(today, stored).entries[0].commit == commit

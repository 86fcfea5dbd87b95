"""Figures from files of findings: complete ones are counted, incomplete ones are refused."""

import pytest

from benchmarks.renewal import DEVICE, count_right
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

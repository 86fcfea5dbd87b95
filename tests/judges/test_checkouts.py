"""Adapters on checkouts of their judges: KERNEL_GYM_JUDGES names a folder with one of each name."""

import dataclasses
import os
from pathlib import Path

import pytest

from kernel_gym.judges import corpus
from kernel_gym.judges.adapter import NAMES, load_adapter
from kernel_gym.judges.run import run_judge
from kernel_gym.judges.verdicts import JudgeAnswer
from tests.judges.own_examples import EXAMPLES

FOLDER = Path(os.environ.get("KERNEL_GYM_JUDGES", "."))
pytestmark = pytest.mark.skipif(
    "KERNEL_GYM_JUDGES" not in os.environ,
    reason="KERNEL_GYM_JUDGES names no folder with checkouts of the judges",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_judge_accepts_a_right_kernel_and_refuses_a_crash(name):
    right = corpus.find("swiglu/right_plain")
    crash = dataclasses.replace(right, source=right.source.replace("y = torch", "y = torc"))
    adapter, kept = load_adapter(name), []
    run_judge(adapter, FOLDER / name, [right, crash], kept.append)
    refused = JudgeAnswer.ACCEPTED if getattr(adapter, "static", False) else JudgeAnswer.REFUSED
    assert [one.answer for one in kept] == [JudgeAnswer.ACCEPTED, refused], kept


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_judge_accepts_the_example_of_its_repository(name):
    adapter, kept = dataclasses.replace(load_adapter(name), write=EXAMPLES[name]), []
    run_judge(adapter, FOLDER / name, [corpus.find("relu/right_plain")], kept.append)
    assert [one.answer for one in kept] == [JudgeAnswer.ACCEPTED], kept

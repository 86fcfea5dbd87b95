"""The device charges a call of an operator what the judge charges for it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def found():
    done = subprocess.run(
        [sys.executable, "-m", "tests.torch_device.one_clock"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_call_takes_as_long_as_by_the_judge(found):
    times = {name: (device, judge) for name, (device, judge) in found["times"].items()}
    assert len(times) > 30
    assert min(device for device, _ in times.values()) > 0
    other = {n: pair for n, pair in times.items() if pair[0] != pytest.approx(pair[1], rel=1e-9)}
    assert other == {}


def test_calls_of_one_form_are_priced_once(found):
    """Numbers that are computed with may differ."""
    assert found["asked"] == 3

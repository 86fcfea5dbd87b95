"""Hostile submissions among honest ones: no episode is lost, and the honest ones still pass."""

import json

import pytest
from typer.testing import CliRunner

from kernel_gym.cli import app


@pytest.mark.slow
def test_a_mix_loses_no_episode():
    arguments = "bench hostile --count 10 --workers 2 --device sim:gfx942 --json"
    result = CliRunner().invoke(app, arguments.split())
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["honest"]["outcomes"] == {"passed": 10}
    assert found["hostile"]["outcomes"]["passed"] == 7
    assert sum(found["hostile"]["outcomes"].values()) == 10
    assert found["honest"]["lost"] == found["hostile"]["lost"] == 0
    assert found["ratio"] > 0

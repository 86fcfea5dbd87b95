"""Adapters stay thin: what is long belongs to the core that they share."""

import pytest

from tests.test_architecture import ROOT

MAX_LINES = 120
ADAPTERS = sorted((ROOT / "kernel_gym" / "envs" / "adapters").glob("*.py"))


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.stem)
def test_an_adapter_is_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES

"""Packages in models of real width: the rows of the table, on the host and with tiny models."""

from __future__ import annotations

import pytest

from benchmarks.deployment import measured
from kernel_gym.packages.models import child, measure
from tests.packages.conftest import write


def test_a_row_has_both_phases_and_says_why_no_kernel_ran(tmp_path, monkeypatch):
    pytest.importorskip("kernels")
    pytest.importorskip("transformers")
    monkeypatch.setattr(measured, "WIDE", {"hidden_size": 64, "intermediate_size": 64})
    monkeypatch.setattr(measure, "MEASURED_CALLS", 1)
    monkeypatch.setattr(measure, "MEASURED_PAIRS", 1)
    monkeypatch.setattr(measure, "MEASURED_TOKENS", 1024)
    loaded = child.load(write(tmp_path / "package", "torch2triton/rms_norm"), "cpu")
    row = measured.row_of(loaded, "llama", "rms_norm", "cpu")
    assert [(phase["name"], phase["kernel_calls"]) for phase in row["phases"]] == [
        ("prefill", 0),
        ("decode", 0),
    ]
    assert all("no kernel" in phase["fallback_reason"] for phase in row["phases"])
    assert row["phases"][0]["tokens"] == 2 * 512, "each prompt is as long as the model takes"
    shown = measured.table({"gpu": "none", "date": "today", "rows": [row]}).splitlines()
    assert shown[-1].startswith("| llama | `rms_norm` |")
    assert shown[-1].count("|") == shown[-2].count("|")

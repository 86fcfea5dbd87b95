"""Tables of commands on a terminal of 80 characters: what tells the rows apart is whole."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from kernel_gym.commands import exploits as exploits_command
from kernel_gym.commands import plan as plan_command
from kernel_gym.commands.sim import show as sim_command
from kernel_gym.commands.tables import folding_table
from kernel_gym.exploits import SUITE
from kernel_gym.exploits.loader import load_exploits
from kernel_gym.exploits.runner import Finding
from kernel_gym.records import Outcome, Stage
from kernel_gym.sim.timing.profile import profile_text
from tests.records import failure

ROOT = Path(__file__).parent.parent
NAME = "triton_per_fused_add_native_layer_norm_backward_gelu_mul_view_4"
BY_HAND = {"tables.py", "common.py", "compare.py", "metrics_table.py", "tasks.py"}
"""Modules that make tables by hand: names of this project, in columns that are measured."""


@pytest.fixture
def narrow(monkeypatch):
    """A console of 80 characters in place of those of the commands."""
    console = Console(width=80, file=io.StringIO())
    for module in (exploits_command, plan_command, sim_command):
        monkeypatch.setattr(module, "console", console)
    return console


def printed(console):
    text = console.file.getvalue()
    assert "…" not in text
    return text


def first_column(text, width):
    """The cells of the first column one after the other, without their folds."""
    return "".join(line[:width].strip() for line in text.splitlines())


def test_no_cell_is_lost_on_a_narrow_terminal(narrow):
    table = folding_table("kernel", "us", "bound by", right=("us",))
    table.add_row("x" * 100, "12.5", "latency")
    narrow.print(table)
    text = printed(narrow)
    assert text.count("x") == 100
    assert "12.5" in text
    assert "latency" in text


def test_kernels_of_a_program_have_their_whole_names(narrow):
    kernel = {"launches": 1000, "grid": [304, 10, 20], "block": [256, 1, 1], "seconds": 1.2e-3}
    kernel |= {"longest": 1e-4, "profile": {"bound_by": "latency"}}
    result = {"processes": [1], "launches": 1000, "device": "sim:gfx942", "kernels": {NAME: kernel}}
    narrow.print(sim_command._table(result))
    text = printed(narrow)
    assert NAME in re.sub(r"\s+", "", first_column(text, text.index("launches", 60) % 81))
    for cell in ("1000", "304x10x20", "256x1x1", "1200.00", "100.00", "latency"):
        assert cell in text


def test_exploits_are_named_in_one_line(narrow):
    failed = failure(Outcome.RUNTIME_ERROR, Stage.TRAIN)
    exploits = load_exploits(SUITE)
    longest = sorted(exploits, key=lambda exploit: len(exploit.name))[-8:]
    exploits_command._show([Finding(exploit, failed) for exploit in longest])
    text = printed(narrow)
    for exploit in longest:
        assert exploit.name in text
        assert exploit.task.id in text


def test_the_lines_of_a_profile_end_with_their_line_numbers():
    source = f"/tmp/cache/{'c' * 48}.py:1234"
    hot = [{"share": 0.5, "text": "v_" + "x" * 90, "source": source}]
    needs = {f"{key}_us": 1.0 for key in ("launch", "cu", "matrix", "hbm", "mall", "l2", "atomics")}
    profile = {"us": 4.0, "bound_by": "latency", "of_peak": {}, "utilisation": {}, "stalls": {}}
    profile["occupancy"] = {"waves_per_simd": 1, "workgroups_per_cu": 1, "limiter": "vgprs"}
    profile["bytes"] = dict.fromkeys(("read", "written", "l2", "hbm"), 1.0)
    text = profile_text("k", {**profile, **needs, "lines": [], "hot": hot})
    (line,) = [line for line in text.splitlines() if "50.0%" in line]
    assert line.endswith("ccc.py:1234")
    assert "x ...  ..." in line
    assert len(line) <= 120


def test_tables_are_made_in_one_place():
    folders = (ROOT / "kernel_gym" / "commands", ROOT / "benchmarks")
    modules = {
        path.name
        for folder in folders
        for path in folder.rglob("*.py")
        if re.search(r"\bTable\(", path.read_text(encoding="utf-8"))
    }
    assert modules == BY_HAND

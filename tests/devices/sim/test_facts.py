"""Facts of a call on the simulator, and whether its time was ever compared."""

from types import SimpleNamespace

import pytest

from kernel_gym.devices.sim.facts import OPERATORS, CallFacts

PROFILE = {
    "bound_by": "latency",
    "utilisation": {"matrix": 0.0},
    "scratch_bytes": 0,
    "atomics_us": 0.0,
    "code_bytes": 1000,
    "launch_us": 2.0,
}
KERNEL = SimpleNamespace(
    binary="b", occupancy=lambda *_: SimpleNamespace(waves_per_simd=8, limiter="")
)
FIELDS = "name vgprs agprs sgprs vgpr_spills sgpr_spills lds_bytes scratch_bytes instructions"


def used(arch, *launches):
    facts = CallFacts(arch)
    for seconds, changed in launches:
        kernel = SimpleNamespace(**vars(KERNEL), **dict.fromkeys(FIELDS.split(), 0))
        facts.begin(kernel, 64, 0)
        facts.end(kernel, SimpleNamespace(seconds=seconds, profile=PROFILE | changed))
    return facts


def test_a_launch_like_compared_ones_has_an_interval():
    assert used("gfx942", (30e-6, {})).record(30e-6)["uncalibrated"] == ""
    assert "gfx90a" in used("gfx90a", (30e-6, {})).record(30e-6)["uncalibrated"]


@pytest.mark.parametrize(("seconds", "reason"), [(2e-6, ""), (20e-6, "bound by nothing known")])
def test_a_tenth_of_the_time_may_be_unknown(seconds, reason):
    facts = used("gfx942", (30e-6, {}), (seconds, {"bound_by": "nothing known"}))
    words = facts.record(30e-6 + seconds)["uncalibrated"]
    assert reason in words
    assert bool(words) == bool(reason)


def test_operators_of_pytorch_are_named():
    assert used("gfx942", (30e-6, {})).record(90e-6)["uncalibrated"] == OPERATORS

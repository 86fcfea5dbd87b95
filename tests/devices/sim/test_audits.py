"""Which launches are audited, and what counts as trying out kernels."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kernel_gym.devices.base import Audit
from kernel_gym.devices.sim.audits import AUDITED_SHARE, Audits
from kernel_gym.sim.engine.engine import Engine
from tests.sim.support import kernel_text

USES_TOO_EARLY = "\ts_load_dword s4, s[0:1], 0x0\n\ts_add_i32 s5, s4, 1"
WAITS = USES_TOO_EARLY.replace("\n", "\n\ts_waitcnt lgkmcnt(0)\n")


@pytest.fixture(scope="module")
def kernels():
    engine = Engine(threads=1)
    return SimpleNamespace(
        waits=engine.load(kernel_text(WAITS)), early=engine.load(kernel_text(USES_TOO_EARLY))
    )


def drawn(kernel, audit, seed=3, count=2000, trusted=False):
    audits = Audits(seed, trusted)
    audits.begin(audit)
    return [audits.draw(kernel) for _ in range(count)]


@pytest.mark.parametrize("audit", [Audit.DRAWN, Audit.AGAIN])
def test_a_share_of_the_launches_is_audited(kernels, audit):
    share = sum(drawn(kernels.waits, audit)) / 2000
    assert share == pytest.approx(AUDITED_SHARE, rel=0.25)


def test_which_ones_depends_on_the_seed_alone(kernels):
    assert drawn(kernels.waits, Audit.DRAWN) == drawn(kernels.waits, Audit.DRAWN)
    assert drawn(kernels.waits, Audit.DRAWN) != drawn(kernels.waits, Audit.DRAWN, seed=4)


def test_a_kernel_that_may_use_loads_too_early_is_audited_always(kernels):
    assert all(drawn(kernels.early, Audit.DRAWN))
    assert not any(drawn(kernels.early, Audit.OFF))


def test_our_own_kernels_are_not_audited(kernels):
    assert not any(drawn(kernels.early, Audit.DRAWN, trusted=True))


def record(kernel, *texts, launched):
    audits = Audits(0, trusted=False)
    audits.begin(Audit.ON)
    for text in texts:
        audits.load(text.encode(), kernel)
    for number in launched:
        audits.launch(number, kernel, audited=True)
    return audits.record()


def test_a_kernel_that_is_loaded_twice_is_not_tried_out(kernels):
    assert not record(kernels.waits, "a", "a", launched=[0, 1])["tuned"]
    assert not record(kernels.waits, "a", "b", launched=[0])["tuned"]
    assert record(kernels.waits, "a", "b", launched=[0, 1])["tuned"]


def test_only_new_machine_codes_are_tried_out(kernels):
    audits = Audits(0, trusted=False)
    for text in "ab":
        audits.load(text.encode(), kernels.waits)
    audits.begin(Audit.DRAWN)
    for text in "ab":
        audits.load(text.encode(), kernels.waits)
    for number in range(4):
        audits.launch(number, kernels.waits, audited=number == 1)
    result = audits.record()
    assert not result["tuned"]
    assert len(result["codes"]) == 2
    assert len(result["audited"]) == 1

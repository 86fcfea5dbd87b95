"""Stored plans: what is written is read back, and a damaged or foreign file is refused."""

from __future__ import annotations

import zlib

import pytest
import torch

from kernel_gym.devices import plan_store
from kernel_gym.devices.plan_recordings import PlannedCall
from kernel_gym.devices.plan_store import EvaluationPlans, NoPlanError, PlanStore
from kernel_gym.plans.identity import plan_hash
from kernel_gym.plans.types import (
    BufferRole,
    BufferView,
    CodeForm,
    LaunchPlan,
    LaunchStep,
    PlanBuffer,
    PlanCode,
    PlanKernel,
    ReadStep,
    UploadStep,
)

VIEW = BufferView(0, 0, (2,), (1,), "int8")
PLAN = LaunchPlan(
    "gfx942",
    (PlanCode(CodeForm.ASSEMBLER, b"s_endpgm\n" * 100),),
    (PlanKernel(0, "k"),),
    (PlanBuffer(BufferRole.INPUT, 16),),
    (LaunchStep(0, (1, 1, 1), (64, 1, 1), 0, ()), UploadStep(0, 0, b"constant")),
    (VIEW,),
)
READS = LaunchPlan(
    PLAN.arch, PLAN.codes, PLAN.kernels, PLAN.buffers, (*PLAN.steps, ReadStep(VIEW, b"ab")), (VIEW,)
)


def called(plan):
    return PlannedCall(plan, plan_hash(plan), ("aten::mm",))


def test_plans_are_stored_once_and_share_their_code(tmp_path):
    store = PlanStore(tmp_path)
    names = [store.put(plan) for plan in (PLAN, READS, PLAN)]
    assert [store.get(name) for name in names] == [PLAN, READS, PLAN]
    files = sorted(path.parent.name for path in tmp_path.rglob("*.z"))
    assert files == ["codes", "plans", "plans"]
    assert sum(path.stat().st_size for path in tmp_path.rglob("codes/*")) < 100


def test_a_plan_of_other_content_is_refused(tmp_path):
    store = PlanStore(tmp_path)
    name, other = store.put(PLAN), store.put(READS)
    path, foreign = (tmp_path / "plans" / f"{one}.z" for one in (name, other))
    path.write_bytes(foreign.read_bytes())
    with pytest.raises(NoPlanError, match="another digest"):
        store.get(name)
    for damaged in (
        b"",
        b"no archive",
        foreign.read_bytes()[:-9],
        zlib.compress(b"[3]"),
        zlib.compress(b"[" * 99_999),
    ):
        path.write_bytes(damaged)
        with pytest.raises(NoPlanError):
            store.get(name)
    with pytest.raises(NoPlanError, match="names no digest"):
        store.get("../plans/x")


def test_a_plan_that_depends_on_values_is_stored_for_its_data(tmp_path):
    store = PlanStore(tmp_path)
    first, second = ({"x": torch.full((4,), value)} for value in (1.0, 2.0))
    plans = EvaluationPlans(store, "one")
    plans.keep("shape", first, called(READS))
    plans.keep("other shape", first, called(PLAN))
    plans.write()
    again = EvaluationPlans(store, "one", again=True)
    assert again.find("shape", first) == called(READS)
    assert again.find("other shape", second) == called(PLAN)
    with pytest.raises(NoPlanError, match="no stored plan"):
        again.find("shape", second)
    with pytest.raises(NoPlanError):
        EvaluationPlans(store, "two", again=True)


@pytest.mark.parametrize("text", [b"[", b"[3]", b'{"a": 3}', b'{"a": {"plan": 3}}', b"[" * 99_999])
def test_a_malformed_list_of_plans_is_refused(tmp_path, text):
    (tmp_path / "evaluations").mkdir()
    (tmp_path / "evaluations/one.z").write_bytes(zlib.compress(text))
    with pytest.raises(NoPlanError, match="list of plans is malformed"):
        EvaluationPlans(PlanStore(tmp_path), "one", again=True)


def test_a_plan_with_more_code_than_any_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(plan_store, "MAX_CODES_BYTES", 800)
    store = PlanStore(tmp_path)
    with pytest.raises(NoPlanError, match="more than 800 bytes"):
        store.get(store.put(PLAN))

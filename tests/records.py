"""Evaluation records made by hand, for the tests of what reads them."""

from __future__ import annotations

from collections.abc import Iterable

from kernel_gym.records import (
    Clock,
    Element,
    Evaluation,
    KernelFacts,
    Outcome,
    Stage,
    WorkloadResult,
)
from kernel_gym.tasks.workload import Kind, Split

SCORES = ("speedup", "speedup_low", "unseen_speedup", "unseen_speedup_low", "retention")


def workload(
    split: Split = Split.TRAIN,
    passed: bool = True,
    speedup: float | None = None,
    message: str = "",
    element: Element | None = None,
    dims: dict[str, int] | None = None,
) -> WorkloadResult:
    """One workload's result; with a speedup it carries the times that give it."""
    kinds = {Split.TRAIN: Kind.TRAIN, Split.UNSEEN: Kind.SCALE_UP}
    times = {}
    if speedup is not None:
        times = {
            "candidate_seconds": 20e-6 / speedup,
            "baseline_seconds": 20e-6,
            "roofline_seconds": 4e-6,
            "speedup": speedup,
            "speedup_low": speedup,
            "speedup_high": speedup,
            "launches": 1,
        }
    return WorkloadResult(
        dims=dims or {"rows": 64, "cols": 1000},
        split=split,
        kind=kinds.get(split, Kind.ADVERSARIAL),
        distribution="normal",
        passed=passed,
        message=message,
        element=element,
        **times,
    )


def evaluation(
    outcome: Outcome,
    stage: Stage = Stage.DONE,
    workloads: Iterable[WorkloadResult] = (),
    task: str = "triton2triton/softmax",
    **fields,
) -> Evaluation:
    """An evaluation on the simulator with the given fields.

    It may contradict itself (a wrong kernel with a speedup), which a record that is read may not:
    rewards and feedback must give an answer for any record.
    """
    scores = {name: fields.pop(name) for name in SCORES if name in fields}
    record = Evaluation(
        protocol_version="1",
        task=task,
        device="sim:gfx942",
        clock=fields.pop("clock", Clock.MODELLED),
        source_sha256="0" * 64,
        outcome=Outcome.RUNTIME_ERROR,
        stage=Stage.TRAIN,
        workloads=tuple(workloads),
        **fields,
    )
    return record.model_copy(update={"outcome": outcome, "stage": stage, **scores})


def failure(outcome: Outcome, stage: Stage, **fields) -> Evaluation:
    """An evaluation that ended early."""
    return evaluation(outcome, stage, message="it went wrong", **fields)


def passing(train: float, unseen: float, task: str = "triton2triton/softmax") -> Evaluation:
    """A correct kernel with these speedups."""
    kernel = KernelFacts(
        name="softmax_kernel",
        vgprs=48,
        sgprs=24,
        vgpr_spills=0,
        lds_bytes=1024,
        instructions=210,
        waves_per_simd=8.0,
        occupancy_limiter="vgprs",
        bound_by="hbm",
    )
    return evaluation(
        Outcome.PASSED,
        workloads=[
            workload(Split.TRAIN, speedup=train),
            workload(Split.TRAIN, speedup=train, dims={"rows": 128, "cols": 4096}),
            workload(Split.ADVERSARIAL, dims={"rows": 1, "cols": 1}),
            workload(Split.UNSEEN, speedup=unseen, dims={"rows": 33, "cols": 2503}),
        ],
        task=task,
        kernels=(kernel,),
        speedup=train,
        speedup_low=train,
        unseen_speedup=unseen,
        unseen_speedup_low=unseen,
        retention=unseen / train,
        seed=7,
        versions={"triton": "3.9.0"},
        wall_seconds={"build": 0.5},
    )

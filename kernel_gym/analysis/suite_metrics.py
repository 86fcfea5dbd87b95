"""The metrics of suites that others wrote, by the formulas of their code, beside ours.

A row is one workload of a task: the milliseconds of the reference and of the candidate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernel_gym.analysis.estimators import explained_deviance, pass_at_k
from kernel_gym.episodes.history import best_turn
from kernel_gym.records import Evaluation, Outcome, Stage
from kernel_gym.rewards.speed import speed_of_light
from kernel_gym.storage.run_records import TurnRecord
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks.workload import Split

Rows = Sequence[tuple[float, float]]


def accuracy(results: Sequence[bool]) -> float:
    """Returns the share of tasks that are right, of all tasks.

    This is call and execution accuracy of TritonBench, GEAK-eval and KernelBenchX: all three divide
    by the number of all tasks, also for execution.

    Example:
        >>> accuracy([True, False, False, False])
        0.25
    """
    return sum(results) / len(results) if results else 0.0


def speedup_of_sums(rows: Rows) -> float:
    """Returns the sum of reference times over the sum of candidate times (GEAK-eval, KernelBenchX).

    Example:
        >>> speedup_of_sums([(1.0, 1.0), (8.0, 2.0)])
        3.0
    """
    taken = sum(candidate for _, candidate in rows)
    return sum(reference for reference, _ in rows) / taken if taken > 0 else 0.0


def speedup_of_rows(rows: Rows) -> float:
    """Returns the arithmetic mean of the ratios of rows (AgentKernelArena, and GEAK's paper).

    Example:
        >>> speedup_of_rows([(1.0, 1.0), (8.0, 2.0)])
        2.5
    """
    ratios = [reference / candidate for reference, candidate in rows if candidate > 0]
    return sum(ratios) / len(ratios) if ratios else 0.0


def efficiency(rows: Rows) -> float:
    """Returns the best share of a peak over rows (TritonBench, GEAK-eval).

    Their code takes the larger one of the best share of the peak bandwidth and the best share of
    the peak of operations. That is the largest ratio of the time of the roofline, which is the
    longer one of the two, over the time of a row.

    Args:
        rows: The time at the roofline and that of the candidate, of each workload.

    Example:
        >>> efficiency([(1.0, 4.0), (8.0, 16.0)])
        0.5
    """
    return max((bound / candidate for bound, candidate in rows if candidate > 0), default=0.0)


def arena_score(compiled: bool, correct: bool, speedup: float) -> float:
    """Returns AgentKernelArena's score: 20 for a build, 100 for values, 100 times the speedup.

    Example:
        >>> arena_score(True, True, 1.5), arena_score(True, False, 9.0)
        (270.0, 20.0)
    """
    if not compiled:
        return 0.0
    return 20.0 + (100.0 + 100.0 * speedup if correct else 0.0)


def rows_of(evaluation: Evaluation) -> list[tuple[float, float]]:
    """Returns the milliseconds of baseline and candidate on each train workload."""
    return [
        (w.baseline_seconds * 1e3, w.candidate_seconds * 1e3)
        for w in evaluation.workloads
        if w.split is Split.TRAIN and w.baseline_seconds and w.candidate_seconds
    ]


def bounds_of(evaluation: Evaluation) -> list[tuple[float, float]]:
    """Returns the milliseconds at the roofline and of the candidate on each train workload."""
    return [
        (w.roofline_seconds * 1e3, w.candidate_seconds * 1e3)
        for w in evaluation.workloads
        if w.split is Split.TRAIN and w.roofline_seconds and w.candidate_seconds
    ]


def suite_metrics(
    store: RunStore, categories: Mapping[str, str], ks: Sequence[int] = (1,)
) -> dict[str, object]:
    """Returns the metrics of suites for a recorded run.

    Args:
        store: The run.
        categories: The category of each task that counts.
        ks: The numbers of attempts for pass@k; those beyond the samples are left out.
    """
    by_task: dict[str, list[list[TurnRecord]]] = {task: [] for task in categories}
    for task, attempts in by_task.items():
        attempts += [store.turns(task, sample) for sample in range(1, store.config.samples + 1)]
    best = {
        task: best_turn([turn for attempt in attempts for turn in attempt])
        for task, attempts in by_task.items()
    }
    right = {task: turn is not None for task, turn in best.items()}
    called = {
        task: any(was_called(t.evaluation) for attempt in attempts for t in attempt)
        for task, attempts in by_task.items()
    }
    rows = {task: rows_of(turn.evaluation) for task, turn in best.items() if turn is not None}
    sums = [speedup_of_sums(row) for row in rows.values() if row]
    scores = [
        arena_score(called[task], right[task], speedup_of_rows(rows.get(task, [])))
        for task in by_task
    ]
    bounds = [bounds_of(turn.evaluation) for turn in best.values() if turn is not None]
    light = [speed_of_light(turn.evaluation) if turn is not None else 0.0 for turn in best.values()]
    names = [categories[task] for task in by_task]
    deviance = explained_deviance(names, [right[task] for task in by_task], [1.0] * len(names))
    solved = {
        task: sum(best_turn(attempt) is not None for attempt in attempts)
        for task, attempts in by_task.items()
    }
    n = store.config.samples
    return {
        "tasks": len(by_task),
        "call_accuracy": accuracy([*called.values()]),
        "execution_accuracy": accuracy([*right.values()]),
        "speedup_of_sums": sum(sums) / len(sums) if sums else None,
        "speedup_of_rows": _mean([speedup_of_rows(row) for row in rows.values() if row]),
        "efficiency": _mean([efficiency(bound) for bound in bounds if bound]),
        "arena_score": _mean(scores),
        "sol_score": _mean(light),
        "explained_by_category": {
            "share": deviance.explained if deviance else 0.0,
            "freedom": len(set(names)) - 1,
            "p_value": deviance.p_value if deviance else 1.0,
        },
        **{
            f"pass@{k}": _mean([pass_at_k(n, count, k) for count in solved.values()])
            for k in ks
            if k <= n
        },
    }


def was_called(evaluation: Evaluation) -> bool:
    """Whether a candidate was built and its first call returned."""
    early = (Stage.SCREEN, Stage.BUILD)
    crashed = (Outcome.RUNTIME_ERROR, Outcome.TIMEOUT, Outcome.COMPILE_ERROR)
    failed_at_once = evaluation.outcome in crashed and len(evaluation.workloads) <= 1
    return evaluation.stage not in early and not failed_at_once


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None

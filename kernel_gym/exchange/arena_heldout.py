"""The quadrants of AgentKernelArena's held-out evaluation, from unseen workloads."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from kernel_gym.analysis.suite_metrics import arena_score, speedup_of_rows
from kernel_gym.exchange.arena_reports import ArenaTask
from kernel_gym.exchange.imported_replies import ImportedReply
from kernel_gym.tasks.workload import Split

QUADRANTS = ("both_pass", "opt_regression", "both_fail", "opt_improvement")
"""Whether the start kernel (`orig`) and the candidate (`opt`) are right on unseen workloads."""


def heldout_summary(
    replies: Sequence[ImportedReply], tasks: Sequence[ArenaTask]
) -> dict[str, object]:
    """Returns the summary of unseen workloads under the suite's names.

    The start kernel is right on every unseen workload, because admission keeps no other ones. So
    `both_fail` and `opt_improvement` are empty. A right reply without unseen workloads does not
    count. A wrong one counts, whatever workload has shown that it is wrong.

    Args:
        replies: The best reply to each task.
        tasks: The same tasks as the reports show them.
    """
    rows = list(_rows(replies, tasks))
    both = [row for row in rows if row["generalization_status"] == QUADRANTS[0]]
    seen = [row["original_run_speedup"] for row in both]
    unseen = [row["heldout_speedup"] for row in both]
    retention = round(len(both) / len(rows) * 100, 1) if rows else 0.0
    change = _spread(unseen)["mean"] - _spread(seen)["mean"]
    return {
        "total_tasks": len(rows),
        "quadrant_counts": {
            name: sum(row["generalization_status"] == name for row in rows) for name in QUADRANTS
        },
        "conditional_correctness": {
            "description": "P(opt correct on held-out | orig correct on held-out)",
            "orig_correct_count": len(rows),
            "opt_also_correct_count": len(both),
            "rate_pct": retention,
        },
        "heldout_speedup_stats": {
            "description": "Speedup on unseen workloads (both_pass tasks only)",
            "count": len(both),
            **_spread(unseen),
        },
        "original_run_speedup_stats": {
            "description": "Speedup on train workloads (the same tasks)",
            "count": len(both),
            **_spread(seen),
        },
        "generalization_gap": {
            "correctness_retention_pct": retention,
            "speedup_mean_delta": round(change, 4),
        },
        "per_task": rows,
    }


def _rows(replies: Sequence[ImportedReply], tasks: Sequence[ArenaTask]) -> Iterator[dict[str, Any]]:
    for reply, task in zip(replies, tasks, strict=True):
        unseen = [w for w in reply.record.evaluation.workloads if w.split is Split.UNSEEN]
        times = [(w.baseline_seconds or 0.0, w.candidate_seconds or 0.0) for w in unseen]
        ratio = speedup_of_rows(times) if task.right else 0.0
        if task.right and not unseen:
            continue
        yield {
            "task_name": task.name,
            "generalization_status": QUADRANTS[0] if task.right else QUADRANTS[1],
            "orig_heldout_correct": True,
            "opt_heldout_correct": task.right,
            "heldout_speedup": round(ratio, 4),
            "original_run_speedup": round(task.speedup, 4),
            "speedup_delta": round(ratio - task.speedup, 4),
            "heldout_score": round(arena_score(task.compiled, task.right, ratio), 2),
            "original_run_score": round(task.score, 2),
            "error": reply.message or None,
        }


def _spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return dict.fromkeys(("mean", "median", "std"), 0.0)
    return {
        "mean": round(statistics.fmean(values), 4),
        "median": round(statistics.median(values), 4),
        "std": round(statistics.stdev(values), 4) if len(values) > 1 else 0.0,
    }

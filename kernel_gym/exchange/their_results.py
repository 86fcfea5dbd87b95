"""Reads the results of any known suite's evaluator, and sets them beside our verdicts."""

from __future__ import annotations

from pathlib import Path

from kernel_gym.exchange import arena, geak_eval, kernelbenchx
from kernel_gym.exchange.imported_replies import replies_of_sample
from kernel_gym.exchange.suite_results import Pair, ResultError, SuiteResult, paired
from kernel_gym.imports.predictions import RESULT
from kernel_gym.storage.run_store import RunStore

METRICS = "metrics.json"


def read_their_results(path: Path) -> list[SuiteResult]:
    """Reads what a suite's evaluator has left.

    Args:
        path: A run folder of AgentKernelArena, an output folder or `metrics.json` of KernelBenchX,
            or results of GEAK-eval: a file, or the folder of passes.

    Raises:
        ResultError: There is no such file, or it is malformed.
        PredictionError: A file is no JSON.
    """
    if not path.exists():
        raise ResultError(f"{path}: there is no such file or folder")
    if path.is_dir() and any(path.glob(f"*/{RESULT}")):
        return arena.read_arena_run(path)
    if path.is_dir() and (path / METRICS).is_file():
        return kernelbenchx.read_results(path / METRICS)
    if path.name == METRICS:
        return kernelbenchx.read_results(path)
    return geak_eval.read_passes(path)


def beside(store: RunStore, results: list[SuiteResult]) -> list[Pair]:
    """Returns the best reply of each sample to each task, with the suite's result on it.

    Raises:
        StoreError: The run has no reply to a task of an imported suite.
        ResultError: No result is about a task of the run.
    """
    samples = range(1, store.config.samples + 1)
    pairs = [
        pair for sample in samples for pair in paired(replies_of_sample(store, sample), results)
    ]
    if not pairs:
        names = ", ".join(dict.fromkeys(result.name for result in results[:5]))
        raise ResultError(f"{store.folder}: found no reply to {names}")
    return pairs

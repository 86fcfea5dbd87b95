"""The formats of suites in which a run can be written, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from kernel_gym.exchange import arena, geak_agent, geak_eval, kernelbench, kernelbenchx, tritonbench
from kernel_gym.storage.run_store import RunStore


def _workspaces(store: RunStore, out: Path) -> str:
    place, number = arena.write_arena_run(store, out)
    return f"{number} workspaces: {place}"


def _counted(what: str, write: Callable[[RunStore, Path], int], store: RunStore, out: Path) -> str:
    return f"{write(store, out)} {what}: {out}"


SUITE_FORMATS: dict[str, Callable[[RunStore, Path], str]] = {
    "agentkernelarena": _workspaces,
    "geak-eval": partial(_counted, "passes", geak_eval.write_passes),
    "geak-agent": partial(_counted, "memories", geak_agent.write_memory),
    "kernelbenchx": partial(_counted, "results", kernelbenchx.write_results),
    "tritonbench": partial(_counted, "predictions", tritonbench.write_predictions),
    "kernelbench": partial(_counted, "files", kernelbench.write_run_folder),
    **{
        name: partial(_counted, "files", partial(kernelbench.write_solutions, form=name))
        for name in kernelbench.SOLUTIONS
    },
}
"""Each writes the replies of a run to a path, and returns one line on what it has written."""

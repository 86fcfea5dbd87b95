"""Shared code of readers of recorded calls: from an answer of the recorder to a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kernel_gym.imports.readers.base import ConfinedRunner, UnsupportedTask
from kernel_gym.imports.recorded.calls import parse_calls
from kernel_gym.imports.recorded.problem import CALL, Origin, RecordedProblem
from kernel_gym.imports.recorded.stated import StatedWorkload, stated_from_json, stated_to_json
from kernel_gym.imports.recorded.templates import (
    CallTemplate,
    padded,
    strided,
    templates_of,
    widened,
)
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.workload import Split

SEED = 0
RECORDING_SECONDS = 10
"""Processor seconds for the tests of one task. What was recorded until then is used."""

MAX_LAUNCH_INSTRUCTIONS = 200_000_000
"""Wave instructions of a launch of a recording on a simulated device: about four seconds of a
processor. It is stopped then, and the tests continue."""


def record(
    bench: ConfinedRunner,
    origin: Origin,
    mode: Mode,
    files: Mapping[str, bytes],
    options: Mapping[str, object],
) -> dict[str, object]:
    """Records the calls of a task and states its workloads.

    Args:
        bench: Runs code of the suite.
        origin: What is known of the task.
        mode: Its mode.
        files: The files that its tests need.
        options: The options of the recorder, see `kernel_gym.imports.upstream.record`.

    Returns:
        What `problem_of` needs, as JSON values.

    Raises:
        UnsupportedTask: It cannot be imported.
    """
    limits = {"seconds": RECORDING_SECONDS, "launch_instructions": MAX_LAUNCH_INSTRUCTIONS}
    whole = {**limits, "seed": SEED, **options}
    calls, ended = parse_calls(bench.run("record", files, whole))
    unified = templates_of(calls)
    templates = [template for template, _ in unified]
    changes = (strided, padded, widened)
    templates += [new for change in changes for one in templates if (new := change(one))]
    recorded = [{CALL: number, **dims} for number, (_, rows) in enumerate(unified) for dims in rows]
    margin = False
    try:
        stated = bench.state(RecordedProblem(origin, templates, ()), mode, recorded)
    except UnsupportedTask as error:
        if "out of bounds" not in str(error):
            raise
        margin = True
        stated = bench.state(RecordedProblem(origin, templates, (), margin), mode, recorded)
    templates, stated = _used(templates, stated, len(unified))
    return {
        "templates": [template.to_json() for template in templates],
        "stated": [stated_to_json(one) for one in stated],
        "margin": margin,
        "calls": len(calls),
        "ended": ended,
    }


def without_workloads(
    data: Mapping[str, Any], workloads: Sequence[Mapping[str, int]]
) -> dict[str, object]:
    """Returns a record without the workloads of such sizes.

    Args:
        data: What `record` returned.
        workloads: The sizes, each with its call.
    """
    left = [one for one in data["stated"] if one["dims"] not in [dict(dims) for dims in workloads]]
    return {**data, "stated": left}


def not_train(data: Mapping[str, Any]) -> list[Mapping[str, int]]:
    """Returns the sizes of the workloads of a record that the suite's tests do not have."""
    return [one["dims"] for one in data["stated"] if one["split"] != Split.TRAIN]


def _used(
    templates: Sequence[CallTemplate], stated: Sequence[StatedWorkload], recorded: int
) -> tuple[list[CallTemplate], list[StatedWorkload]]:
    """Leaves out templates that were not recorded and that no workload uses."""
    used = sorted({one.dims[CALL] for one in stated if one.dims[CALL] >= recorded})
    number = {old: recorded + new for new, old in enumerate(used)}
    kept = [*templates[:recorded], *(templates[old] for old in used)]
    calls = [number.get(one.dims[CALL], one.dims[CALL]) for one in stated]
    pairs = zip(stated, calls, strict=True)
    return kept, [replace(one, dims={**one.dims, CALL: call}) for one, call in pairs]


def problem_of(origin: Origin, data: Mapping[str, Any]) -> RecordedProblem:
    """Makes the problem of what `record` returned.

    Raises:
        UnsupportedTask: The data is of another version.
    """
    try:
        templates = [CallTemplate.from_json(value) for value in data["templates"]]
        stated = [stated_from_json(value) for value in data["stated"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnsupportedTask(f"the record cannot be read: {error}") from error
    return RecordedProblem(origin, templates, stated, bool(data.get("margin")))

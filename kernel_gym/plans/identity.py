"""Identifies plans: a hash for records, and the first difference between two recordings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from kernel_gym.plans.text import plan_lines
from kernel_gym.plans.types import LaunchPlan, LaunchStep, ReadStep, TorchOperatorStep, UploadStep
from kernel_gym.plans.write import write_plan, write_step


def plan_hash(plan: LaunchPlan) -> str:
    """Returns a SHA-256 digest of everything that a plan holds, as 64 hexadecimal digits."""
    header, *pieces = write_plan(plan)
    digest = hashlib.sha256(_json(header))
    for piece in pieces:
        digest.update(hashlib.sha256(piece).digest())
    return digest.hexdigest()


def dependencies(key: str, plan: LaunchPlan) -> Iterator[tuple[str, str]]:
    """Yields what decides each part of a plan, and the digest of the part.

    A part ends where host code has read values or sizes. The shape of the call, with all that was
    read before, decides the next part. Recordings in which it is the same have the same part. The
    last digest is that of the whole plan.

    Args:
        key: Names the shape of the call.
        plan: The plan.
    """
    state, part = key, hashlib.sha256()
    for step in plan.steps:
        told = None
        if isinstance(step, ReadStep):
            told = step.data
        elif isinstance(step, TorchOperatorStep) and step.told:
            told = _json(write_step(step)["results"])
            step = replace(step, results=None)
        part.update(_json(write_step(step)))
        if isinstance(step, LaunchStep):
            kernel = plan.kernels[step.kernel]
            part.update(_json(vars(kernel)))
            part.update(hashlib.sha256(plan.codes[kernel.code].content).digest())
        if isinstance(step, UploadStep):
            part.update(hashlib.sha256(step.data).digest())
        if told is not None:
            yield state, part.hexdigest()
            state = hashlib.sha256(f"{state} {part.hexdigest()} ".encode() + told).hexdigest()
            part = hashlib.sha256()
    yield state, plan_hash(plan)


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def difference(first: LaunchPlan, second: LaunchPlan) -> str | None:
    """Returns the first line in which two recordings of one shape differ; None if they are equal.

    Args:
        first: A recording.
        second: Another one.
    """
    if first == second:
        return None
    for line, other in zip_longest(plan_lines(first), plan_lines(second), fillvalue="nothing"):
        if line != other:
            return f"found {other!r}, expected {line!r}"
    return "the bytes of arguments or constants differ"

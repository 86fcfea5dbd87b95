"""Identifies plans: a hash for records, and the first difference between two recordings."""

from __future__ import annotations

import hashlib
import json
from itertools import zip_longest

from kernel_gym.plans.text import plan_lines
from kernel_gym.plans.types import LaunchPlan
from kernel_gym.plans.write import write_plan


def plan_hash(plan: LaunchPlan) -> str:
    """Returns a SHA-256 digest of everything that a plan holds, as 64 hexadecimal digits."""
    header, *pieces = write_plan(plan)
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for piece in pieces:
        digest.update(hashlib.sha256(piece).digest())
    return digest.hexdigest()


def difference(first: LaunchPlan, second: LaunchPlan) -> str | None:
    """Returns the first line in which two recordings of one shape differ; None if they are equal.

    Args:
        first: A recording.
        second: Another one.
    """
    if first == second:
        return None
    for one, other in zip_longest(plan_lines(first), plan_lines(second), fillvalue="nothing"):
        if one != other:
            return f"found {other!r}, expected {one!r}"
    return "the bytes of arguments or constants differ"

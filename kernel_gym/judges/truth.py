"""Compares the claim of each header of the corpus with what the two oracles observe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_gym.errors import KernelGymError
from kernel_gym.judges.corpus import Candidate

PLATFORMS = ("compiled", "interpreted")
RACE = "race"
"""The one fact that the interpreted oracle observes alone: values do not show it."""
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Settled:
    """Facts that both oracles observed of one candidate.

    Attributes:
        candidate: The candidate.
        facts: The facts against it by platform; None where the oracle gave no answer.
        errors: Why an oracle gave no answer, by platform.
    """

    candidate: Candidate
    facts: dict[str, tuple[str, ...] | None]
    errors: dict[str, str]

    @property
    def holds(self) -> bool:
        """Whether the oracles agree with the header: its evidence, or no fact at all.

        Both must have answered. A race is a fact of the interpreted oracle alone.
        """
        wanted = self.candidate.evidence
        every = [self.facts.get(platform) for platform in PLATFORMS]
        if wanted == RACE:
            return None not in every and wanted in (self.facts["interpreted"] or ())
        return all(
            facts is not None and (not facts if wanted == "none" else wanted in facts)
            for facts in every
        )


def settle(chosen: Iterable[Candidate], record: Path | None = None) -> Iterator[Settled]:
    """Yields what the oracles observe of candidates.

    Args:
        chosen: The candidates.
        record: A file of JSON lines that is continued: what it has is not observed again. A line
            counts only for the source that it was made for.

    Raises:
        KernelGymError: If an oracle's process fails before it has answered for all of them.
    """
    rows = list(chosen)
    with tempfile.TemporaryDirectory() as folder:
        out = (record or Path(folder) / "facts.jsonl").resolve()
        for platform in PLATFORMS:
            known = _known(out)
            left = [row for row in rows if (platform, row.digest) not in known]
            if left:
                _observe(platform, left, Path(folder), out)
        known = _known(out)
    for row in rows:
        facts: dict[str, tuple[str, ...] | None] = {}
        errors = {}
        for platform in PLATFORMS:
            line = known[platform, row.digest]
            facts[platform] = tuple(line["value"]) if "value" in line else None
            if "error" in line:
                errors[platform] = line["error"]
        yield Settled(row, facts, errors)


def _observe(platform: str, rows: list[Candidate], folder: Path, out: Path) -> None:
    """Runs an oracle on candidates."""
    jobs = folder / "jobs.json"
    jobs.write_text(
        json.dumps(
            [
                {
                    "name": row.name,
                    "digest": row.digest,
                    "problem": row.problem.source,
                    "source": row.source,
                }
                for row in rows
            ]
        )
    )
    oracle = [sys.executable, "-m", "kernel_gym.judges.oracle", platform, str(jobs), str(out)]
    if platform == "compiled":
        oracle = [sys.executable, "-m", "kernel_gym", "sim", "--json", "--", *oracle]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "TRITON_CACHE_DIR": str(folder / "triton")}
    done = subprocess.run(oracle, env=environment, cwd=folder, capture_output=True, text=True)
    known = _known(out)
    if any((platform, row.digest) not in known for row in rows):
        raise KernelGymError(f"the {platform} oracle ended early: {done.stderr.strip()[-300:]}")


def _known(out: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Returns the lines of a record by platform and digest; half a line is left out."""
    if not out.is_file():
        return {}
    lines = [json.loads(line) for line in out.read_text().splitlines() if line.endswith("}")]
    return {(line["platform"], line["digest"]): line for line in lines}

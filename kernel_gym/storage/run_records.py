"""What a run folder holds, as frozen data with a JSON form."""

from __future__ import annotations

from typing import Any

from pydantic import Field, JsonValue

from kernel_gym.records import Evaluation, Record

RUN_SCHEMA_VERSION = 1


class Sampling(Record):
    """How a policy's replies are drawn, what a token costs, and how requests are sent."""

    max_tokens: int = 4096
    """Length of a reply, at most."""
    temperature: float = 1.0
    """0 takes the likeliest token."""
    top_p: float = 1.0
    """Tokens are drawn from the likeliest whose chances add up to this."""
    extra: dict[str, JsonValue] = Field(default_factory=dict)
    """Further keys of a request."""
    prompt_price: float = 0.0
    """US dollars a million tokens read."""
    completion_price: float = 0.0
    """US dollars a million tokens written."""
    parallel: int | None = None
    """Requests at a time; None leaves it to the policy. It may change when a run is resumed."""
    per_minute: float | None = None
    """Requests a minute, at most; None for no limit. It may change when a run is resumed."""


class RunConfig(Record):
    """What was run."""

    schema_version: int = RUN_SCHEMA_VERSION
    policy: str
    suite: str
    tasks: tuple[str, ...]
    device: str
    reward: str
    turns: int
    samples: int = 1
    """Episodes a task."""
    seed: int | None = None
    sampling: Sampling | None = None
    """None for a policy that draws no replies."""

    def identity(self) -> dict[str, Any]:
        """What must be equal for a run to be continued, by name."""
        own = self.model_dump(exclude={"sampling"})
        changeable = {"parallel", "per_minute"}
        drawn = self.sampling.model_dump(exclude=changeable) if self.sampling else {}
        return own | {f"sampling.{name}": value for name, value in drawn.items()}


class TurnRecord(Record):
    """One submission: which, what it earned, what it was found to be."""

    task: str
    turn: int
    """From 1."""
    source: str
    """Where its text lies in the run folder."""
    reward: float | None
    """None when the machine failed and not the submission."""
    terms: dict[str, float]
    evaluation: Evaluation
    sample: int = 1
    """Which episode of the task, from 1."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    """US dollars, where the policy knows what it was charged."""
    problem: str = ""
    """Why the reply may not be what was asked for: it was cut off, or empty."""


class EpisodeEnd(Record):
    """An episode that ended before its last turn."""

    task: str
    sample: int = 1
    turns: int
    """Submissions that it has."""
    reason: str = ""
    """Why it ended, where there is more to say than that the policy wanted no more turns."""


class Session(Record):
    """One time that a command played a run, or went on with it."""

    started: float
    """Seconds since 1970."""
    ended: float | None = None
    """None where it was killed, or is still going on."""
    command: str = ""

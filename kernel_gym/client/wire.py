"""The messages between the client and the service, as JSON."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, RootModel

from kernel_gym.records import Evaluation

MAX_SOURCE_BYTES = 256 * 1024
"""Longest source in UTF-8. The judge refuses longer ones too."""
MAX_BATCH = 256
"""Most submissions of one request."""
MAX_BODY_BYTES = 8 << 20
"""Longest body of a request."""
MAX_START_BYTES = 16 << 10
"""The same of one that begins a session."""
MAX_TURN_BYTES = 6 * MAX_SOURCE_BYTES + (4 << 10)
"""The same of one with one source: JSON may write a byte with six characters."""
MAX_TURNS = 64
"""Most submissions of a session."""
MAX_WAIT = 60.0
"""Most seconds for which a request waits for its result."""
SEEDS = 2**63


class Message(BaseModel):
    """Frozen data that refuses unknown keys; NaN and infinities survive its JSON form."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


def _source(value: object) -> object:
    """Refuses a source that is too long or that has no UTF-8 form, before anything reads it."""
    if isinstance(value, str):
        try:
            size = len(value.encode("utf-8"))
        except UnicodeEncodeError as error:
            raise ValueError(f"found a lone surrogate at {error.start}, expected text") from None
        if size > MAX_SOURCE_BYTES:
            raise ValueError(f"found {size} bytes, expected at most {MAX_SOURCE_BYTES}")
    return value


Source = Annotated[str, BeforeValidator(_source)]
Key = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+$")]
"""An idempotency key: the same key with the same content is the same submission."""
Name = Annotated[str, Field(min_length=1, max_length=200)]
Seed = Annotated[int, Field(ge=0, lt=SEEDS)]


class Submission(Message):
    """One submission."""

    task: Name
    """A task id."""
    source: Source
    seed: Seed | None = None
    """Seed of unseen workloads and data; by default the service draws one."""
    reward: Name = "kernel-opt"
    """The name of a reward of the service."""
    priority: int = Field(default=0, ge=-100, le=100)
    """Submissions of the same token with a higher one are evaluated first."""
    key: Key | None = None


class Batch(Message):
    """Several submissions. Either all are queued or none."""

    evaluations: Annotated[tuple[Submission, ...], Field(min_length=1, max_length=MAX_BATCH)]


class SessionStart(Message):
    """An episode to begin."""

    task: Name
    """A task id."""
    reward: Name = "kernel-opt"
    max_turns: int = Field(default=3, ge=1, le=MAX_TURNS)
    seed: Seed | None = None
    discount: float = Field(default=1.0, ge=0.0, le=1.0)
    key: Key | None = None


class SessionToken(Message):
    """A token for an agent that plays an episode. It is good for this episode only."""

    token: str


class TurnRequest(Message):
    """A submission to an episode."""

    source: Source
    key: Key | None = None


class State(StrEnum):
    """The state of a submission."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"
    """The service has a fault. Its log has the reason."""

    @property
    def final(self) -> bool:
        """Whether it does not change any more."""
        return self not in (State.QUEUED, State.RUNNING)


class Result(Message):
    """A submission and, if its state is `done`, its result."""

    id: str
    key: str
    task: str
    state: State
    reward_name: str
    reward: float | None = None
    """None if the evaluation is masked, or not done."""
    terms: dict[str, float] = Field(default_factory=dict)
    masked: bool = False
    """Whether the machine failed and not the submission. It is not a reward of 0."""
    feedback: str = ""
    """The text for a policy."""
    profile: dict[str, JsonValue] = Field(default_factory=dict)
    """The profile as data, see :func:`kernel_gym.profiles.profile_of`."""
    evaluation: Evaluation | None = None
    """The record; for tokens without `full_records` without what policies must not see."""
    message: str = ""
    """Why it failed."""
    queued_at: float
    """Seconds since 1970."""
    started_at: float | None = None
    finished_at: float | None = None


class Results(Message):
    """The results of a batch, in its order."""

    evaluations: tuple[Result, ...]


class SessionInfo(Message):
    """An episode."""

    id: str
    task: str
    prompt: str
    reward_name: str
    max_turns: int
    turns: int
    """Number of its submissions that are done."""
    done: bool
    episode_reward: float | None
    """None before a submission that is not masked."""


class StepResult(Message):
    """The result of a submission to an episode, as :class:`~kernel_gym.episodes.session.Step`."""

    id: str
    """The id of its evaluation."""
    state: State
    turn: int
    reward: float | None = None
    increment: float | None = None
    """The change of the episode's reward, for trainers that sum the rewards of steps."""
    episode_reward: float | None = None
    done: bool = False
    masked: bool = False
    feedback: str = ""
    profile: dict[str, JsonValue] = Field(default_factory=dict)
    """The profile as data, see :func:`kernel_gym.profiles.profile_of`."""
    outcome: str = ""
    best_speedup: float = 0.0
    evaluation: Evaluation | None = None
    message: str = ""


class Info(Message):
    """The description of a service."""

    version: str
    protocol_version: str
    device: str
    clock: str
    workers: int
    room: int
    """Submissions that keep its workers busy."""
    rewards: tuple[str, ...]
    secret_sha256: str
    """The hash of its secret, which records contain. It identifies the secret only."""
    full_records: bool
    """Whether this token reads whole records, which `executor="http://..."` needs."""


class TaskNames(RootModel[tuple[str, ...]]):
    """The ids of the tasks that requests may name."""


class TaskInfo(Message):
    """A task."""

    id: str
    language: str
    entry: str
    summary: str
    prompt: str

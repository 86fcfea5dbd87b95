"""The records of a run folder: frozen data with a JSON form."""

from __future__ import annotations

from pydantic import Field, JsonValue

from kernel_gym.records import Evaluation, Record

RUN_SCHEMA_VERSION = 1


class Sampling(Record):
    """How a policy's replies are sampled, the price of tokens, and limits on requests."""

    max_tokens: int = 4096
    """The most tokens of a reply."""
    temperature: float = 1.0
    """Sampling temperature. 0 selects the most probable token."""
    top_p: float = 1.0
    """Tokens are drawn from the most probable ones with this total probability."""
    extra: dict[str, JsonValue] = Field(default_factory=dict)
    """Further fields of a request."""
    prompt_price: float = 0.0
    """US dollars per million prompt tokens."""
    completion_price: float = 0.0
    """US dollars per million completion tokens."""
    parallel: int | None = None
    """Parallel requests, or None for the policy's default. A resumed run may change it."""
    per_minute: float | None = None
    """Most requests per minute, or None for no limit. A resumed run may change it."""
    request_timeout: float | None = None
    """Seconds for one request, or None for the policy's default. A resumed run may change it."""


class RunConfig(Record):
    """The configuration of a run."""

    schema_version: int = RUN_SCHEMA_VERSION
    policy: str
    suite: str
    tasks: tuple[str, ...]
    device: str
    reward: str
    turns: int
    samples: int = 1
    """Number of episodes per task."""
    seed: int | None = None
    sampling: Sampling | None = None
    """None for a policy that does not sample replies."""

    def identity(self) -> dict[str, object]:
        """Returns the values, by name, that must be equal if a run is resumed."""
        own = self.model_dump(exclude={"sampling"})
        changeable = {"parallel", "per_minute", "request_timeout"}
        drawn = self.sampling.model_dump(exclude=changeable) if self.sampling else {}
        return own | {f"sampling.{name}": value for name, value in drawn.items()}


class TurnRecord(Record):
    """One submission, with its reward and its evaluation."""

    task: str
    turn: int
    """The number of the turn, from 1."""
    source: str
    """The path of its text in the run folder."""
    reward: float | None
    """None if the machine failed and not the submission."""
    terms: dict[str, float]
    evaluation: Evaluation
    sample: int = 1
    """The number of the task's episode, from 1."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    """US dollars, if the policy knows the cost."""
    problem: str = ""
    """A problem of the reply: it was cut off, or empty."""

    @property
    def earned(self) -> float | None:
        """The reward, under the name that turns of running episodes have too."""
        return self.reward


class ReplyTokens(Record):
    """The tokens of a reply, from a policy that has them."""

    prompt_ids: tuple[int, ...]
    """Token ids that the policy read."""
    ids: tuple[int, ...]
    """Token ids that it wrote, with the end token if there is one."""
    logprobs: tuple[float, ...]
    """The logarithm of the probability with which each written token was drawn, in nats."""


class TurnTokens(Record):
    """The tokens of the reply of one turn."""

    task: str
    sample: int
    turn: int
    tokens: ReplyTokens


class EpisodeEnd(Record):
    """An episode that ended before its last turn."""

    task: str
    sample: int = 1
    turns: int
    """Number of its submissions."""
    reason: str = ""
    """Why it ended; empty if the policy only wanted no more turns."""


class RunSession(Record):
    """One period in which a command played or resumed a run."""

    started: float
    """Seconds since 1970."""
    ended: float | None = None
    """None if it was killed or is still running."""
    command: str = ""


class AgentStart(Record):
    """One start of a command-line agent in an episode."""

    task: str
    sample: int
    number: int
    """The number of the start, from 1; later ones belong to a resumed run."""
    status: int | None
    reason: str = ""
    seconds: float
    tokens: int = Field(default=0, description="that its output reported")


class SubmissionTime(Record):
    """When a submission was recorded."""

    task: str
    sample: int
    turn: int
    seconds: float = Field(description="since the agent was started in this session")

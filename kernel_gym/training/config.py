"""The configuration of a training run: one dataclass per TOML table.

docs/training.md explains every key.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from kernel_gym.errors import InputError
from kernel_gym.tasks.generated.graphs import DEPTHS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class ConfigError(InputError, ValueError):
    """A configuration is malformed. The message names the file, the key, and the expected value."""


@dataclass(frozen=True)
class Gym:
    """How submissions are evaluated."""

    device: str = "auto"
    executor: str = "local"
    workers: int = 2
    reward: str = "kernel-opt"
    seed: int = 0
    """Seed of unseen workloads and data, together with the step and the secret of the run."""
    unseen: Literal["each_step", "once", "unpaid"] = "each_step"
    """How GRPO draws unseen workloads, or that it pays for the train workloads alone."""
    prompt: Literal["full", "brief", "graph", "launch"] = "full"


@dataclass(frozen=True)
class TrainingTasks:
    """The tasks to train on, and those that are only assessed."""

    train: tuple[str, ...]
    held_out: tuple[str, ...]


@dataclass(frozen=True)
class Corpus:
    """The kernels that SFT imitates."""

    path: str = ""
    """A corpus in JSON Lines; "" generates one."""
    per_task: int = 24
    """Kernels drawn and evaluated per task."""
    pairs: int = 0
    """Pairs of generated graphs and kernels, in place of kernels of the training tasks."""
    max_depth: int = 4
    """Most operators of these graphs."""
    bound: float = 0.0
    """Share of the pairs whose kernel is right on the sizes of the prompt alone."""


@dataclass(frozen=True)
class PolicyModel:
    """The policy: a checkpoint, or a small model with random weights."""

    path: str = ""
    vocabulary: int = 4096
    hidden: int = 128
    layers: int = 4
    heads: int = 4
    context: int = 1024
    tokens: Literal["words", "clauses"] = "words"
    """The longest tokens of a new tokenizer."""


@dataclass(frozen=True)
class Sft:
    """The warm start by supervised fine-tuning; 0 steps skip it."""

    steps: int = 200
    batch: int = 16
    learning_rate: float = 3e-3
    save_every: int = 0
    """Steps between checkpoints; 0 saves none but the last one."""


@dataclass(frozen=True)
class Grpo:
    """The reinforcement learning."""

    steps: int = 40
    prompts: int = 4
    """Prompts per step."""
    generations: int = 8
    """Samples per prompt and step: the group whose mean reward is the baseline."""
    learning_rate: float = 1e-3
    temperature: float = 1.0
    max_tokens: int = 512
    """Longest reply, in tokens."""
    starts: Literal["given", "varied"] = "given"
    """The sources to edit: the task's start kernel, or the same with each block size."""
    turns: int = 1
    gamma: float = 0.0
    credit: Literal["turn", "episode"] = "turn"
    """Whether a sample is one turn or a whole episode."""
    feedback_chars: int = 1000
    """Most characters of the feedback on a turn that the policy reads."""
    scale: Literal["group", "batch", "none"] = "group"
    beta: float = 0.0
    save_every: int = 20
    vllm: Literal["off", "colocate", "server"] = "off"


@dataclass(frozen=True)
class Lora:
    """Low-rank adapters. Rank 0 trains all weights instead."""

    rank: int = 0
    alpha: int = 32
    dropout: float = 0.0


@dataclass(frozen=True)
class Assess:
    """How a checkpoint is assessed."""

    samples: int = 32
    """Replies per task."""
    temperature: float = 0.5
    every: int = 20
    """Steps of GRPO between assessed checkpoints; 0 assesses only the first and the last."""


@dataclass(frozen=True)
class TrainConfig:
    """A whole training run."""

    out: str
    tasks: TrainingTasks
    seed: int = 0
    gym: Gym = field(default_factory=Gym)
    corpus: Corpus = field(default_factory=Corpus)
    model: PolicyModel = field(default_factory=PolicyModel)
    sft: Sft = field(default_factory=Sft)
    grpo: Grpo = field(default_factory=Grpo)
    lora: Lora = field(default_factory=Lora)
    assess: Assess = field(default_factory=Assess)

    def __post_init__(self) -> None:
        grpo = self.grpo
        samples = grpo.generations // (grpo.turns if grpo.credit == "turn" else 1)
        _expect(grpo.generations >= 2, "grpo.generations", grpo.generations, "at least 2")
        _expect(grpo.turns >= 1, "grpo.turns", grpo.turns, "at least 1")
        _expect(
            grpo.credit == "episode" or samples * grpo.turns == grpo.generations,
            "grpo.generations",
            grpo.generations,
            f"a multiple of grpo.turns ({grpo.turns}) where each turn is a sample",
        )
        _expect(0 <= grpo.gamma <= 1, "grpo.gamma", grpo.gamma, "a number from 0 to 1")
        _expect(grpo.turns == 1 or grpo.vllm == "off", "grpo.vllm", grpo.vllm, "'off' with turns")
        _expect(
            grpo.starts == "given" or self.gym.prompt == "launch",
            "grpo.starts",
            grpo.starts,
            f"'given' with gym.prompt = {self.gym.prompt!r}: only 'launch' shows what is edited",
        )
        _expect(
            not self.corpus.pairs or self.gym.prompt == "graph",
            "gym.prompt",
            self.gym.prompt,
            "'graph' with corpus.pairs",
        )
        bound = self.corpus.bound
        _expect(bound <= 1, "corpus.bound", bound, "a share from 0 to 1")
        depth = self.corpus.max_depth
        _expect(depth in DEPTHS, "corpus.max_depth", depth, f"one of {', '.join(map(str, DEPTHS))}")
        both = set(self.tasks.train) & set(self.tasks.held_out)
        _expect(not both, "tasks.held_out", sorted(both), "no task that is trained on")
        _expect(bool(self.tasks.train), "tasks.train", (), "at least one task")


def read_config(path: Path) -> TrainConfig:
    """Reads a configuration.

    Args:
        path: A TOML file.

    Returns:
        The configuration, checked.

    Raises:
        ConfigError: The file is missing or malformed; the message has the nearest known key.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: found invalid TOML ({error}), expected tables") from error
    try:
        return make_config(data)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


Kind = TypeVar("Kind", bound="DataclassInstance")


def make_config(data: dict[str, object]) -> TrainConfig:
    """A configuration from plain data; raises :class:`ConfigError` like :func:`read_config`."""
    return _build(TrainConfig, data, "")


def _build(kind: type[Kind], data: object, where: str) -> Kind:
    if not isinstance(data, dict):
        raise ConfigError(f"key {where!r}: found {data!r}, expected a table")
    fields = {f.name: f for f in dataclasses.fields(kind)}
    hints = typing.get_type_hints(kind)
    for key in data:
        if key not in fields:
            near = difflib.get_close_matches(key, fields, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(fields)}"
            raise ConfigError(f"key {_join(where, key)!r}: unknown; {hint}")
    for name, f in fields.items():
        required = f.default is f.default_factory is dataclasses.MISSING
        _expect(name in data or not required, _join(where, name), "nothing", "a value")
    given = {key: _value(hints[key], value, _join(where, key)) for key, value in data.items()}
    return kind(**given)


def _value(kind: object, value: object, where: str) -> object:
    """The value in the type of its field: a scalar, a literal, a tuple of strings or a table."""
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _build(kind, value, where)
    if typing.get_origin(kind) is Literal:
        options = typing.get_args(kind)
        _expect(value in options, where, value, f"one of {', '.join(options)}")
        return value
    if isinstance(kind, types.GenericAlias):
        words = value if isinstance(value, list) else [None]
        _expect(all(isinstance(word, str) for word in words), where, value, "a list of words")
        return tuple(words)
    if kind is float and type(value) is int:
        return float(value)
    name = getattr(kind, "__name__", str(kind))
    _expect(type(value) is kind, where, value, f"a value of type {name}")
    negative = isinstance(value, int | float) and value < 0
    _expect(not negative, where, value, "no negative number")
    return value


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _expect(holds: bool, key: str, found: object, expected: str) -> None:
    if not holds:
        raise ConfigError(f"key {key!r}: found {found!r}, expected {expected}")

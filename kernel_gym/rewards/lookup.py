"""Looks up rewards: by name, from a TOML file, by import path, or from a callable."""

from __future__ import annotations

import logging
import math
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import SupportsFloat

from kernel_gym.records import Clock, Evaluation, Outcome, Stage
from kernel_gym.rewards.presets import DEFAULT_REWARD, REWARDS
from kernel_gym.rewards.recipe import Part, Recipe
from kernel_gym.rewards.reward import (
    NOTHING_KNOWN,
    Context,
    Reward,
    RewardError,
    RewardResult,
    UnknownReward,
)
from kernel_gym.rewards.terms import bounded

log = logging.getLogger(__name__)
_TRIAL = Evaluation(
    protocol_version="0",
    task="none/none",
    device="none",
    clock=Clock.MODELLED,
    source_sha256="",
    outcome=Outcome.PASSED,
    stage=Stage.DONE,
    speedup=1.0,
    speedup_low=1.0,
)
"""Every reward from a file scores this evaluation once, so that bad settings fail at once."""
_KEYS = ("gates", "terms", "ungated", "gamma", "source")


def get_reward(reward: str | Path | Callable[..., object] = DEFAULT_REWARD) -> Reward:
    """Returns a reward.

    Args:
        reward: One of :func:`~kernel_gym.rewards.presets.reward_names`, a path that ends in
            `.toml`, an import path `package.module:function`, or a callable. A callable takes an
            evaluation and returns a number, None to mask the step, or a :class:`RewardResult`.

    Returns:
        The reward.

    Raises:
        UnknownReward: No reward is registered by this name. The message lists similar names.
        RewardError: The file or the import path is malformed.
    """
    if callable(reward):
        return reward if isinstance(reward, Recipe) else Custom(reward)
    name = str(reward)
    if name in REWARDS:
        return REWARDS[name]
    if name.endswith(".toml"):
        return read_recipe(Path(name))
    if ":" in name:
        return Custom(_imported(name))
    raise UnknownReward(name, REWARDS)


class Custom:
    """A reward from a user's function, with the guarantees of every reward.

    Values are clamped to finite numbers. NaN masks the step, with a warning. Evaluations with the
    outcome `infra` are masked without a call of the function.

    Args:
        function: It takes an evaluation.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function

    def __call__(self, evaluation: Evaluation, context: Context = NOTHING_KNOWN, /) -> RewardResult:
        """Scores one evaluation."""
        if evaluation.outcome is Outcome.INFRA:
            return RewardResult(None)
        result = self.function(evaluation)
        if result is None:
            return RewardResult(None)
        if not isinstance(result, RewardResult):
            if isinstance(result, str | bytes) or not isinstance(result, SupportsFloat):
                raise RewardError(f"{self.function!r}: found {result!r}, expected a number")
            result = RewardResult(float(result))
        if result.value is not None and math.isnan(result.value):
            log.warning("a reward of %r is not a number: the step is masked", self.function)
            return RewardResult(None)
        if result.value is None:
            return result
        terms = {name: bounded(value) for name, value in result.terms.items()}
        return RewardResult(bounded(result.value), terms)


def read_recipe(path: Path) -> Recipe:
    """Reads a reward from a TOML file.

    The keys are `gates` (a list of terms), `terms` and `ungated` (tables of weights by term),
    `gamma` and `source`. In place of a weight there may be a table with `weight`, the parameters of
    the term, and `term` if the key is a label and not the name of the term.

    Args:
        path: The file.

    Returns:
        The reward. Its name is the name of the file.

    Raises:
        RewardError: The file is absent or malformed. The message names the key, and the present and
            expected value.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RewardError(f"{path}: cannot be read ({error.strerror})") from error
    except tomllib.TOMLDecodeError as error:
        raise RewardError(f"{path}: found invalid TOML ({error}), expected a reward") from error
    try:
        recipe = _recipe(path.stem, data)
        recipe(_TRIAL)
    except (ValueError, TypeError) as error:
        raise RewardError(f"{path}: {error}") from error
    return recipe


def _recipe(name: str, data: dict[str, object]) -> Recipe:
    for key in data:
        if key not in _KEYS:
            raise RewardError(f"key {key!r}: unknown, expected one of {', '.join(_KEYS)}")
    gates = data.get("gates", [])
    if not isinstance(gates, list) or not all(isinstance(gate, str) for gate in gates):
        raise RewardError(f"key 'gates': found {gates!r}, expected a list of terms")
    return Recipe(
        name,
        gates=tuple(Part(gate) for gate in gates),
        terms=_parts(data, "terms"),
        ungated=_parts(data, "ungated"),
        gamma=_number("gamma", data.get("gamma", 0.0), "a number"),
        source=str(data.get("source", "")),
    )


def _parts(data: dict[str, object], key: str) -> tuple[Part, ...]:
    table = data.get(key, {})
    if not isinstance(table, dict):
        raise RewardError(f"key {key!r}: found {table!r}, expected a table of weights")
    return tuple(_part(f"{key}.{label}", label, entry) for label, entry in table.items())


def _part(key: str, label: str, entry: object) -> Part:
    settings: dict[str, object] = dict(entry) if isinstance(entry, dict) else {"weight": entry}
    weight, name = settings.pop("weight", 1.0), settings.pop("term", label)
    if not isinstance(name, str):
        raise RewardError(f"key {key!r}: found {name!r}, expected a term")
    try:
        return Part(name, _number(key, weight, "a weight"), label, settings)
    except RewardError as error:
        raise RewardError(f"key {key!r}: {error}") from error


def _number(key: str, value: object, expected: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RewardError(f"key {key!r}: found {value!r}, expected {expected}")
    return float(value)


def _imported(name: str) -> Callable[..., object]:
    module, _, attribute = name.partition(":")
    try:
        function: object = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise RewardError(f"reward {name!r} cannot be imported: {error}") from error
    if not callable(function):
        raise RewardError(f"reward {name!r}: found {type(function).__name__}, expected a function")
    return function

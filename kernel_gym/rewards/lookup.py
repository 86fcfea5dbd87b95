"""Finds a reward: by name, in a TOML file, as a function by its import path, or given as one."""

from __future__ import annotations

import logging
import math
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

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
"""Scored once by every reward read from a file, so that a bad setting is found at once."""
_KEYS = ("gates", "terms", "ungated", "gamma", "source")


def get_reward(reward: str | Path | Callable[..., Any] = DEFAULT_REWARD) -> Reward:
    """The reward that is meant.

    Args:
        reward: One of :func:`~kernel_gym.rewards.presets.reward_names`; a path that ends in
            `.toml`; `package.module:function`; or a callable. A callable takes an evaluation and
            returns a number, None to mask the step, or a :class:`RewardResult`.

    Returns:
        The reward.

    Raises:
        UnknownReward: Nobody registered the name; the message lists near matches.
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
    """A function of the user's own, held to what every reward promises.

    Its values are made finite. What is not a number is masked, with a warning, and so are
    evaluations that failed through a fault of ours, without asking it.

    Args:
        function: Takes an evaluation.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, evaluation: Evaluation, context: Context = NOTHING_KNOWN, /) -> RewardResult:
        """Scores one evaluation."""
        if evaluation.outcome is Outcome.INFRA:
            return RewardResult(None)
        found = self.function(evaluation)
        if not isinstance(found, RewardResult):
            found = RewardResult(None if found is None else float(found))
        if found.value is not None and math.isnan(found.value):
            log.warning("a reward of %r is not a number: the step is masked", self.function)
            return RewardResult(None)
        if found.value is None:
            return found
        terms = {name: bounded(value) for name, value in found.terms.items()}
        return RewardResult(bounded(found.value), terms)


def read_recipe(path: Path) -> Recipe:
    """A reward from a TOML table.

    The keys: `gates`, a list of terms; `terms` and `ungated`, tables of weights by term; `gamma`;
    `source`. A weight may be a table with `weight`, the parameters of the term, and `term` when the
    key is a label of one's own.

    Args:
        path: The file.

    Returns:
        The reward, named by the file.

    Raises:
        RewardError: The file is absent or malformed: which key, what was found, what was expected.
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


def _recipe(name: str, data: dict[str, Any]) -> Recipe:
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
        gamma=float(data.get("gamma", 0.0)),
        source=str(data.get("source", "")),
    )


def _parts(data: dict[str, Any], key: str) -> tuple[Part, ...]:
    table = data.get(key, {})
    if not isinstance(table, dict):
        raise RewardError(f"key {key!r}: found {table!r}, expected a table of weights")
    return tuple(_part(f"{key}.{label}", label, entry) for label, entry in table.items())


def _part(key: str, label: str, entry: Any) -> Part:
    settings = dict(entry) if isinstance(entry, dict) else {"weight": entry}
    weight, name = settings.pop("weight", 1.0), settings.pop("term", label)
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise RewardError(f"key {key!r}: found {weight!r}, expected a weight")
    try:
        return Part(name, float(weight), label, settings)
    except RewardError as error:
        raise RewardError(f"key {key!r}: {error}") from error


def _imported(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise RewardError(f"reward {name!r} cannot be imported: {error}") from error
    if not callable(found):
        raise RewardError(f"reward {name!r}: found {type(found).__name__}, expected a function")
    return found

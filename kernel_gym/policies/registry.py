"""Policies by name: `KIND` or `KIND:ARGUMENT`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TypeVar

from kernel_gym.policies.base import Policy
from kernel_gym.policies.names import POLICIES, PolicyError, require_policy
from kernel_gym.policies.options import Options

AnyMaker = TypeVar("AnyMaker", bound=Callable[..., Policy])
_OPTIONS = "options"


@dataclass(frozen=True)
class _Entry:
    """A maker of policies, its argument in the name, and whether it takes :class:`Options`."""

    kind: str
    make: Callable[..., Policy]
    argument: inspect.Parameter | None
    takes_options: bool

    @property
    def name(self) -> str:
        """`KIND`, or `KIND:ARGUMENT` with the name of the argument in capitals."""
        return f"{self.kind}:{self.argument.name.upper()}" if self.argument else self.kind


_ENTRIES: dict[str, _Entry] = {}


def register_policy(kind: str) -> Callable[[AnyMaker], AnyMaker]:
    """Makes a policy available by name.

    The decorated class or function makes the policy. If it has a required parameter, the text after
    the colon of a name is converted to its type, such as `str`, `int` or `pathlib.Path`. A maker
    with a parameter `options` gets the :class:`Options` for replies; the others accept none. If
    both names are listed, a kind has one maker with an argument and one without.

    Args:
        kind: The name, or the part of the name before the colon.

    Returns:
        A decorator that registers the maker and returns it unchanged.

    Raises:
        ValueError: The name is taken, or is listed with another argument.
        TypeError: The maker has more than one required parameter.

    With this, `constant:PATH` is the name of a policy::

        @register_policy("constant")
        class Constant(Scripted):
            def __init__(self, path: Path) -> None:
                self.source = path.read_text()

            def submit(self, episode: Episode) -> str | None:
                return None if episode.turns else self.source
    """

    def register(maker: AnyMaker) -> AnyMaker:
        entry = _entry(kind, maker)
        listed = [name for name in POLICIES if name.partition(":")[0] == kind]
        elsewhere = any(POLICIES[name] != maker.__module__ for name in listed)
        if entry.name in _ENTRIES or elsewhere:
            raise ValueError(f"policy {kind!r} is registered already")
        if listed and entry.name not in listed:
            raise ValueError(
                f"policy {kind!r} is listed as {', '.join(map(repr, listed))} in "
                f"kernel_gym/policies/names.py, but its maker's required parameters say "
                f"{entry.name!r}; change one of them"
            )
        _ENTRIES[entry.name] = entry
        POLICIES.setdefault(entry.name, maker.__module__)
        return maker

    return register


def _entry(kind: str, maker: Callable[..., Policy]) -> _Entry:
    parameters = inspect.signature(maker, eval_str=True).parameters
    required = [
        parameter
        for name, parameter in parameters.items()
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        and parameter.default is inspect.Parameter.empty
        and name != _OPTIONS
    ]
    if len(required) > 1:
        raise TypeError(f"policy {kind!r}: a name has one argument, its maker takes {required}")
    return _Entry(kind, maker, required[0] if required else None, _OPTIONS in parameters)


def make_policy(name: str, options: Options | None = None) -> Policy:
    """The policy of a name.

    Args:
        name: A key of :data:`~kernel_gym.policies.names.POLICIES` with a value in place of the
            capitals.
        options: How replies are drawn, where it differs from the policy's defaults.

    Raises:
        PolicyError: The name is unknown, its argument cannot be used, or the policy does not have
            an option that is given.
    """
    listed = require_policy(name)
    import_module(POLICIES[listed])
    kind, _, text = name.partition(":")
    entry, options = _ENTRIES[listed], options or Options()
    arguments: dict[str, object] = {}
    if entry.argument is not None:
        arguments[entry.argument.name] = _converted(entry, entry.argument.annotation, text)
    if entry.takes_options:
        arguments[_OPTIONS] = options
    else:
        options.none(kind)
    return entry.make(**arguments)


def _converted(entry: _Entry, wanted: object, text: str) -> object:
    """The text after the colon as the type of the maker's parameter."""
    if wanted is inspect.Parameter.empty or not callable(wanted):
        return text
    try:
        return wanted(text)
    except ValueError as error:
        kind = getattr(wanted, "__name__", wanted)
        raise PolicyError(f"policy {entry.name!r}: found {text!r}, expected {kind}") from error

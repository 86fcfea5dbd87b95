"""Policies by name: registered with typed arguments, made on demand."""

from importlib import import_module
from pathlib import Path

import pytest

from kernel_gym import policies
from kernel_gym.policies import Options, PolicyError, Scripted, make_policy, registry
from kernel_gym.policies.names import POLICIES, require_policy
from kernel_gym.policies.registry import register_policy


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Policies that a test registers are gone after it."""
    for name in POLICIES.values():
        import_module(name)
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    before = dict(POLICIES)
    yield
    POLICIES.clear()
    POLICIES.update(before)


class Kept(Scripted):
    def __init__(self, argument=None, options=None):
        self.argument, self.options = argument, options

    def submit(self, episode):
        return None


def test_the_names_are_those_that_their_modules_register():
    registered = {entry.name: entry.make.__module__ for entry in registry._ENTRIES.values()}
    assert registered == POLICIES


@pytest.mark.parametrize(("kind", "text", "value"), [(int, "7", 7), (Path, "a/b", Path("a/b"))])
def test_an_argument_has_the_type_of_its_parameter(kind, text, value):
    def make(size):
        return Kept(size)

    make.__annotations__["size"] = kind
    register_policy("kept")(make)
    assert require_policy("kept:x") == "kept:SIZE"
    assert make_policy(f"kept:{text}").argument == value


def test_a_listed_argument_that_the_maker_does_not_require_is_refused(monkeypatch):
    """Otherwise the text after the colon would have no effect."""
    monkeypatch.setitem(POLICIES, "kept:SIZE", __name__)
    with pytest.raises(ValueError, match=r"listed as 'kept:SIZE' .* parameters say 'kept'"):
        register_policy("kept")(Kept)


def test_a_kind_with_two_listed_names_has_two_makers(monkeypatch):
    for name in ("kept", "kept:SIZE"):
        monkeypatch.setitem(POLICIES, name, __name__)
    register_policy("kept")(Kept)

    @register_policy("kept")
    def sized(size: int):
        return Kept(size)

    assert make_policy("kept").argument is None
    assert make_policy("kept:7").argument == 7
    with pytest.raises(ValueError, match="policy 'kept' is registered already"):
        register_policy("kept")(sized)


def test_an_argument_of_another_type_is_refused():
    @register_policy("kept")
    def make(size: int):
        return Kept(size)

    with pytest.raises(PolicyError, match="policy 'kept:SIZE': found 'x', expected int"):
        make_policy("kept:x")


def test_options_go_to_a_maker_that_takes_them_and_to_no_other():
    @register_policy("drawing")
    def drawing(options: Options):
        return Kept(options=options)

    @register_policy("plain")
    def plain():
        return Kept()

    options = Options(top_p=0.5)
    assert make_policy("drawing", options).options is options
    with pytest.raises(PolicyError, match="policy 'plain' has no option 'top_p'"):
        make_policy("plain", options)


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="policy 'baseline' is registered already"):
        register_policy("baseline")(Kept)


def test_a_maker_with_two_arguments_is_refused():
    with pytest.raises(TypeError, match="a name has one argument"):
        register_policy("two")(lambda one, two: Kept())


def test_every_public_name_is_there():
    assert all(getattr(policies, name) is not None for name in policies.__all__)

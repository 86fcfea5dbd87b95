"""Results of compilers that are kept: by which recipe, for how long, and what they cost."""

from __future__ import annotations

from kernel_gym.devices.base import Failed
from kernel_gym.devices.budget import RESERVE, HostBudget, Spent
from kernel_gym.devices.built_sources import BuildResult, BuiltSources, key_of
from kernel_gym.devices.hip_build import BuildRecipe, compile_source

STAMP = "echo built; /bin/date +%s%N > made"


def _result(size):
    return BuildResult(("",), (bytes(size),))


def _build(kept, script=STAMP, budget=None, results=("made",)):
    recipe = BuildRecipe({"script": script}, [["/bin/sh", "script"]], results)
    return compile_source(recipe, 60.0, budget, kept=kept)


def test_an_equal_recipe_is_built_once():
    kept = BuiltSources()
    first = _build(kept)
    assert first.results[0]
    assert _build(kept) == first
    assert _build(kept, STAMP + " ").results != first.results
    assert _build(None).results != first.results


def test_a_failed_build_is_not_kept():
    kept = BuiltSources()
    assert isinstance(_build(kept, "exit 1"), Failed)
    assert kept.get(key_of({"script": "exit 1"}, [["/bin/sh", "script"]], ["made"], [], [])) is None
    _build(kept)
    assert kept.get(key_of({"script": STAMP}, [["/bin/sh", "script"]], ["made"], [], []))


def test_a_kept_result_is_charged_like_a_build():
    kept, budget = BuiltSources(), HostBudget()
    recipe = {"script": STAMP}, [["/bin/sh", "script"]], ["made"], [], []
    kept.keep(key_of(*recipe), _result(8), Spent(host=3.0))
    assert _build(kept, budget=budget) == _result(8)
    assert budget.host == HostBudget().host - 3.0


def test_a_candidate_without_seconds_builds_itself():
    kept, budget = BuiltSources(), HostBudget(host=RESERVE + 2.0)
    recipe = {"script": STAMP}, [["/bin/sh", "script"]], ["made"], [], []
    kept.keep(key_of(*recipe), _result(8), Spent(host=3.0))
    assert _build(kept, budget=budget) != _result(8)


def test_results_are_bounded_and_the_oldest_go_first():
    kept = BuiltSources(capacity=100)
    for key in ("a", "b"):
        kept.keep(key, _result(40), Spent())
    assert kept.get("a")
    kept.keep("c", _result(40), Spent())
    assert kept.get("b") is None
    assert kept.get("a")
    assert kept.get("c")
    kept.keep("large", _result(101), Spent())
    assert kept.get("large") is None


def test_each_part_of_a_recipe_decides():
    whole = {"f": "text"}, [["c"]], ["r"], ["/d"], []
    changed = [
        ({"f": "texts"}, *whole[1:]),
        (whole[0], [["c", "-O1"]], *whole[2:]),
        (*whole[:2], ["s"], *whole[3:]),
        (*whole[:3], ["/e"], []),
        (*whole[:4], [["c"]]),
    ]
    assert len({key_of(*recipe) for recipe in (whole, *changed)}) == 6

"""The import rule of the design, and the sizes of modules and functions."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = {
    "kernel_gym": "kernel_gym",
    "tasks": "kernel_gym.tasks",
    "rewards": "kernel_gym.rewards",
    "envs": "kernel_gym.envs",
    "training": "kernel_gym.training",
}
HEAVY = {"ray", "trl", "transformers", "datasets", "peft", "stable_baselines3", "vllm"}
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60

LONG_MODULES: set[str] = set()
"""Modules that may be longer, each with a reason beside it."""
LONG_FUNCTIONS: set[str] = set()
"""Functions that may be longer, as `path:name`, each with a reason beside it."""


def modules(room: str) -> list[Path]:
    """The Python files of a room; kernels are sources for a GPU, not modules of ours."""
    files = (ROOT / room).rglob("*.py")
    return sorted(p for p in files if p.name != "baseline.py" and p.parent.name != "variants")


def imports(path: Path, top_level_only: bool = False) -> Iterator[str]:
    """Full names of what a module imports; imports for type checkers alone do not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = _top_level(tree.body) if top_level_only else _outside_type_checking(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _outside_type_checking(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _outside_type_checking(child)


def _top_level(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Statements that run at import: everything outside functions."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        for field in ("body", "orelse", "finalbody"):
            yield from _top_level(getattr(node, field, []))
        for handler in getattr(node, "handlers", []):
            yield from _top_level(handler.body)


def test_no_room_is_empty():
    assert all(modules(room) for room in ROOMS)


def within(name: str, *packages: str) -> bool:
    """Whether a name is one of the packages or lies in one."""
    return any(name == package or name.startswith(package + ".") for package in packages)


def offences(room: str, *forbidden: str, allowed: tuple[str, ...] = ()) -> list[str]:
    """Imports of a room that lie in a forbidden package and in no allowed one."""
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(room)
        for name in imports(path)
        if within(name, *forbidden) and not within(name, *allowed)
    ]


def test_tasks_import_only_numpy_torch_pydantic_and_themselves():
    known = {*sys.stdlib_module_names, "numpy", "torch", "pydantic"}
    formulas = {*known, "scipy"}  # second opinions, which only tests and admission ask for
    found = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules("tasks")
        for name in imports(path)
        if name.split(".")[0] not in (formulas if path.name == "formula.py" else known)
        and not within(name, "kernel_gym.tasks")
    ]
    assert found == []


def test_the_engine_does_not_know_what_is_built_on_it():
    above = ("kernel_gym.rewards", "kernel_gym.envs", "kernel_gym.training")
    found = [
        offence
        for offence in offences("kernel_gym", *above)
        if not offence.startswith(("kernel_gym/cli.py", "kernel_gym/commands/"))
    ]
    assert found == []


def test_rewards_know_records_only():
    allowed = ("kernel_gym.records", "kernel_gym.rewards", "kernel_gym.tasks.workload")
    assert offences("rewards", "kernel_gym", allowed=allowed) == []


def test_environments_do_not_know_training():
    assert offences("envs", "kernel_gym.training") == []


def test_only_the_command_line_imports_commands():
    found = [
        offence
        for room in ROOMS
        for offence in offences(room, "kernel_gym.commands", "kernel_gym.cli")
        if not offence.startswith(
            ("kernel_gym/cli.py", "kernel_gym/__main__.py", "kernel_gym/commands/")
        )
    ]
    assert found == []


@pytest.mark.parametrize("room", ROOMS)
def test_heavy_packages_are_imported_inside_functions(room):
    found = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(room)
        for name in imports(path, top_level_only=True)
        if name.split(".")[0] in HEAVY
    ]
    assert found == []


@pytest.mark.parametrize("room", ROOMS)
def test_modules_are_short(room):
    long = {
        str(path.relative_to(ROOT)): lines
        for path in modules(room)
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MAX_MODULE_LINES
    }
    assert set(long) <= LONG_MODULES, long


@pytest.mark.parametrize("room", ROOMS)
def test_functions_are_short(room):
    long = {
        f"{path.relative_to(ROOT)}:{node.name}": lines
        for path in modules(room)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > MAX_FUNCTION_LINES
    }
    assert set(long) <= LONG_FUNCTIONS, long


def test_the_allowlists_hold_nothing_that_is_gone():
    assert all((ROOT / module).exists() for module in LONG_MODULES)
    assert all((ROOT / name.split(":")[0]).exists() for name in LONG_FUNCTIONS)

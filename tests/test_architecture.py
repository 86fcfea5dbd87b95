"""The floors of the package: imports run down only. And the sizes of modules and functions."""

import ast
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "kernel_gym"
FLOORS = (
    "errors extras registration",
    "__init__ formatting hardware inert symbols tasks torch_device triton_versions",
    "plans records sim",
    "advice client protocol rewards storage",
    "feedback profiles sandbox",
    "launcher",
    "devices hidden",
    "judge worker",
    "evaluator simulated_rocm",
    "executors programs",
    "episodes exploits",
    "analysis",
    "admission",
    "imports",
    "exchange packages policies report",
    "envs referee",
    "agents judges service training",
    "commands",
    "cli",
    "__main__",
)
"""The rooms of the package, from the ground up. A room imports from the floors below only."""
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms.split()}
ROOMS = tuple(FLOOR)
LINKS = ("tasks", "rewards", "envs", "training")
"""Rooms that are also at the top level of the repository, as links."""
DATA = ("exploits/suite", "policies/examples", "tasks/guides")
"""Folders of sources that are played, not imported."""
HEAVY = {"ray", "trl", "transformers", "datasets", "peft", "stable_baselines3", "vllm"}
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60

LONG: dict[str, str] = {
    "kernel_gym/commands/eval.py:evaluate": "the options of a command are its parameters",
    "kernel_gym/sim/engine/engine.py:launch": "half of it documents its arguments",
    "kernel_gym/policies/evaluate.py:evaluate_policy": "half of it documents its arguments",
}
"""Modules (`path`) and functions (`path:name`) that read better long, each with the reason."""


def modules(room: str) -> list[Path]:
    """Returns the Python files of a room, without kernels, which are sources for a GPU."""
    place = PACKAGE / room
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    data = tuple(PACKAGE / folder for folder in DATA)
    return [
        path
        for path in files
        if path.exists()
        and path.name not in ("baseline.py", "gluon.py")
        and path.parent.name != "variants"
        and not any(folder in path.parents for folder in data)
    ]


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


def test_every_room_has_a_floor():
    inside = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py"}
    inside |= {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert inside == {room for room in ROOMS if modules(room)}
    assert inside == set(ROOMS)


def test_the_links_at_the_top_lead_to_their_rooms():
    for room in LINKS:
        assert (ROOT / room).is_symlink()
        assert (ROOT / room).resolve() == PACKAGE / room


def within(name: str, *packages: str) -> bool:
    """Whether a name is one of the packages or lies in one."""
    return any(name == package or name.startswith(package + ".") for package in packages)


def room_of(name: str) -> str | None:
    """Returns the room that a name is imported from, or None if it is not ours."""
    parts = name.split(".")
    if parts[0] != "kernel_gym":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in FLOOR else "__init__"


@pytest.mark.parametrize("room", ROOMS)
def test_imports_run_down(room):
    upward = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(room)
        for name in imports(path)
        if (other := room_of(name)) is not None and other != room and FLOOR[other] >= FLOOR[room]
    ]
    assert upward == []


def test_the_package_does_not_need_a_checkout():
    """Benchmarks, tests and scripts are in no wheel."""
    others = [
        f"{path.relative_to(ROOT)} imports {name}"
        for room in ROOMS
        for path in modules(room)
        for name in imports(path)
        if within(name, "benchmarks", "tests", "scripts")
    ]
    assert others == []


def test_tasks_import_few_packages_and_themselves():
    known = {*sys.stdlib_module_names, "numpy", "torch", "pydantic"}
    more = {
        "formula.py": {"scipy"},  # second opinions, which only tests and admission ask for
    }
    others = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules("tasks")
        for name in imports(path)
        if name.split(".")[0] not in known | more.get(path.name, set())
        and not within(name, "kernel_gym.tasks", "kernel_gym.errors", "kernel_gym.extras")
    ]
    assert others == []


def test_rewards_know_records_only():
    allowed = (
        "kernel_gym.errors",
        "kernel_gym.records",
        "kernel_gym.rewards",
        "kernel_gym.tasks.near_names",
        "kernel_gym.tasks.workload",
    )
    others = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules("rewards")
        for name in imports(path)
        if within(name, "kernel_gym") and not within(name, *allowed)
    ]
    assert others == []


@pytest.mark.parametrize("room", ROOMS)
def test_heavy_packages_are_imported_inside_functions(room):
    heavy = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(room)
        for name in imports(path, top_level_only=True)
        if name.split(".")[0] in HEAVY
    ]
    assert heavy == []


def lengths(room: str) -> Iterator[tuple[str, int, int]]:
    """Yields the name, the lines and the limit of each module and each function of a room."""
    for path in modules(room):
        name, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        yield name, len(text.splitlines()), MAX_MODULE_LINES
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                yield f"{name}:{node.name}", lines, MAX_FUNCTION_LINES


@pytest.mark.parametrize("room", ROOMS)
def test_long_modules_and_functions_are_reported(room):
    """Warns and does not fail: the limits serve reading, and `LONG` lifts them with a reason."""
    for name, lines, limit in lengths(room):
        if lines > limit and name not in LONG:
            warnings.warn(f"{name} has {lines} lines; the limit is {limit}", stacklevel=1)


def test_what_is_listed_as_long_is_long_and_has_a_reason():
    long = {name for room in ROOMS for name, lines, limit in lengths(room) if lines > limit}
    assert set(LONG) <= long
    assert all(LONG.values())


def test_a_public_class_has_a_name_of_its_own():
    places: dict[str, list[str]] = {}
    for room in ROOMS:
        for path in modules(room):
            if "problems" in path.parts:
                continue
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


PROBLEM_ROOMS = ("tasks", "imports", "referee")
"""The rooms of problems: elsewhere a problem is asked for what differs, by a method."""
PROBLEM_CLASSES = ("RecordedProblem", "TracedProblem", "GeneratedProblem", "ClaimedProblem")
DEVICE_CLASSES = ("GpuDevice", "SimDevice", "GpuBackend", "SimBackend")


def texts_outside(*rooms: str) -> Iterator[tuple[str, str]]:
    """Yields the name and the text of each module outside of some rooms."""
    for room in set(ROOMS) - set(rooms):
        for path in modules(room):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def test_no_room_asks_for_the_class_of_a_problem():
    asked = re.compile(rf"isinstance\([^()]*({'|'.join(PROBLEM_CLASSES)})")
    assert [name for name, text in texts_outside(*PROBLEM_ROOMS) if asked.search(text)] == []


def test_no_room_looks_at_the_name_or_class_of_a_device():
    """`docs/tutorials/bring-a-device.md` promises it. Facts of a description serve instead."""
    named = r"(starts|ends)with\(\(?[\"'](sim|cuda|rocm)|removeprefix\([\"'](sim|cuda|rocm)"
    asked = re.compile(rf"{named}|isinstance\([^()]*({'|'.join(DEVICE_CLASSES)})")
    assert [name for name, text in texts_outside("devices") if asked.search(text)] == []

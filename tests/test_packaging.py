"""The package as it is declared: complete, and installable without surprises."""

import re
import tomllib
from pathlib import Path

import kernel_gym

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")


def test_every_package_is_declared():
    folders = PROJECT["tool"]["setuptools"]["package-dir"]
    found = set()
    for package, folder in folders.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            inside = init.parent.relative_to(ROOT / folder).parts
            found.add(".".join((package, *inside)))
    # A problem is a folder of data as far as packaging goes: adding one changes nothing else.
    found = {name for name in found if not name.startswith("kernel_gym.tasks.problems")}
    assert found == set(PROJECT["tool"]["setuptools"]["packages"])


def test_every_file_beside_the_modules_is_package_data():
    settings = PROJECT["tool"]["setuptools"]
    for package, patterns in settings["package-data"].items():
        room = max((r for r in settings["package-dir"] if package.startswith(r)), key=len)
        inside = package.removeprefix(room).strip(".").replace(".", "/")
        folder = ROOT / settings["package-dir"][room] / inside
        for pattern in patterns:
            assert any(folder.glob(pattern)), f"{package}: nothing matches {pattern}"


def test_torch_has_no_upper_bound():
    (torch,) = [d for d in PROJECT["project"]["dependencies"] if d.startswith("torch")]
    assert re.fullmatch(r"torch>=[\d.]+", torch)


def test_constraints_are_exact_and_name_no_build_and_no_host():
    pins = [line for line in CONSTRAINTS.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*", pin) for pin in pins)
    assert "torch==2.13.0" in pins


def test_constraints_hold_no_cuda():
    assert not re.search(r"^(nvidia|cuda)", CONSTRAINTS, re.MULTILINE | re.IGNORECASE)


def test_every_dependency_is_pinned():
    pinned = {line.split("==")[0].lower() for line in CONSTRAINTS.splitlines() if "==" in line}
    wanted = [
        *PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"]["dev"],
    ]
    names = {re.match(r"[A-Za-z0-9_.-]+", requirement).group().lower() for requirement in wanted}
    assert names <= pinned


def test_the_version_is_stated_once():
    assert kernel_gym.__version__ == PROJECT["project"]["version"]

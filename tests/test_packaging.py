"""The package as it is declared: complete, and installable without surprises."""

import pkgutil
import re
import tomllib
from pathlib import Path

import yaml

import kernel_gym
from kernel_gym.judge.protocol import PROTOCOL_VERSION
from kernel_gym.records import SCHEMA_VERSION, Evaluation
from kernel_gym.sim import native

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")


def test_packages_are_discovered_and_not_listed():
    packages = PROJECT["tool"]["setuptools"]["packages"]
    assert packages == {"find": {"include": ["kernel_gym*"], "exclude": ["kernel_gym.sim.csrc*"]}}


def test_what_is_not_a_module_is_package_data():
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["*"]
    package = ROOT / "kernel_gym"
    packages = [path.parent for path in package.rglob("__init__.py")]
    covered = {path for folder in packages for pattern in patterns for path in folder.glob(pattern)}
    missing = [
        path.relative_to(ROOT)
        for path in package.rglob("*")
        if path.is_file() and path not in covered and "__pycache__" not in path.parts
    ]
    assert missing == []


def test_only_sources_of_compiled_libraries_are_left_out():
    excluded = PROJECT["tool"]["setuptools"]["exclude-package-data"]
    left_out = {
        path.relative_to(ROOT)
        for package, patterns in excluded.items()
        for pattern in patterns
        for path in ROOT.joinpath(*package.split(".")).glob(pattern)
        if path.is_file()
    }
    assert {path.suffix for path in left_out} == {".cpp", ".h"}
    assert not any("torch_device" in path.parts for path in left_out)
    assert any("csrc" in path.parts for path in left_out)


def test_torch_has_no_upper_bound():
    judge = PROJECT["project"]["optional-dependencies"]["judge"]
    (torch,) = [d for d in judge if d.startswith("torch")]
    assert re.fullmatch(r"torch>=[\d.]+", torch)


def test_constraints_are_exact_and_name_no_build_and_no_host():
    pins = [line for line in CONSTRAINTS.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*", pin) for pin in pins)
    assert "torch==2.13.0" in pins


def test_constraints_hold_no_cuda():
    assert not re.search(r"^(nvidia|cuda)", CONSTRAINTS, re.MULTILINE | re.IGNORECASE)


def test_every_dependency_is_pinned():
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in CONSTRAINTS.splitlines()
        if "==" in line
    }
    wanted = [
        *PROJECT["project"]["dependencies"],
        *(
            requirement
            for extra in ("judge", "report", "service", "train", "dev", "docs")
            for requirement in PROJECT["project"]["optional-dependencies"][extra]
        ),
    ]
    names = {re.match(r"[A-Za-z0-9_.-]+", requirement).group() for requirement in wanted}
    assert {name.lower().replace("_", "-") for name in names} - {"kernel-gym"} <= pinned


def test_the_version_is_stated_once():
    assert kernel_gym.__version__ == PROJECT["project"]["version"]


def test_a_release_is_tested_in_every_python_before_it_is_published():
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    pythons = jobs["test"]["strategy"]["matrix"]["python"]
    assert pythons[0] == PROJECT["project"]["requires-python"].removeprefix(">=")
    assert [int(each.partition(".")[2]) for each in pythons] == [11, 12, 13, 14]
    assert (jobs["test"]["needs"], jobs["publish"]["needs"]) == ("build", "test")
    (torch,) = [pin for pin in CONSTRAINTS.splitlines() if pin.startswith("torch==")]
    assert torch in text
    assert torch in PROJECT["tool"]["cibuildwheel"]["before-build"]


def test_the_wheel_and_its_libraries_name_no_python():
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    assert '"bdist_wheel": AnyPythonWheel' in text
    assert {native.library_path(isa).name for isa in native.ISAS} == {
        f"_engine.{isa}.so" for isa in native.ISAS
    }
    for library in native.supported_isas():
        assert b"PyObject" not in native.library_path(library).read_bytes()


def test_no_tool_takes_an_engine_for_a_module():
    """Importing one ends a process whose processor lacks the engine's instructions."""
    folder = native.library_path("portable").parent
    assert list(folder.glob("_engine*.so"))
    names = {module.name for module in pkgutil.iter_modules([str(folder)])}
    assert {"native", "engine"} <= names
    assert not {name for name in names if "engine" in name} - {"engine"}


FIELDS_OF_SCHEMA = {
    1: """
        schema_version protocol_version task device clock source_sha256 copied outcome stage message
        detail labels workloads versions wall_seconds
    """
}
"""Fields of records that readers of a schema rely on. Only a new schema may lack one."""


def test_the_schema_of_records_rises_when_a_field_goes():
    assert set(FIELDS_OF_SCHEMA[SCHEMA_VERSION].split()) <= set(Evaluation.model_fields)


def test_the_page_of_the_protocol_states_its_version():
    text = (ROOT / "docs/protocol.md").read_text(encoding="utf-8")
    assert f"\nThis is version {PROTOCOL_VERSION} of the protocol. " in text


def test_the_changelog_is_short():
    unreleased = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    assert unreleased.startswith("Unreleased")
    assert 5 <= len(re.findall(r"^- ", unreleased, re.MULTILINE)) <= 14

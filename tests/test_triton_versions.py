"""The features that each version of Triton lacks, in words."""

import re
from pathlib import Path

import pytest

from kernel_gym import triton_versions

ROOT = Path(__file__).parent.parent
REMOVED = "at 2:8:\nBlock pointers have been removed in favor of the tensor descriptor API"
NO_CHECK = "load() got an unexpected keyword argument 'boundary_check'"
NO_ADVANCE = "AttributeError(\"module 'triton.language' has no attribute 'advance'\")"
NO_ELEMENT = "AttributeError(\"'_aggregate_type' object has no attribute 'element_ty'\")"
NO_SQUEEZE = "AttributeError(\"module 'triton.language' has no attribute 'squeeze'\")"
NO_METHOD = "AttributeError(\"'tensor' object has no attribute 'atomic_load'\")"


@pytest.mark.parametrize(
    ("message", "version", "words"),
    [
        (REMOVED, "3.9.0", ["Triton 3.9.0", "3.5 to 3.8", "make_tensor_descriptor"]),
        (NO_CHECK, "3.9.0", ["Triton 3.9.0", "boundary_check", "3.5 to 3.8"]),
        (NO_ADVANCE, "3.10.1", ["Triton 3.10.1", "tl.advance"]),
        (NO_ELEMENT, "3.8.0", ["Triton 3.8.0", "block pointer", "3.5 to 3.7"]),
        (NO_SQUEEZE, "3.6.0", ["Triton 3.6.0", "tl.squeeze", "3.7 or later"]),
        (NO_METHOD, "3.8.0+git1", ["Triton 3.8.0+git1", "tl.atomic_load", "3.9 or later"]),
    ],
)
def test_what_a_version_lacks_is_named_with_the_versions_that_have_it(message, version, words):
    text = triton_versions.lacking(message, version)
    assert not [word for word in words if word not in text], text


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (REMOVED, "3.8.0"),
        (NO_SQUEEZE, "3.7.1"),
        ("module 'triton.language' has no attribute 'nonsense'", "3.5.1"),
        ("dot() got an unexpected keyword argument 'boundary'", "3.9.0"),
        ("ZeroDivisionError: division by zero", "3.9.0"),
    ],
)
def test_other_errors_are_not_explained_by_the_version(message, version):
    assert triton_versions.lacking(message, version) == ""


@pytest.mark.parametrize(
    ("version", "tested"),
    [("3.4.0", False), ("3.5.1", True), ("3.9.0", True), ("3.10.0", False), ("4.0.0", False)],
)
def test_versions_that_are_not_tested_are_named(version, tested):
    problem = triton_versions.problem(version)
    assert (problem == "") is tested
    assert tested or (version in problem and "3.5 to 3.9" in problem)


def test_a_version_without_numbers_is_refused():
    with pytest.raises(ValueError, match="found 'nightly', expected"):
        triton_versions.numbers("nightly")


def test_the_package_asks_for_the_versions_that_are_tested():
    text = (ROOT / "pyproject.toml").read_text()
    least, below = re.search(r'"triton>=([\d.]+),<([\d.]+);', text).groups()
    assert triton_versions.numbers(least) == triton_versions.FIRST
    major, minor = triton_versions.numbers(below)
    assert (major, minor - 1) == triton_versions.LAST


def test_the_default_has_block_pointers():
    (pinned,) = re.findall(r"^triton==(.*)$", (ROOT / "constraints.txt").read_text(), re.M)
    assert triton_versions.has_block_pointers(pinned)
    assert not triton_versions.problem(pinned)

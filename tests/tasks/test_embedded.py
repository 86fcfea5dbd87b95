"""Which language a source uses, and what is said of one that a task does not accept."""

from __future__ import annotations

import importlib.util

import pytest

from kernel_gym.tasks.embedded import (
    lacking,
    language_of,
    missing_package,
    uses_flydsl,
    waits_by_compiler,
    wrong_language,
)


@pytest.mark.parametrize(
    ("source", "used"),
    [
        ("import flydsl.compiler as flyc\n", True),
        ("import torch\nfrom flydsl import expr as fx\n", True),
        ("def f():\n    from flydsl.expr import gpu\n", True),
        ("import torch, flydsl.expr as fx\n", True),
        ("import triton  # not flydsl\n", False),
        ("import flydsl_kernels\n", False),
    ],
)
def test_a_module_uses_flydsl_if_it_imports_it(source, used):
    assert uses_flydsl(source) is used
    assert waits_by_compiler(source) is not used


def test_waits_of_gluon_are_its_own():
    assert not waits_by_compiler("from triton.experimental import gluon\n")


@pytest.mark.parametrize(
    ("source", "language"),
    [
        ("import torch\nimport flydsl.compiler as flyc\n", "FlyDSL"),
        ("import tilelang\nimport torch\n", "TileLang"),
        ("import triton\nfrom triton.experimental import gluon\n", "Gluon"),
        ("import torch\nimport triton\n", "Triton"),
        ("#include <hip/hip_runtime.h>\n", "HIP"),
        ("import torch\nKERNEL = '__global__ void work() {}'\n", "HIP"),
        ("import torch\n", "PyTorch"),
        ("def add(x, y):\n    return x + y\n", ""),
    ],
)
def test_a_source_has_a_language(source, language):
    assert language_of(source) == language
    refusal = wrong_language(source, "flydsl")
    assert bool(refusal) is (language != "FlyDSL")
    assert not wrong_language(source, "")
    if refusal:
        named = f"a source in {language}" if language else "no import of flydsl"
        assert refusal == (
            f"found {named}, expected one in FlyDSL: import flydsl and write @flyc.kernel kernels, "
            "or choose a task in another mode"
        )


def test_a_device_says_why_it_takes_no_candidate_in_a_language(monkeypatch):
    find, there = importlib.util.find_spec, {"flydsl": object()}
    spec = lambda name: there[name] if name in there else find(name)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", spec)
    assert lacking("flydsl", ["flydsl"]) == lacking("", []) == missing_package("flydsl") == ""
    assert lacking("flydsl", []) == "candidates in FlyDSL are for AMD's GPUs: use --device sim"
    there["flydsl"] = None
    missing = "flydsl is missing; pip install 'kernel-gym[flydsl]'"
    assert lacking("flydsl", []) == missing_package("flydsl") == missing

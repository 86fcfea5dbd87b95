"""Which language a source uses, and what is said of one that a task does not accept."""

from __future__ import annotations

import pytest

from kernel_gym.tasks.embedded import (
    EXTRAS,
    KERNELS,
    WRITES_HIP,
    extra_of,
    language_of,
    uses,
    waits_by_compiler,
    wrong_language,
)


@pytest.mark.parametrize(
    ("source", "used"),
    [
        ("import {}.language as T\n", True),
        ("import torch\nfrom {} import expr as fx\n", True),
        ("def f():\n    from {}.expr import gpu\n", True),
        ("import torch, {}.expr as fx\n", True),
        ("import triton  # not {}\n", False),
        ("import {}_kernels\n", False),
    ],
)
@pytest.mark.parametrize("package", EXTRAS)
def test_a_module_uses_a_package_if_it_imports_it(package, source, used):
    text = source.format(package)
    assert uses(package, text) is used
    assert extra_of(text) == (package if used else "")
    assert waits_by_compiler(text) is not used


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
    assert not wrong_language(source, "")
    for package, name in EXTRAS.items():
        refusal = wrong_language(source, package)
        assert bool(refusal) is (language != name)
        if refusal:
            named = f"a source in {language}" if language else f"no import of {package}"
            assert refusal == (
                f"found {named}, expected one in {name}: import {package} and write "
                f"{KERNELS[package]} kernels, or choose a task in another mode"
            )


def test_each_package_has_a_decorator_of_its_kernels():
    assert set(KERNELS) == set(EXTRAS) >= WRITES_HIP

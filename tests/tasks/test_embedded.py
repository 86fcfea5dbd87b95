"""Which language a Python module uses: Triton alone, Gluon or FlyDSL."""

from __future__ import annotations

import pytest

from kernel_gym.tasks.embedded import uses_flydsl, waits_by_compiler


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

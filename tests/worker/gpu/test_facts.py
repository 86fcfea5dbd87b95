"""Triton kernels compiled for architectures that are not here."""

from types import SimpleNamespace

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernel_gym.worker.gpu.facts import cross_compile


@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@pytest.fixture
def launched(tmp_path, monkeypatch):
    """The facts that a worker has recorded about one kernel."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    source = ASTSource(scale, {"x": "*fp16", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 256})
    compiled = triton.compile(source, target=GPUTarget("hip", "gfx942", 64))
    return SimpleNamespace(compiled=[(source, compiled.metadata)])


@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
def test_a_kernel_is_compiled_for_another_architecture(launched, arch):
    (kernel,) = cross_compile(launched, arch)
    assert (kernel["name"], kernel["arch"]) == ("scale", arch)
    assert 0 < kernel["vgprs"] <= 512
    assert kernel["sgprs"] > 0
    assert kernel["vgpr_spills"] == 0
    assert (kernel["waves_per_simd"], kernel["occupancy_limiter"]) == (8, "wave slots")


def test_an_architecture_that_does_not_exist_is_an_error_in_the_facts(launched):
    (kernel,) = cross_compile(launched, "gfx1")
    assert kernel["arch"] == "gfx1"
    assert kernel["error"]

"""The words that let clang find TileLang's templates and the headers that HIP 5 lacks."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from kernel_gym.devices import hip_build
from kernel_gym.devices.base import Failed, InfraError
from kernel_gym.devices.hip_build import compile_tilelang, tilelang_lacks
from kernel_gym.devices.sim.precompiled import beginning_of
from kernel_gym.devices.sim.tilelang_headers import TILELANG_BEGINNING, templates, with_tilelang
from kernel_gym.devices.sim.toolchain import HipToolchain, MissingToolchain, hip_toolchain

CHAIN = hip_toolchain("gfx942")
INCLUDES = "".join(f"#include <{name}>\n" for name in TILELANG_BEGINNING)
KERNEL = """
extern "C" __global__ void __launch_bounds__(64) copy_kernel(half_t* x, half_t* out) {
  out[threadIdx.x] = x[threadIdx.x];
}
"""

needs_toolchain = pytest.mark.skipif(
    not isinstance(CHAIN, HipToolchain), reason="no HIP toolchain: see kernel-gym doctor"
)
needs_tilelang = pytest.mark.skipif(templates() is None, reason="TileLang is not installed")


@needs_toolchain
def test_both_sides_get_the_templates_and_the_added_headers(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert isinstance(CHAIN, HipToolchain)
    chain = with_tilelang(CHAIN, Path("/templates"))
    for words, plain in ((chain.device, CHAIN.device), (chain.host, CHAIN.host)):
        added = words[len(plain) :]
        assert added[:2] == ("-I", "/templates")
        folder = Path(added[added.index("-idirafter") + 1])
        assert (folder / "rocwmma" / "rocwmma.hpp").is_file()


def test_without_tilelang_there_are_no_templates(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert templates() is None
    cure = "tilelang is missing; pip install 'kernel-gym[tilelang]'"
    assert tilelang_lacks("gfx942") == cure
    with pytest.raises(InfraError, match=re.escape(cure)):
        compile_tilelang(KERNEL, "gfx942", 60.0, None, None)


@needs_tilelang
def test_without_a_compiler_of_hip_the_cure_is_named(monkeypatch):
    lacks = MissingToolchain("no clang++ 17 or newer", "apt-get install clang-19")
    monkeypatch.setattr(hip_build, "hip_toolchain", lambda arch: lacks)
    assert tilelang_lacks("gfx950") == (
        "TileLang writes HIP, which is not built here: no clang++ 17 or newer; "
        "apt-get install clang-19"
    )


@needs_tilelang
def test_the_templates_are_there_and_plain_hip_does_not_begin_with_them():
    folder = templates()
    assert folder is not None
    assert all((folder / name).is_file() for name in TILELANG_BEGINNING[1:])
    assert beginning_of(INCLUDES + KERNEL) == TILELANG_BEGINNING[:1]


@needs_toolchain
@needs_tilelang
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_source_of_tilelang_is_built_and_a_wrong_one_says_where():
    built = compile_tilelang(INCLUDES + KERNEL, "gfx942", 120.0, None, None)
    assert not isinstance(built, Failed), built.message
    assembler, library = built.results
    assert b".amdhsa_kernel copy_kernel" in assembler
    assert library[:4] == b"\x7fELF"
    wrong = compile_tilelang(
        INCLUDES + KERNEL.replace("half_t*", "nothing*"), "gfx942", 120, None, None
    )
    assert isinstance(wrong, Failed)
    assert "unknown type name 'nothing'" in wrong.message

"""The text of an instruction is the same for all versions of LLVM."""

from __future__ import annotations

import os

import pytest

from kernel_gym.sim import llvm_packages
from kernel_gym.sim.asm.disassembler import _installed, fix_for, plain_text


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (
            "s_addc_u32 s1, s1, lit(0x0)                // 000000001904: 820100FF",
            "s_addc_u32 s1, s1, 0x0",
        ),
        ("\tv_mov_b32_e32 v4, lit(0x3f800000)", "v_mov_b32_e32 v4, 0x3f800000"),
        ("s_add_u32 s0, s0, 0x1c // 00", "s_add_u32 s0, s0, 0x1c"),
        ("s_endpgm", "s_endpgm"),
    ],
)
def test_a_forced_literal_is_its_number(printed, expected):
    assert plain_text(printed) == expected


@pytest.mark.parametrize(("packaged", "named"), [(22, 22), (20, 20), (18, 22)])
def test_the_cure_names_a_version_that_the_distribution_has(monkeypatch, packaged, named):
    monkeypatch.setattr(llvm_packages, "_is_packaged", lambda version: version == packaged)
    llvm_packages.packaged_llvm.cache_clear()
    assert fix_for("gfx950") == f"apt-get install llvm-{named}"
    assert fix_for("gfx942") == "apt-get install llvm-19"
    llvm_packages.packaged_llvm.cache_clear()


def test_the_library_beside_a_named_compiler_is_found(monkeypatch, tmp_path):
    library = tmp_path / "lib" / "libLLVM.so.99.1"
    library.parent.mkdir()
    library.touch()
    (tmp_path / "bin").mkdir()
    monkeypatch.delenv("HIP_CLANG_PATH", raising=False)
    usual = _installed()
    monkeypatch.setenv("HIP_CLANG_PATH", str(tmp_path / "bin"))
    ((version, path),) = _installed() - usual
    assert version == 99
    assert os.path.samefile(path, library)

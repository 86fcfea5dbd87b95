"""Bundles of code objects: what goes in comes out, and the tool says what it cannot do."""

from __future__ import annotations

import struct

import pytest

from kernel_gym.worker.hip.drop_in.bundler import bundle, main, unbundle

ENTRIES = [("host-x86_64-unknown-linux", b""), ("hipv4-amdgcn-amd-amdhsa--gfx942", b"code")]


def test_entries_come_back_at_aligned_places():
    content = bundle(ENTRIES, alignment=4096)
    assert unbundle(content) == ENTRIES
    (offset, size, _) = struct.unpack_from("<QQQ", content, 32 + 24 + len(ENTRIES[0][0]))
    assert (offset % 4096, size) == (0, 4)


def test_the_tool_bundles_and_unbundles(tmp_path):
    code, joined, again = tmp_path / "code", tmp_path / "joined", tmp_path / "again"
    code.write_bytes(b"machine code")
    targets = "-targets=host-x86_64-unknown-linux,hip-amdgcn-amd-amdhsa--gfx942"
    inputs = ["-input=/dev/null", f"-input={code}"]
    assert main(["-type=o", "-bundle-align=4096", targets, *inputs, f"-output={joined}"]) == 0
    target = "-targets=hip-amdgcn-amd-amdhsa--gfx942"
    words = ["-unbundle", "-type=o", target, f"-input={joined}", f"-output={again}"]
    assert main(words) == 0
    assert again.read_bytes() == b"machine code"


def test_archives_are_refused_by_name(capsys):
    assert main(["-type=a", "-unbundle", "-input=x.a", "-output=y.a"]) == 1
    assert "-type=a" in capsys.readouterr().err


def test_other_files_are_refused():
    with pytest.raises(ValueError, match="found a file that begins with b'ELF'"):
        unbundle(b"ELF")

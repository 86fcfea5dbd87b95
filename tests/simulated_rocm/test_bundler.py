"""Bundles of code objects: what goes in comes out, and the tool says what it cannot do."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from kernel_gym.simulated_rocm.bundler import archived, bundle, main, members, unbundle

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


HOST, DEVICE = "host-x86_64-unknown-linux-gnu-", "hip-amdgcn-amd-amdhsa--gfx942"


def test_an_object_of_the_host_stays_one_with_code_objects_in_sections(tmp_path):
    host, code, joined = Path("/bin/true"), tmp_path / "code", tmp_path / "joined.o"
    code.write_bytes(b"machine code")
    inputs = [f"-input={host}", f"-input={code}", f"-output={joined}"]
    assert main(["-type=o", f"-targets={HOST},{DEVICE}", *inputs]) == 0
    assert joined.read_bytes().startswith(b"\x7fELF")
    assert unbundle(joined.read_bytes()) == [(DEVICE, b"machine code")]
    back = [tmp_path / "host.o", tmp_path / "again"]
    outputs = [f"-output={path}" for path in back]
    words = ["-unbundle", "-type=o", f"-targets={HOST},{DEVICE}", f"-input={joined}", *outputs]
    assert main(words) == 0
    assert back[0].read_bytes().startswith(b"\x7fELF")
    assert back[1].read_bytes() == b"machine code"


def test_an_archive_is_split_by_target(tmp_path):
    """The driver leaves out the empty last part of the triple."""
    files = [bundle([(DEVICE, b"odd")]), b"plain text", bundle([(DEVICE, b"even"), (HOST, b"x")])]
    source, output = tmp_path / "lib.a", tmp_path / "bc.a"
    source.write_bytes(archived(files))
    words = ["-unbundle", "-type=a", f"-input={source}", f"-output={output}"]
    assert main([*words, "-targets=hip-amdgcn-amd-amdhsa-gfx942"]) == 0
    assert list(members(output.read_bytes())) == [b"odd", b"even"]
    assert main([*words, "-targets=hip-amdgcn-amd-amdhsa-gfx950"]) == 0
    assert list(members(output.read_bytes())) == []


@pytest.mark.parametrize(
    ("kind", "comment"), [("hipi", "//"), ("i", "//"), ("s", "#"), ("ll", ";")]
)
def test_texts_become_one_text_and_come_back(tmp_path, kind, comment):
    texts, joined = {HOST: "int host;\n", DEVICE: "\nint device;"}, tmp_path / "joined"
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    inputs = [f"-input={tmp_path / name}" for name in texts]
    words = [f"-type={kind}", f"-targets={','.join(texts)}"]
    assert main([*words, *inputs, f"-output={joined}"]) == 0
    mark = f"{comment} __CLANG_OFFLOAD_BUNDLE____"
    assert f"\n{mark}START__ {DEVICE}\n\nint device;\n{mark}END__" in joined.read_text()
    outputs = [f"-output={tmp_path / name}.again" for name in texts]
    assert main(["-unbundle", *words, f"-input={joined}", *outputs]) == 0
    assert {name: (tmp_path / f"{name}.again").read_text() for name in texts} == texts


def test_archives_are_those_of_ar(tmp_path):
    files = []
    for name in ("a", "a_name_of_more_than_sixteen_letters.o"):
        files.append(tmp_path / name)
        files[-1].write_text(name)
    subprocess.run(["ar", "rcsD", tmp_path / "lib.a", *files], check=True)
    contents = list(members((tmp_path / "lib.a").read_bytes()))
    assert contents == [file.name.encode() for file in files]
    (tmp_path / "own.a").write_bytes(archived([b"odd", b"even"]))
    subprocess.run(["ar", "x", "own.a"], cwd=tmp_path, check=True)
    assert (tmp_path / "0.bc").read_bytes() == b"odd"
    assert (tmp_path / "1.bc").read_bytes() == b"even"


@pytest.mark.parametrize("content", [b"!<arch>\n" + b"x" * 60, b"text", b"\x7fELF", b""])
def test_broken_archives_and_objects_have_a_message(content, tmp_path, capsys):
    source = tmp_path / "source"
    source.write_bytes(content)
    for kind in ("a", "o", "hipi"):
        words = ["-unbundle", f"-type={kind}", f"-targets={DEVICE}", f"-input={source}"]
        assert main([*words, f"-output={tmp_path / 'output'}"]) == 1
        assert str(source) in capsys.readouterr().err


def test_what_is_not_done_is_refused_by_name(capsys):
    assert main(["-type=a", "-input=x.a", "-output=y.a"]) == 1
    assert "-type=a" in capsys.readouterr().err


def test_other_files_are_refused():
    with pytest.raises(ValueError, match="found a file that begins with b'ELF'"):
        unbundle(b"ELF")

"""Precompiled headers: who gets them, that they change nothing, and that nobody changes them."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from pathlib import Path

import pytest

from kernel_gym.devices import hip_build
from kernel_gym.devices.base import Failed
from kernel_gym.devices.hip_build import BuildRecipe, BuildResult, compile_hip, compile_source
from kernel_gym.devices.sim import hip_files, precompiled
from kernel_gym.devices.sim.precompiled import BEGINNINGS, beginning_of, precompiled_for
from kernel_gym.devices.sim.read_headers import are_unchanged, keep_read_files
from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.tasks import get_task

RUNTIME, HALF = "#include <hip/hip_runtime.h>\n", "#include <hip/hip_fp16.h>\n"
BEGUN = {
    "a comment": ("// softmax\n/* of rows,\n * quickly */\n\n" + RUNTIME, BEGINNINGS[2]),
    "both": (f"{HALF}\n{RUNTIME}#include <stdint.h>\n", BEGINNINGS[0]),
    "the other order": (RUNTIME + HALF, BEGINNINGS[1]),
    "lines of Windows": (RUNTIME.replace("\n", "\r\n") + "int x;", BEGINNINGS[2]),
    "another header behind": (RUNTIME + "#include <cmath>\n" + HALF, BEGINNINGS[2]),
    "another header before": ("#include <cmath>\n" + RUNTIME, None),
    "a macro before": ("#define __HIP_NO_HALF_OPERATORS__\n" + RUNTIME, None),
    "a macro in a joined line": ("// \\\n#define inline\n" + RUNTIME, None),
    "a comment that ends by a joined line": ("/* *\\\n/\n#define inline\n/* */" + RUNTIME, None),
    "a condition": ("#if 0\n" + RUNTIME + "#endif\n", None),
    "code behind a comment": ("/* */ int x;\n" + RUNTIME, None),
    "code behind the include": ("#include <hip/hip_runtime.h> /* */ int x;\n", None),
    "no end of line": ("#include <hip/hip_runtime.h>", None),
    "a name in quotes": ('#include "hip/hip_runtime.h"\n', None),
    "a mark of the encoding": ("\ufeff" + RUNTIME, None),
}
SOURCES = {
    "a root, which two headers define": "__global__ void k(float* x) { *x = sqrtf(*x); }",
    "a line and a file": "__global__ void k(int* x) { x[0] = __LINE__ + __COUNTER__; }",
    "halves": "#include <hip/hip_fp16.h>\n__global__ void k(__half* x) { *x = *x + *x; }",
    "an unknown name": "__global__ void k(float* x) { *x = y; }",
    "no such overload": "__global__ void k(float* x) { __syncthreads(x); }",
    "a missing header": "#include <absent.h>\n",
    "a missing symbol of C": 'extern "C" int absent();\n__attribute__((constructor)) void f() {}',
    "two definitions": "void* hip_a;\nvoid* hip_a;",
    "no halves": "__global__ void k(__half* x) { *x = *x + *x; }",
}


@pytest.fixture(scope="module")
def chain():
    result = hip_toolchain()
    if not isinstance(result, HipToolchain):
        pytest.skip(result.problem)
    return result


def _headers(chain):
    headers = precompiled_for(chain, RUNTIME, hip_build._build_trusted)
    assert headers is not None
    return headers


def _plain(chain, source):
    commands = hip_files.commands({"device": chain.device, "host": chain.host})
    results = hip_files.ASSEMBLER, hip_files.LIBRARY
    return compile_source(BuildRecipe(hip_files.files(source), commands, results), 60.0)


@pytest.mark.parametrize("name", BEGUN)
def test_a_source_gets_what_its_includes_say(name):
    source, beginning = BEGUN[name]
    assert beginning_of(source) == beginning


@pytest.mark.parametrize("piece", [" ", "\t\n", "// ", "/*", "/**", "#include <", "//\n", "*/"])
def test_a_long_source_is_read_once(piece):
    assert beginning_of(piece * (1 << 18)) is None
    assert beginning_of(f"// {piece * (1 << 18)}\\\n" + RUNTIME) is None


@pytest.mark.parametrize("name", SOURCES)
def test_code_and_messages_are_those_of_a_plain_build(chain, name):
    source = RUNTIME + SOURCES[name]
    built, plain = compile_hip(source, "gfx942", 60.0, None, None), _plain(chain, source)
    if isinstance(plain, Failed):
        assert built == plain
    else:
        assert isinstance(built, BuildResult)
        assert built.results[0] == plain.results[0]


def test_a_start_kernel_is_built_with_them(chain, monkeypatch):
    source = get_task("hip2hip/softmax").kernel_source
    plain = _plain(chain, source)

    def never(log):
        raise AssertionError(f"the build with precompiled headers failed: {log}")

    monkeypatch.setattr(hip_build, "speaks_of_headers", never)
    built = compile_hip(source, "gfx942", 60.0, None, None)
    assert isinstance(built, BuildResult)
    assert built.results[0] == plain.results[0]


def test_a_compiler_cannot_change_them(chain):
    headers = _headers(chain)
    before = {path.name: path.read_bytes() for path in headers.folder.iterdir()}
    script = f"for f in {headers.folder}/*; do echo x >> $f; rm -f $f; done; echo x > {{}}\ntrue"
    script = script.format(headers.folder / "new")
    recipe = BuildRecipe({"s": script}, [["/bin/sh", "s"]], [], (str(headers.folder),))
    compile_source(recipe, 60.0)
    assert {path.name: path.read_bytes() for path in headers.folder.iterdir()} == before


def test_a_compiler_sees_only_those_of_its_source(chain):
    headers = _headers(chain)
    for beginning in BEGINNINGS:
        precompiled.prepare(chain, beginning, hip_build._build_trusted)
    others = [path for path in headers.folder.parent.iterdir() if path != headers.folder]
    assert others
    look = "\n".join(f"test -e {path} && echo seen >&2 && exit 1" for path in others) + "\ntrue"
    recipe = BuildRecipe({"s": look}, [["/bin/sh", "s"]], [], (str(headers.folder),))
    assert isinstance(compile_source(recipe, 60.0), BuildResult)


def test_other_flags_and_another_compiler_have_other_files(chain):
    more = dataclasses.replace(chain, device=(*chain.device, "-DX"))
    newer = dataclasses.replace(chain, version="99.0.0")
    keys = {precompiled._key(c, b) for c in (chain, more, newer) for b in BEGINNINGS}
    assert len(keys) == 3 * len(BEGINNINGS)


def test_they_are_made_again_when_a_header_has_changed(chain, tmp_path):
    made = []

    def build(commands, results):
        made.append(commands)
        return [b"", b"", b"", f"x: {tmp_path}/a.h {tmp_path}/b.h".encode()]

    folder = tmp_path / "kept"
    for text in ("1", "1", "2", "2"):
        (tmp_path / "a.h").write_text(text)
        precompiled._prepare(chain, BEGINNINGS[0], build, folder)
    assert len(made) == 2
    (tmp_path / "b.h").write_text("this one was absent")
    precompiled._prepare(chain, BEGINNINGS[0], build, folder)
    assert len(made) == 3


def test_a_header_that_is_installed_again_with_equal_text_changes_nothing(chain):
    """The list of headers tells their texts; clang would tell their times."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # compilers have another user id
        header = folder / "own.h"
        header.write_text("#pragma once\ninline int one() { return 1; }\n")
        own = dataclasses.replace(
            chain, device=(*chain.device, f"-I{folder}"), host=(*chain.host, f"-I{folder}")
        )
        headers = precompiled._prepare(own, ("own.h",), hip_build._build_trusted, folder / "kept")
        assert headers is not None
        recipe = BuildRecipe(
            hip_files.files("#include <own.h>\nint two() { return 2 * one(); }\n"),
            headers.commands(),
            (hip_files.ASSEMBLER, hip_files.LIBRARY),
            (str(headers.folder),),
        )
        os.utime(header, (1, 1))
        assert are_unchanged(headers.folder / "read.json")
        assert isinstance(compile_source(recipe, 60.0), BuildResult)
        header.write_text(header.read_text().replace("1", "3"))
        assert not are_unchanged(headers.folder / "read.json")


def test_a_compiler_that_cannot_make_them_builds_without(chain, tmp_path):
    assert precompiled._prepare(chain, BEGINNINGS[0], lambda *_: None, tmp_path / "a") is None
    assert precompiled._prepare(chain, BEGINNINGS[0], lambda *_: None, tmp_path / "a") is None


def test_headers_that_are_there_and_of_today_are_prepared(chain, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    header = tmp_path / "a.h"
    header.write_text("1")
    assert not precompiled.is_prepared(chain, ("a.h",))
    precompiled.prepare(chain, ("a.h",), lambda *_: [b"", b"", b"", f"x: {header}".encode()])
    assert precompiled.is_prepared(chain, ("a.h",))
    header.write_text("2")
    assert not precompiled.is_prepared(chain, ("a.h",))


def test_a_list_that_is_no_list_counts_as_changed(tmp_path):
    place = tmp_path / "read.json"
    assert not are_unchanged(place)
    keep_read_files("", place)
    assert are_unchanged(place)
    place.write_text("{")
    assert not are_unchanged(place)

"""The folders of a GPU compiler, as the compiler itself reports them."""

import os
import shutil

import pytest

from kernel_gym.devices.gpu.toolkit import toolkit_folders


@pytest.fixture
def store(tmp_path):
    """A toolkit whose headers are links into another folder, with a compiler that reports them."""
    real, toolkit = tmp_path / "store" / "headers", tmp_path / "toolkit"
    real.mkdir(parents=True)
    (real / "cuda_runtime.h").write_text("")
    (toolkit / "bin").mkdir(parents=True)
    (toolkit / "include").mkdir()
    (toolkit / "lib").mkdir()
    (toolkit / "include" / "cuda_runtime.h").symlink_to(real / "cuda_runtime.h")
    compiler = toolkit / "bin" / "compiler"
    compiler.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        f'*" -M "*) echo "probe.o: probe.cu {toolkit}/include/cuda_runtime.h \\\\" ;;\n'
        f'*--dryrun*) echo "#\\$ LIBRARIES=  \\"-L{toolkit}/bin/../lib\\" /no/such/place" >&2 ;;\n'
        "*) exit 1 ;;\n"
        "esac\n"
    )
    compiler.chmod(0o755)
    return toolkit, real, compiler


def test_headers_behind_links_and_libraries_are_named(store):
    toolkit, real, compiler = store
    folders = toolkit_folders((str(compiler), "-O3"), ".cu")
    assert {str(toolkit / "include"), str(toolkit / "lib"), str(real)} <= set(folders)
    assert all(os.path.isdir(folder) for folder in folders)


def test_a_compiler_that_cannot_run_reports_nothing(tmp_path):
    assert toolkit_folders((str(tmp_path / "none"),), ".cu") == ()


def test_neither_the_root_nor_the_system_folder_is_named(store):
    _, _, compiler = store
    assert not {"/", "/usr", "/tmp"} & set(toolkit_folders((str(compiler),), ".cu"))


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_a_real_compiler_names_its_headers(tmp_path):
    header = tmp_path / "own" / "hip" / "hip_runtime.h"
    header.parent.mkdir(parents=True)
    header.write_text("#include <stddef.h>\n")
    folders = toolkit_folders(("g++", "-I", str(tmp_path / "own")), ".cpp")
    assert str(header.parent) in folders

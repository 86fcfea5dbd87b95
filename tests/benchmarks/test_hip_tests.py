"""The draw of AMD's hip-tests: one device, no image hardware, nothing that AMD disables."""

from __future__ import annotations

import pytest

from benchmarks.outside import hip_tests

LIST = """#define COMMON
{
    "DisabledTests": [
    #if defined COMMON
        "Unit_off_Basic",
        "Unit_family_*",
    #endif
    #if defined gfx908
        "Unit_other_chip",
    #endif
    #if defined gfx90a || defined  gfx942
        "Unit_on - int",
    #endif
    ]
}
"""
FILES = {
    "stream/first.cc": '#include "first.hh"\nTEST_CASE("Unit_on") {}\n'
    'TEST_CASE("Unit_off_Basic") {}\n'
    'load("kernel.code"); load("elsewhere.code"); run("child_exe");\n',
    "stream/first.hh": 'load("header.code"); load("kernel.code");\n',
    "stream/kernel.cpp": "",
    "stream/header.cc": "",
    "stream/child_exe.cc": "int main() {}\n",
    "stream/second.cpp": 'TEST_CASE("Unit_family_one") {}\nTEST_CASE("Unit_other_chip") {}\n',
    "stream/CMakeLists.txt": "set(TEST_SRC\n  first.cc\n  shared.cc\n  program.cc)\n"
    "file(GLOB NEGATIVE_TEST_SRC\n  wrong.cc)\n",
    "stream/shared.cc": "void help() {}\n",
    "stream/wrong.cc": "does not compile\n",
    "stream/program.cc": "int main() {}\n",
    "memory/image.cc": 'TEST_CASE("Unit_image") { hipMallocArray(0); }\n',
    "p2p/peers.cc": 'TEST_CASE("Unit_peers") {}\n',
}


@pytest.fixture
def checkout(tmp_path):
    unit = tmp_path / "hip-tests" / "catch" / "unit"
    for name, text in FILES.items():
        (unit / name).parent.mkdir(parents=True, exist_ok=True)
        (unit / name).write_text(text)
    config = unit.parent / "hipTestMain" / "config"
    config.mkdir(parents=True)
    (config / "config_amd_linux").write_text(LIST)
    return tmp_path / "hip-tests"


def names(files):
    return [file.name for file in files]


def test_files_for_one_device_without_images_are_drawn(checkout):
    assert names(hip_tests.drawn_files(checkout, 1)) == ["first.cc", "second.cpp"]
    assert len(hip_tests.drawn_files(checkout, 1, count=1)) == 1


def test_tests_that_amd_disables_on_each_of_its_gpus_are_left_out(checkout):
    first, second = hip_tests.drawn_files(checkout, 1)
    assert hip_tests.run_words(checkout, first)[3:] == ("~Unit_off_Basic", "~Unit_on - int")
    assert hip_tests.run_words(checkout, second)[3:] == ("~Unit_family_*",)


def test_a_program_is_built_with_the_shared_sources_of_its_folder(checkout):
    first, _ = hip_tests.drawn_files(checkout, 1)
    words = hip_tests.build_words(checkout, first)
    assert {"SHARED=shared.cc", f"CHECKOUTS={checkout.parent}"} <= set(words)
    assert hip_tests.run_words(checkout, first)[2] in words


def test_what_a_test_loads_or_starts_is_made_where_it_has_a_source(checkout):
    first, second = hip_tests.drawn_files(checkout, 1)
    made = ["kernel.code", "child_exe", "header.code"]
    assert hip_tests.made_files(first) == made
    assert hip_tests.build_words(checkout, first)[-3:] == tuple(made)
    assert hip_tests.made_files(second) == []


def test_a_folder_without_a_list_of_sources_shares_none(checkout):
    assert hip_tests.shared_sources(checkout / "catch" / "unit" / "memory" / "image.cc") == []

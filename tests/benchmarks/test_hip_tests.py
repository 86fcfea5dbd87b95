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
    "stream/first.cc": 'TEST_CASE("Unit_on") {}\nTEST_CASE("Unit_off_Basic") {}\n',
    "stream/second.cpp": 'TEST_CASE("Unit_family_one") {}\nTEST_CASE("Unit_other_chip") {}\n',
    "stream/shared.cc": "void help() {}\n",
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
    assert words[-1] == hip_tests.run_words(checkout, first)[2]

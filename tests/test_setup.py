"""Engines that `setup.py` builds: one in a development checkout, all of them in a wheel."""

import os
from pathlib import Path

import pytest
import setuptools  # noqa: F401  (it provides distutils, which Python 3.12 has no more)

from distutils.core import run_setup  # isort: skip

from kernel_gym.sim.processor import ISAS, isas_of_processor

ROOT = Path(__file__).parent.parent


@pytest.fixture
def build_ext(monkeypatch):
    """Returns the command `build_ext` of this checkout, with options set before it is finalized."""
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("KERNEL_GYM_ENGINES", raising=False)

    def make(**options):
        command = run_setup("setup.py", stop_after="init").get_command_obj("build_ext")
        vars(command).update(options)
        command.ensure_finalized()
        return command

    return make


def engines(command):
    prefix = "kernel_gym.sim._engine_"
    names = [extension.name for extension in command.extensions]
    assert "kernel_gym.simulated_rocm._hip_runtime" in names
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


@pytest.mark.parametrize("options", [{"editable_mode": True}, {"inplace": True}])
def test_a_development_build_makes_the_engine_of_this_processor(build_ext, options):
    command = build_ext(**options)
    assert engines(command) == [isas_of_processor()[0]]
    assert len(command.get_output_mapping()) == 2


def test_a_wheel_has_every_engine(build_ext):
    assert engines(build_ext()) == list(ISAS)


def test_a_development_build_makes_every_engine_if_asked(build_ext, monkeypatch):
    monkeypatch.setenv("KERNEL_GYM_ENGINES", "all")
    assert engines(build_ext(editable_mode=True)) == list(ISAS)


def test_a_build_without_engines_leaves_those_that_are_there(build_ext, monkeypatch, tmp_path):
    monkeypatch.setenv("KERNEL_GYM_ENGINES", "none")
    command = build_ext(editable_mode=True)
    assert command.extensions == []
    monkeypatch.chdir(tmp_path)
    engine = tmp_path / "kernel_gym/sim/_engine.avx2.so"
    engine.parent.mkdir(parents=True)
    engine.touch()
    command.run()
    assert engine.exists()


def test_each_source_is_a_call_of_the_compiler_and_the_largest_starts_first(build_ext, tmp_path):
    calls = []

    class Compiler:
        def compile(self, sources, **options):
            calls.append((sources, options))
            return [f"{Path(source).stem}.o" for source in sources]

    sources = [tmp_path / name for name in ("a.cpp", "b.cpp", "c.cpp")]
    for size, source in enumerate(sources, start=1):
        source.write_text("x" * size, encoding="utf-8")
    command = build_ext(parallel=1)
    command.compiler, command.extensions = Compiler(), []
    command.build_extensions()
    objects = command.compiler.compile([str(source) for source in sources], debug=False)
    assert objects == ["a.o", "b.o", "c.o"]
    assert calls == [([str(source)], {"debug": False}) for source in reversed(sources)]


@pytest.mark.parametrize(
    ("flags", "isas"),
    [
        ("sse2", ("portable",)),
        ("avx2 fma f16c bmi1 bmi2 abm", ("avx2", "portable")),
        ("avx512f avx512bw avx512dq avx512vl avx2 fma f16c bmi1 bmi2 abm", ISAS),
    ],
)
def test_the_processor_s_flags_choose_the_engine(tmp_path, flags, isas):
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor : 0{os.linesep}flags\t\t: {flags}\n", encoding="utf-8")
    assert isas_of_processor(file) == isas
    assert isas_of_processor(tmp_path / "absent") == ("portable",)


def test_engines_of_older_sources_do_not_stay(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    setup = run_setup("setup.py", stop_after="init").cmdclass["build_ext"].run.__globals__
    folder = tmp_path / "kernel_gym/sim"
    folder.mkdir(parents=True)
    for isa in ISAS:
        (folder / f"_engine.{isa}.so").touch()
    (folder / "_engine_avx2.so").touch()  # the name before it had a dot
    monkeypatch.chdir(tmp_path)
    setup["remove_other_engines"](["kernel_gym.sim._engine_avx2", "kernel_gym.other"])
    assert [path.name for path in folder.iterdir()] == ["_engine.avx2.so"]

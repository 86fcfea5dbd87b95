"""Linked code objects: references, variables, tables and their sizes."""

from __future__ import annotations

import ctypes as ct
import subprocess

import numpy as np
import pytest

from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.sandbox.failures import BuildError
from kernel_gym.sim.asm.errors import AsmError
from kernel_gym.sim.engine.engine import Engine
from kernel_gym.sim.engine.host_calls import BUFFER_BYTES, HostCalls
from kernel_gym.worker.sim.code_objects import code_in
from tests.sim.support import launch

SOURCE = """
#define DEVICE __attribute__((device))
DEVICE float factor = 2.0f;
DEVICE short odd[3] = {1, 2, 3};
DEVICE const char* DEVICE names[2] = {"first", "second"};
DEVICE __attribute__((noinline)) float half(float x) { return x * 0.5f; }
DEVICE __attribute__((noinline)) float twice(float x) { return x * 2.f; }
DEVICE float (*const DEVICE choices[2])(float) = {half, twice};
extern "C" __attribute__((global)) void run(float* x, int* letters) {
  const int i = __builtin_amdgcn_workitem_id_x();
  x[i] = choices[i & 1](x[i]) * factor + odd[2];
  letters[i] = names[i & 1][i % 5];
}
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    """A linked code object."""
    chain = hip_toolchain()
    if not isinstance(chain, HipToolchain):
        pytest.skip(chain.problem)
    folder = tmp_path_factory.mktemp("code")
    source, output = folder / "code.hip", folder / "code.co"
    source.write_text(SOURCE)
    flags = "-x hip --offload-arch=gfx942 --cuda-device-only -nogpuinc -nogpulib -O2"
    more = "-gline-tables-only --no-gpu-bundle-output"
    subprocess.run([chain.clang, *flags.split(), *more.split(), source, "-o", output], check=True)
    return code_in(output.read_bytes(), "gfx942")


@pytest.fixture
def engine():
    """An engine that serves calls of the host, which the compiler expects of pointers to code."""
    memory = ct.create_string_buffer(BUFFER_BYTES)
    made = Engine(threads=1)
    made.serve_host_calls(HostCalls(ct.addressof(memory), lambda text, to_stderr: None))
    yield made
    del memory


def test_it_runs_with_its_variables(code, engine):
    kernel = engine.load(code, "run")
    start = np.arange(64, dtype=np.float32)
    x, letters = start.copy(), np.zeros(64, np.int32)
    result = launch(engine, kernel, (1,), (64,), (x, letters))
    assert result.fault is None, result.fault.message
    assert (x == np.where(start % 2 == 0, start * 0.5, start * 2) * 2 + 3).all()
    expected = [ord(("first", "second")[i & 1][i % 5]) for i in range(64)]
    assert letters.tolist() == expected


def test_sizes_are_those_of_the_source(code):
    engine = Engine(threads=1)
    assert [engine.variable(code, name)[1] for name in ("factor", "odd", "names")] == [4, 6, 16]
    assert engine.variable(code, "absent") is None


def test_instructions_know_their_lines(code, engine):
    kernel = engine.load(code, "run")
    assert any(kernel.source_of(i).endswith("code.hip:11") for i in range(kernel.instructions))


def test_damaged_objects_are_refused():
    with pytest.raises(AsmError, match="no code object for AMD GPUs"):
        Engine(threads=1).kernel_names(b"\x7fELF" + bytes(200))
    with pytest.raises(BuildError, match="neither assembler text nor a code object"):
        code_in(b"text", "gfx942")

"""The line of the candidate that an instruction belongs to, in HIP and in Triton's dialect."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.sim.asm.module import read_module
from kernel_gym.sim.asm.text import Module
from tests.sim.support import ASSEMBLER, kernel_text, parse

SOURCE = """
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

template <bool kMax>
__device__ float reduced(float value, float* scratch) {
  const int lane = threadIdx.x;
  scratch[lane] = value;
  __syncthreads();                                                     // barrier
  float total = scratch[0];
  for (int i = 1; i < blockDim.x; i++) {
    total = kMax ? fmaxf(total, scratch[i]) : total + scratch[i];
  }
  __syncthreads();                                                     // barrier
  return total;
}

__global__ void rows(const __half* x, float* out, int* count) {
  __shared__ float scratch[256];
  const float value = __half2float(x[blockIdx.x * 256 + threadIdx.x]);  // load
  const float top = reduced<true>(value, scratch);
  const float sum = reduced<false>(expf(value - top), scratch);
  atomicAdd(count, 1);                                                 // atomic
  out[blockIdx.x * 256 + threadIdx.x] = sum;                           // store
}

__global__ void marks(float* out) {
  out[threadIdx.x] = 1.0f;                                             // mark
}
"""
WANTED = {
    "s_barrier": "// barrier",
    "global_load_ushort": "// load",
    "global_atomic_add": "// atomic",
}


@pytest.fixture(scope="module", params=["text", "code object"])
def compiled(request, tmp_path_factory) -> Module:
    chain = hip_toolchain("gfx942")
    if not isinstance(chain, HipToolchain):
        pytest.skip(chain.problem)
    folder: Path = tmp_path_factory.mktemp("lines")
    (folder / "candidate.hip").write_text(SOURCE)
    command = [*chain.device, "-o", str(folder / "k.s"), str(folder / "candidate.hip")]
    subprocess.run(command, check=True, capture_output=True)
    text = (folder / "k.s").read_text()
    if request.param == "text":
        return parse(text)
    if not any(shutil.which(f"llvm-symbolizer-{version}") for version in range(17, 22)):
        pytest.skip("no llvm-symbolizer")
    return read_module(ASSEMBLER.code_object(text), ASSEMBLER)


def lines_of(module: Module, mnemonic: str) -> list[str]:
    """The lines of the source to which instructions of a name belong."""
    text = SOURCE.splitlines()
    places = [
        i.location
        for function in module.functions.values()
        for i in function.instructions
        if i.mnemonic == mnemonic
    ]
    assert all(place is not None for place in places)
    return [text[place[1] - 1] for place in places if place is not None]


@pytest.mark.parametrize("mnemonic", WANTED)
def test_inlined_header_code_has_the_line_of_its_call(compiled, mnemonic):
    lines = lines_of(compiled, mnemonic)
    assert lines
    assert all(WANTED[mnemonic] in line for line in lines), lines


def test_every_instruction_of_every_hip_kernel_is_in_the_candidate(compiled):
    names = {
        compiled.files[i.location[0]].rpartition("/")[2] if i.location else ""
        for function in compiled.functions.values()
        for i in function.instructions
        if i.mnemonic not in ("s_nop", "s_code_end")
    }
    assert names == {"candidate.hip"}


def test_kernels_of_one_text_keep_their_own_lines(compiled):
    stores = lines_of(compiled, "global_store_dword")
    assert {line.partition("// ")[2] for line in stores} == {"store", "mark"}


def locations(body: str) -> list[tuple[str, int] | None]:
    """Name of the file and line of each instruction but the last."""
    module = parse(kernel_text(body))
    return [
        (module.files[i.location[0]].rpartition("/")[2], i.location[1]) if i.location else None
        for i in module.functions["k"].instructions[:-1]
    ]


def test_a_triton_kernel_may_begin_with_code_of_the_library():
    body = (
        '\t.file\t1 "/t" "standard.py"\n\t.loc\t1 9 0 ; standard.py:9:0 @[ k.py:7:3 ]\n\ts_nop 0\n'
        '\t.file\t2 "/src" "k.py"\n\t.loc\t2 8 0 ; k.py:8:0\n\ts_nop 1\n'
        "\t.loc\t1 5 0 ; standard.py:5:0 @[ standard.py:6:0 @[ k.py:9:1 ] ]\n\ts_nop 2\n"
        "\t.loc\t2 0 0\n\ts_nop 3"
    )
    assert locations(body) == [("k.py", 7), ("k.py", 8), ("k.py", 9), ("k.py", 9)]


def test_without_debug_information_the_last_own_line_counts_then_the_next():
    body = (
        '\t.file\t0 "/c" "candidate.hip"\n\t.file\t1 "/usr" "header.h"\n'
        "\t.loc\t1 263 0\n\ts_nop 0\n\t.loc\t0 4 0\n\ts_nop 1\n\t.loc\t1 9 0\n\ts_nop 2"
    )
    assert locations(body) == [("candidate.hip", 4)] * 3


def test_code_without_lines_has_no_place():
    assert locations("\ts_nop 0") == [None]


@pytest.mark.parametrize(
    "debug",
    [
        ".byte 1 ; Abbrev [4] DW_TAG_inlined_subroutine",
        ".byte 1 ; Abbrev [4] DW_TAG_inlined_subroutine\n\t.byte 99 ; DW_AT_ranges\n"
        "\t.byte 0x7 ; DW_AT_call_file",
        ".byte 1 ; Abbrev [4] DW_TAG_inlined_subroutine\n.La:\n.Lb:\n"
        "\t.long .La-.Lb ; DW_AT_high_pc\n"
        "\t.byte 7 ; DW_AT_call_file\n\t.byte 3 ; DW_AT_call_line",
    ],
)
def test_forged_debug_information_changes_nothing(debug):
    body = (
        '\t.file\t0 "/c" "candidate.hip"\n\t.file\t1 "/usr" "header.h"\n'
        f"\t.loc\t0 4 0\n\ts_nop 0\n\t.loc\t1 9 0\n\ts_nop 1\n"
        f'\t.section\t.debug_info,"",@progbits\n\t{debug}\n\t.text'
    )
    assert locations(body) == [("candidate.hip", 4)] * 2

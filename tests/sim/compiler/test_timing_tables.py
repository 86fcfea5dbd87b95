"""The side table of the timing model against measured figures of an MI300X."""

import pytest

from kernel_gym.sim import constants as hw
from kernel_gym.sim.compiler.timing_tables import (
    matrix_cycles,
    timed_instruction,
    vector_cycles,
    vector_gap,
)
from tests.sim.support import kernel_text, parse

# Cycles of AMD's matrix instruction calculator for CDNA3: all instructions that it lists.
MATRIX_CYCLES = {
    "v_mfma_f32_16x16x8_xf32": 16,
    "v_mfma_f32_32x32x4_xf32": 32,
    "v_mfma_f32_32x32x1_2b_f32": 64,
    "v_mfma_f32_16x16x1_4b_f32": 32,
    "v_mfma_f32_4x4x1_16b_f32": 8,
    "v_mfma_f32_32x32x2_f32": 64,
    "v_mfma_f32_16x16x4_f32": 32,
    "v_mfma_f32_32x32x4_2b_f16": 64,
    "v_mfma_f32_16x16x4_4b_f16": 32,
    "v_mfma_f32_4x4x4_16b_f16": 8,
    "v_mfma_f32_32x32x8_f16": 32,
    "v_mfma_f32_16x16x16_f16": 16,
    "v_mfma_i32_32x32x4_2b_i8": 64,
    "v_mfma_i32_16x16x4_4b_i8": 32,
    "v_mfma_i32_4x4x4_16b_i8": 8,
    "v_mfma_i32_32x32x16_i8": 32,
    "v_mfma_i32_16x16x32_i8": 16,
    "v_mfma_f32_32x32x4_2b_bf16": 64,
    "v_mfma_f32_16x16x4_4b_bf16": 32,
    "v_mfma_f32_4x4x4_16b_bf16": 8,
    "v_mfma_f32_32x32x8_bf16": 32,
    "v_mfma_f32_16x16x16_bf16": 16,
    "v_smfmac_f32_16x16x32_f16": 16,
    "v_smfmac_f32_32x32x16_f16": 32,
    "v_smfmac_f32_16x16x32_bf16": 16,
    "v_smfmac_f32_32x32x16_bf16": 32,
    "v_smfmac_i32_16x16x64_i8": 16,
    "v_smfmac_i32_32x32x32_i8": 32,
    "v_mfma_f64_16x16x4_f64": 32,
    "v_mfma_f64_4x4x4_4b_f64": 16,
    "v_mfma_f32_16x16x32_bf8_bf8": 16,
    "v_mfma_f32_16x16x32_bf8_fp8": 16,
    "v_mfma_f32_16x16x32_fp8_bf8": 16,
    "v_mfma_f32_16x16x32_fp8_fp8": 16,
    "v_mfma_f32_32x32x16_bf8_bf8": 32,
    "v_mfma_f32_32x32x16_bf8_fp8": 32,
    "v_mfma_f32_32x32x16_fp8_bf8": 32,
    "v_mfma_f32_32x32x16_fp8_fp8": 32,
    "v_smfmac_f32_16x16x64_bf8_bf8": 16,
    "v_smfmac_f32_16x16x64_bf8_fp8": 16,
    "v_smfmac_f32_16x16x64_fp8_bf8": 16,
    "v_smfmac_f32_16x16x64_fp8_fp8": 16,
    "v_smfmac_f32_32x32x32_bf8_bf8": 32,
    "v_smfmac_f32_32x32x32_bf8_fp8": 32,
    "v_smfmac_f32_32x32x32_fp8_bf8": 32,
    "v_smfmac_f32_32x32x32_fp8_fp8": 32,
}
# The same for CDNA2.
MATRIX_CYCLES_CDNA2 = {
    "v_mfma_f32_32x32x1f32": 64,
    "v_mfma_f32_16x16x1f32": 32,
    "v_mfma_f32_4x4x1f32": 8,
    "v_mfma_f32_32x32x2f32": 64,
    "v_mfma_f32_16x16x4f32": 32,
    "v_mfma_f32_32x32x4f16": 64,
    "v_mfma_f32_16x16x4f16": 32,
    "v_mfma_f32_4x4x4f16": 8,
    "v_mfma_f32_32x32x8f16": 64,
    "v_mfma_f32_16x16x16f16": 32,
    "v_mfma_i32_32x32x4i8": 64,
    "v_mfma_i32_16x16x4i8": 32,
    "v_mfma_i32_4x4x4i8": 8,
    "v_mfma_i32_32x32x8i8": 64,
    "v_mfma_i32_16x16x16i8": 32,
    "v_mfma_f32_32x32x4bf16_1k": 64,
    "v_mfma_f32_16x16x4bf16_1k": 32,
    "v_mfma_f32_4x4x4bf16_1k": 8,
    "v_mfma_f32_32x32x8bf16_1k": 64,
    "v_mfma_f32_16x16x16bf16_1k": 32,
    "v_mfma_f32_32x32x2bf16": 64,
    "v_mfma_f32_16x16x2bf16": 32,
    "v_mfma_f32_4x4x2bf16": 8,
    "v_mfma_f32_32x32x4bf16": 64,
    "v_mfma_f32_16x16x8bf16": 32,
    "v_mfma_f64_16x16x4f64": 32,
    "v_mfma_f64_4x4x4f64": 16,
}


def decoded(text):
    return parse(kernel_text(f"\t{text}")).functions["k"].instructions[0]


@pytest.mark.parametrize(("mnemonic", "cycles"), MATRIX_CYCLES.items())
def test_matrix_cycles_are_those_of_the_calculator(mnemonic, cycles):
    assert matrix_cycles(mnemonic, hw.MI300X) == cycles


@pytest.mark.parametrize(("mnemonic", "cycles"), MATRIX_CYCLES_CDNA2.items())
def test_matrix_cycles_of_the_generation_before(mnemonic, cycles):
    assert matrix_cycles(mnemonic, hw.FIGURES["gfx90a"]) == cycles


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("v_mul_f32_e32 v0, v1, v2", 4),
        ("v_mul_f32 v0, v1, v2", 4),
        ("v_mul_f32_e32 v0, 1.0, v2", 4),
        ("v_mul_f32_e32 v0, 64, v2", 4),
        ("v_mul_f32_e32 v0, 65, v2", 8),
        ("v_mul_f32_e32 v0, 0x3fb8aa3b, v2", 8),
        ("v_mul_f32_e64 v0, v1, v2", 8),
        ("v_mul_f32_sdwa v0, v1, v2 dst_sel:DWORD src0_sel:WORD_1 src1_sel:DWORD", 8),
        ("v_readfirstlane_b32 s4, v1", 4),
        ("v_fmaak_f32 v0, v1, v2, 0x40490fdb", 8),
    ],
)
def test_the_length_of_an_instruction_comes_from_its_bytes(text, size):
    instruction = decoded(text)
    assert instruction.size == size
    gap = hw.LONG_ENCODING_GAP if size == 8 else hw.VECTOR_CYCLES
    assert vector_gap(instruction) == gap


def test_one_wave_pays_for_long_and_packed_instructions():
    packed = decoded("v_pk_add_f32 v[0:1], v[2:3], v[4:5]")
    assert vector_gap(decoded("v_fma_f32 v0, v1, v2, v0")) == 5
    assert vector_gap(decoded("v_fmac_f32_e32 v0, v1, v2")) == 4
    assert vector_gap(packed) == 8
    assert timed_instruction(packed, 8, hw.MI300X).cycles == 4


def test_only_transcendental_functions_run_below_the_full_rate():
    assert {vector_cycles(f"v_{name}_f64") for name in ("add", "mul", "fma", "max")} == {4}
    names = ("v_lshlrev_b64", "v_mul_lo_u32", "v_mul_hi_u32", "v_mad_u64_u32", "v_cvt_f64_i32")
    assert {vector_cycles(name) for name in names} == {4}
    assert vector_cycles("v_exp_f32") == hw.SLOW_VECTOR_CYCLES

"""Names of aiter's FlyDSL kernels, parsed into the arguments of its dispatcher."""

import pytest

from benchmarks.clock.flydsl_names import NoConfigurationError, family_of, parse_name

HGEMM = (
    "flydsl_gemm5_abf16_wbf16_bf16_t16x64x128_split_k9_block_m_warp1_block_n_warp2_block_k_warp4"
    "_async_copyTrue_b_to_ldsTrue_b_preshuffleFalse_c_to_ldsFalse_gfx950"
)


def test_a_16_bit_product_states_tiles_waves_and_split():
    parsed = parse_name(HGEMM)
    assert parsed.family == "flydsl_hgemm"
    assert parsed.values == {
        "stages": 5,
        "tile_m": 16,
        "tile_n": 64,
        "tile_k": 128,
        "split_k": 9,
        "block_m_warps": 1,
        "block_n_warps": 2,
        "block_k_warps": 4,
        "async_copy": True,
        "b_to_lds": True,
        "b_preshuffle": False,
        "c_to_lds": False,
    }


def test_an_8_bit_product_states_copies_waves_swizzle_and_stages_in_this_order():
    values = parse_name("flydsl_bpreshuflle_16x64x512_F8_F8_B16_1x3x4x2_default").values
    assert values == {
        "tile_m": 16,
        "tile_n": 64,
        "tile_k": 512,
        "use_async_copy": 1,
        "waves_per_eu": 3,
        "xcd_swizzle": 4,
        "lds_stage": 2,
        "enable_scheduler": True,
    }


def test_an_older_8_bit_name_has_the_defaults_of_the_dispatcher():
    values = parse_name("flydsl_bpreshuflle_16x64x512_F8_F8_B16_1x3_off").values
    assert (values["xcd_swizzle"], values["lds_stage"]) == (0, 2)
    assert not values["enable_scheduler"]


def test_eight_waves_have_a_family_of_their_own():
    parsed = parse_name("flydsl_bpreshuffle_8w_256x256x128_F8_F8_B16_2x8")
    assert parsed.family == "flydsl_bpreshuffle_8w"
    assert parsed.values == {"block_m": 256, "block_n": 256, "waves_per_eu": 2, "xcd_swizzle": 8}


def test_the_first_stage_of_experts_has_the_defaults_that_a_name_leaves_out():
    values = parse_name("flydsl_moe1_afp4_wfp4_bf16_t32x64x256_w3_bnt0_xcd4_kw2_fp4").values
    assert (values["tile_m"], values["tile_n"], values["tile_k"]) == (32, 64, 256)
    assert (values["waves_per_eu"], values["b_nt"], values["xcd_swizzle"]) == (3, 0, 4)
    assert (values["k_wave"], values["k_batch"], values["out_dtype"]) == (2, 1, "fp4")
    assert values["gate_mode"] == "separated"
    bare = parse_name("flydsl_moe1_afp4_wfp4_bf16_t32x64x256").values
    assert (bare["waves_per_eu"], bare["b_nt"], bare["out_dtype"]) == (1, 2, "bf16")


def test_8_bit_activations_of_experts_are_interleaved_and_unscaled():
    values = parse_name("flydsl_moe1_afp8_wfp4_bf16_t32x128x256_w4_gui_fp8").values
    assert (values["gate_mode"], values["a_scale_one"]) == ("interleave", True)


def test_the_second_stage_states_how_experts_are_added():
    values = parse_name("flydsl_moe2_afp8_wfp8_bf16_t64x128x256_reduce_bnt2_xcd4_persist_sbm128")
    assert values.values["mode"] == "reduce"
    assert values.values["persist"] is True
    atomic = parse_name("flydsl_moe2_abf16_wint4_bf16_t64x128x128_atomic").values
    assert (atomic["mode"], atomic["persist"], atomic["b_nt"]) == ("atomic", None, 0)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("flydsl_bpreshuflle_64x64x256_F8_F8_B16_2x0x1x1x4_default", "with 5 numbers at its end"),
        ("flydsl_bpreshuflle_64x64x256_I8_I8_B16_1x0x0x1_default", "8-bit integers"),
        ("flydsl_mxmoe_g1_a4w4_16x256x256_f16in_nt", "no kernels of flydsl_mxmoe_g1"),
        ("flydsl_moe2_layout_afp4_wfp4_bf16_t32x128x128_atomic_nt_sbm32", "flydsl_moe2_layout"),
        ("flydsl_moe2_afp4_wfp4_bf16_t64x128x256_atomic_persist_async_w4", "form of its family"),
        (HGEMM.replace("bf16", "f16"), "other than bfloat16"),
        (HGEMM[:-3], "form of its family"),
        ("auto", "no kernels of auto"),
    ],
)
def test_a_name_that_states_no_launch_is_refused_with_the_reason(name, reason):
    with pytest.raises(NoConfigurationError, match=reason):
        parse_name(name)


def test_the_families_of_similar_names_are_apart():
    names = ("flydsl_moe2_layout_afp4", "flydsl_moe2_afp4", "flydsl_bpreshuffle_wmma_t256x64x64")
    assert [family_of(name) for name in names] == [
        "flydsl_moe2_layout",
        "flydsl_moe2",
        "flydsl_bpreshuffle_wmma",
    ]

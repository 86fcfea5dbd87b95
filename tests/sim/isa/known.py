"""Operations whose expectation is not the manual's pseudo-code, and those that are refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tests.sim.isa import values

# Where another test holds the expectation (the pseudo-code needs tables, other lanes, memory or
# helpers that the manual does not define).
ELSEWHERE = {
    r"v_s?mfmac?_.*": "test_matrix.py",
    r"v_permlane(16|32)_swap_b32": "programs",
    r"v_(readlane|writelane|readfirstlane)_b32": "test_operations.py",
    r"v_accvgpr_(read|write|mov)(_b32)?": "test_operations.py",
    r"v_(fma|mad)_mix.*": "test_operations.py",
    r"v_pk_(mov_b32|fma_f32|mul_f32|add_f32|fmac_f16)": "test_operations.py",
    r"v_div_(scale|fmas|fixup)_.*": "test_operations.py",
    r"v_trig_preop_f64": "test_hip.py",
    r"v_nop|v_clrexcp": "no effect",
    r"s_(getpc|setpc|swappc|call)_b64": "test_hip.py",
    r"s_(get|set)reg.*": "test_rounding.py",
    r"v_swap_b32|v_bitop3_b(16|32)|v_cvt_off_f32_i4": "test_own_layouts.py",
    r"v_cvt_(pknorm_[iu]16|pkrtz_f16)_f32|v_cvt_(pknorm|norm)_[iu]16_f16": "test_own_layouts.py",
    r"v_mqsad_u32_u8|v_cvt_pkaccum_u8_f32|v_cmpx?_class_.*": "test_own_layouts.py",
    r"v_(exp|log)_legacy_f32|v_cvt_sr_(bf16|f16)_f32": "test_own_layouts.py",
    r"s_set_gpr_idx_(on|idx)|s_movrel[sd]_b(32|64)": "test_own_layouts.py",
    r"v_cvt_scalef32_.*|v_cvt_sr_(fp8|bf8)_f32": "test_small_floats.py",
    r"v_cvt_(pk_)?(f32_[bf][pf]8|[bf][pf]8_f32)": "test_small_floats.py",
}
# What compilers do not emit and the simulator refuses.
REFUSED = {
    r"s_cbranch_(g_fork|i_fork|join)|s_setvskip": "control flow of older generations",
    r"s_rfe(_restore)?_b64": "returns from trap handlers",
    r"v_screen_partition_4se_b32": "graphics",
    r"v_clrexcp": "exceptions are not modelled",
}
# Approximations: relative error that the hardware may have (AMD gives 1 unit in the last place).
APPROXIMATE = {
    r"v_(exp|log|rcp|rsq|sqrt|rcp_iflag)_f32": 2.5e-7,
    r"v_(sin|cos)_f32": 2e-6,
    r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_f16": 1e-3,
    r"v_(rcp|rsq|sqrt)_f64": 1e-15,
}


def _rounded(x: np.floating) -> np.floating:
    return type(x)(np.rint(x))


def _fract(x: np.floating) -> np.floating:
    """The difference from the floor, which stays below 1 as LLVM relies on."""
    below_one = np.nextafter(type(x)(1), type(x)(0))
    return np.minimum(type(x)(x - np.floor(x)), below_one)


def _turns(function: Callable[[float], float]) -> Callable[[np.floating], np.floating]:
    def run(x: np.floating) -> np.floating:
        if not np.isfinite(x):
            return type(x)(np.nan)
        part = Fraction(float(x)) % 1  # the manual multiplies by 2 pi in the input's precision
        return type(x)(function(2 * math.pi * float(part)))

    return run


# Own expectations, where the pseudo-code is loose: mnemonic to a function of the sources as floats.
FUNCTIONS = {
    r"v_rndne_f\d\d": _rounded,  # the manual's sum loses the sign of zero and large values
    r"v_fract_f\d\d": _fract,
    r"v_sin_f\d\d": _turns(math.sin),
    r"v_cos_f\d\d": _turns(math.cos),
    r"v_floor_f\d\d": np.floor,  # the manual's sums lose the sign of zero
    r"v_ceil_f\d\d": np.ceil,
}


def own_expectation(name: str) -> Callable[..., int | np.floating] | None:
    """A function from the bits of the sources to the result, where the manual's code is loose."""
    size = int(re.findall(r"\d+", name)[-1]) if re.search(r"\d", name) else 0
    if name == "v_cvt_f32_bf16":
        return lambda x: (x & 0xFFFF) << 16
    if name.startswith("v_ldexp_"):  # the manual's power of two overflows
        bits = 16 if size == 16 else 32
        return lambda x, n: values.ldexp(values.from_bits(x, size), values.wrap(n, bits, True))
    function = find(FUNCTIONS, name)
    return (lambda x: function(values.from_bits(x, size))) if function else None


def find(table: dict[str, object], name: str) -> object | None:
    """The entry whose pattern matches all of a mnemonic."""
    for pattern, value in table.items():
        if re.fullmatch(pattern, name):
            return value
    return None

"""Types of the operands of vector operations.

Most names spell their types: ``v_add_f32`` works on f32, ``v_cvt_f32_i32`` takes i32 and gives
f32. The tables hold the exceptions. A type is one of ``b32 f32 i32 u32``, the 16-bit ones ``f16
i16 u16 b16``, packed pairs ``pk_f16 pk_b16``, pairs of f32 registers ``pk_f32``, the 64-bit ones
``f64 u64 i64 b64`` or ``mask`` (a scalar register pair with a bit a lane).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

WIDE = frozenset({"f64", "u64", "i64", "b64"})
HALF = frozenset({"f16", "i16", "u16", "b16"})


@dataclass(frozen=True)
class Signature:
    """Destination and source types of a vector operation.

    Attributes:
        destination: Type of the result.
        sources: Types of the sources. The last one also applies to further sources.
        carry_out: Whether a scalar pair is written as second destination.
        accumulates: Whether the destination is also the last source.
    """

    destination: str
    sources: tuple[str, ...]
    carry_out: bool = False
    accumulates: bool = False

    def source(self, i: int) -> str:
        """The type of source ``i``."""
        return self.sources[min(i, len(self.sources) - 1)]


# Operations that run under another name.
ALIASES = {
    "v_accvgpr_read_b32": "v_mov_b32",
    "v_accvgpr_write_b32": "v_mov_b32",
    "v_accvgpr_mov_b32": "v_mov_b32",
    "v_fmac_f32": "v_fma_f32",
    "v_mac_f32": "v_mad_f32",
    "v_fmac_f16": "v_fma_f16",
    "v_fmac_f64": "v_fma_f64",
    "v_fmamk_f32": "v_fma_f32",
    "v_fmaak_f32": "v_fma_f32",
    "v_madmk_f32": "v_mad_f32",
    "v_madak_f32": "v_mad_f32",
    "v_fma_mix_f32": "v_fma_f32",
    "v_mad_mix_f32": "v_fma_f32",
    "v_dot2c_f32_f16": "v_dot2_f32_f16",
    "v_dot2c_i32_i16": "v_dot2_i32_i16",
    "v_dot4c_i32_i8": "v_dot4_i32_i8",
    "v_dot8c_i32_i4": "v_dot8_i32_i4",
    "v_pk_fmac_f16": "v_pk_fma_f16",
    "v_mul_lo_i32": "v_mul_lo_u32",
    "v_pk_lshlrev_b32": "v_pk_lshlrev_b16",
    "v_mac_f16": "v_mad_f16",
    "v_madmk_f16": "v_mad_f16",
    "v_madak_f16": "v_mad_f16",
    "v_mad_legacy_f16": "v_mad_f16",
    "v_mad_legacy_u16": "v_mad_u16",
    "v_mad_legacy_i16": "v_mad_i16",
    "v_fma_legacy_f16": "v_fma_f16",
    "v_div_fixup_legacy_f16": "v_div_fixup_f16",
    "v_exp_legacy_f32": "v_exp_f32",
    "v_log_legacy_f32": "v_log_f32",
}

_CARRY = Signature("u32", ("u32", "u32", "mask"), carry_out=True)
_EXCEPTIONS = {
    "v_cndmask_b32": Signature("b32", ("f32", "f32", "mask")),
    "v_add_co_u32": Signature("u32", ("u32", "u32"), carry_out=True),
    "v_sub_co_u32": Signature("u32", ("u32", "u32"), carry_out=True),
    "v_subrev_co_u32": Signature("u32", ("u32", "u32"), carry_out=True),
    "v_addc_co_u32": _CARRY,
    "v_subb_co_u32": _CARRY,
    "v_subbrev_co_u32": _CARRY,
    "v_mad_u64_u32": Signature("u64", ("u32", "u32", "u64"), carry_out=True),
    "v_mad_i64_i32": Signature("i64", ("i32", "i32", "i64"), carry_out=True),
    "v_div_scale_f32": Signature("f32", ("f32",), carry_out=True),
    "v_div_scale_f64": Signature("f64", ("f64",), carry_out=True),
    "v_lshl_add_u64": Signature("u64", ("u64", "u32", "u64")),
    "v_lshlrev_b64": Signature("b64", ("u32", "b64")),
    "v_lshrrev_b64": Signature("b64", ("u32", "b64")),
    "v_ashrrev_i64": Signature("i64", ("u32", "i64")),
    "v_ldexp_f64": Signature("f64", ("f64", "i32")),
    "v_ldexp_f16": Signature("f16", ("f16", "i16")),
    "v_ldexp_f32": Signature("f32", ("f32", "i32")),
    "v_trig_preop_f64": Signature("f64", ("f64", "u32")),
    "v_frexp_exp_i32_f64": Signature("i32", ("f64",)),
    "v_frexp_exp_i32_f32": Signature("i32", ("f32",)),
    "v_frexp_exp_i16_f16": Signature("i16", ("f16",)),
    "v_cmp_class_f64": Signature("mask", ("f64", "u32")),
    "v_cmp_class_f32": Signature("mask", ("f32", "u32")),
    "v_cmp_class_f16": Signature("mask", ("f16", "u32")),
    "v_pk_mov_b32": Signature("pk_f32", ("pk_f32",)),
    "v_mad_i32_i16": Signature("i32", ("i16", "i16", "i32")),
    "v_mad_u32_u16": Signature("u32", ("u16", "u16", "u32")),
    "v_cvt_pk_u8_f32": Signature("u32", ("f32", "u32", "u32")),
    "v_cvt_pk_f32_fp8": Signature("f64", ("u32",)),
    "v_cvt_pk_f32_bf8": Signature("f64", ("u32",)),
    "v_cvt_sr_fp8_f32": Signature("u32", ("f32", "u32")),
    "v_cvt_sr_bf8_f32": Signature("u32", ("f32", "u32")),
    "v_fma_mix_f32": Signature("f32", ("f32",)),
    "v_dot2_f32_f16": Signature("f32", ("pk_f16", "pk_f16", "f32")),
    "v_dot2c_f32_bf16": Signature("f32", ("pk_b16", "pk_b16", "f32"), accumulates=True),
    "v_dot2_f32_bf16": Signature("f32", ("pk_b16", "pk_b16", "f32")),
    "v_pack_b32_f16": Signature("b32", ("f16",)),
    "v_cvt_pk_bf16_f32": Signature("b32", ("f32",)),
    "v_cvt_sr_bf16_f32": Signature("b32", ("f32", "b32")),
    "v_cvt_sr_f16_f32": Signature("b32", ("f32", "b32")),
    "v_cvt_f32_bf16": Signature("f32", ("b16",)),
    "v_ashr_pk_i8_i32": Signature("b32", ("b32",)),
    "v_ashr_pk_u8_i32": Signature("b32", ("b32",)),
    "v_sat_pk_u8_i16": Signature("b32", ("b32",)),
    "v_cvt_norm_i16_f16": Signature("i16", ("f16",)),
    "v_cvt_norm_u16_f16": Signature("u16", ("f16",)),
    "v_cvt_pkaccum_u8_f32": Signature("u32", ("f32", "u32"), accumulates=True),
    "v_qsad_pk_u16_u8": Signature("b64", ("b64", "b32", "b64")),
    "v_mqsad_pk_u16_u8": Signature("b64", ("b64", "b32", "b64")),
    "v_mqsad_u32_u8": Signature("b64", ("b64", "b32", "b32")),
}
_TYPE = r"(?:[fbiu](?:16|32|64))"
_CONVERSION = re.compile(rf"^v_cvt_(?:pk_|pkrtz_|pknorm_|rpi_|flr_)?({_TYPE})_({_TYPE})$")
_SUFFIX = re.compile(rf"_({_TYPE})$")
_COMPARE = re.compile(rf"^v_cmpx?_\w+_({_TYPE})$")
_ACCUMULATES = re.compile(r"^v_(fmac|mac|dot\d+c|pk_fmac)_")


@lru_cache(maxsize=4096)
def signature(mnemonic: str) -> Signature:
    """The operand types of a vector operation, by its own name and not by an alias."""
    name = mnemonic.replace("v_cmpx_", "v_cmp_")
    accumulates = bool(_ACCUMULATES.match(name))
    canonical = ALIASES.get(name, name) if accumulates else name
    if canonical in _EXCEPTIONS:
        exception = _EXCEPTIONS[canonical]
        accumulates = accumulates or exception.accumulates
        return replace(exception, accumulates=accumulates)
    compare = _COMPARE.match(name)
    if compare:
        return Signature("mask", (compare.group(1),))
    conversion = _CONVERSION.match(name)
    if conversion:
        packed = name.startswith("v_cvt_pk")
        return Signature("b32" if packed else conversion.group(1), (conversion.group(2),))
    suffix = _SUFFIX.search(name)
    kind = suffix.group(1) if suffix else "b32"
    if name.startswith("v_pk_"):
        kind = {"f16": "pk_f16", "f32": "pk_f32"}.get(kind, "pk_b16")
    return Signature(kind, (kind,), accumulates=accumulates)

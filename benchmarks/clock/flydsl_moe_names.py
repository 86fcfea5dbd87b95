"""The configuration in the name of one of aiter's FlyDSL kernels for mixtures of experts.

`moe1` multiplies tokens with the gate and up weights of their experts, `moe2` the result with the
down weights, and adds the experts of a token: with atomic operations, or in a second kernel.
"""

from __future__ import annotations

import re
from typing import Any

_TILES = r"_bf16_t(?P<tile_m>\d+)x(?P<tile_n>\d+)x(?P<tile_k>\d+)"
_TYPES = r"_a(?P<a_dtype>fp4|fp8|bf16)_w(?P<b_dtype>fp4|fp8|int4)"
STAGE_1 = re.compile(
    "flydsl_moe1"
    + _TYPES
    + _TILES
    + r"(?:_w(?P<waves_per_eu>\d+))?(?:_kb(?P<k_batch>\d+))?(?:_bnt(?P<b_nt>\d+))?"
    r"(?P<interleaved>_gui)?(?:_xcd(?P<xcd_swizzle>\d+))?(?:_kw(?P<k_wave>\d+))?"
    r"(?:_(?P<quantised>fp4|fp8))?(?:_sbm(?P<sort_block_m>\d+))?"
)
STAGE_2 = re.compile(
    "flydsl_moe2"
    + _TYPES
    + _TILES
    + r"_(?P<mode>atomic|reduce)(?:_bnt(?P<b_nt>\d+))?(?:_xcd(?P<xcd_swizzle>\d+))?"
    r"(?P<persist>_persist)?(?:_sbm(?P<sort_block_m>\d+))?"
)
_DEFAULTS_1 = {"waves_per_eu": 1, "k_batch": 1, "b_nt": 2, "xcd_swizzle": 0, "k_wave": 1}
_DEFAULTS_2 = {"b_nt": 0, "xcd_swizzle": 0, "sort_block_m": 0}
_TILE_NAMES = ("tile_m", "tile_n", "tile_k")


def stage_1(found: re.Match[str]) -> dict[str, Any]:
    """The arguments of aiter's `flydsl_moe_stage1`."""
    quantised = found["quantised"]
    return {
        **_numbers(found, _DEFAULTS_1),
        "a_dtype": found["a_dtype"],
        "b_dtype": found["b_dtype"],
        "out_dtype": quantised or "bf16",
        "gate_mode": "interleave" if found["interleaved"] or quantised == "fp8" else "separated",
        "a_scale_one": found["a_dtype"] == "fp8",
        "use_async_copy": True,
    }


def stage_2(found: re.Match[str]) -> dict[str, Any]:
    """The arguments of aiter's `flydsl_moe_stage2`."""
    return {
        **_numbers(found, _DEFAULTS_2),
        "a_dtype": found["a_dtype"],
        "b_dtype": found["b_dtype"],
        "out_dtype": "bf16",
        "mode": found["mode"],
        "persist": True if found["persist"] else None,
    }


def _numbers(found: re.Match[str], defaults: dict[str, int]) -> dict[str, int]:
    tiles = {name: int(found[name]) for name in _TILE_NAMES}
    return tiles | {name: int(found[name] or value) for name, value in defaults.items()}

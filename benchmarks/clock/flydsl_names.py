"""The configuration that the name of one of aiter's FlyDSL kernels states.

aiter's tuning tables name the fastest kernel of each shape, and the name says all that its
dispatcher passes on. So a name with the shape of its row is a launch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from benchmarks.clock import flydsl_moe_names


class NoConfigurationError(ValueError):
    """A name says no configuration that can be launched. The text is the reason."""


@dataclass(frozen=True)
class Configuration:
    """The arguments that a name states.

    Attributes:
        family: The operator with its pipeline, such as `flydsl_hgemm`.
        values: The arguments of the function of aiter that launches it.
    """

    family: str
    values: dict[str, Any] = field(default_factory=dict)


_HGEMM = re.compile(
    r"flydsl_gemm(?P<stages>\d+)_a(?P<a>\w+?)_w(?P<w>\w+?)_(?P<out>\w+?)"
    r"_t(?P<tile_m>\d+)x(?P<tile_n>\d+)x(?P<tile_k>\d+)_split_k(?P<split_k>\d+)"
    r"_block_m_warp(?P<block_m_warps>\d+)_block_n_warp(?P<block_n_warps>\d+)"
    r"_block_k_warp(?P<block_k_warps>\d+)"
    r"_async_copy(?P<async_copy>True|False)_b_to_lds(?P<b_to_lds>True|False)"
    r"_b_preshuffle(?P<b_preshuffle>True|False)_c_to_lds(?P<c_to_lds>True|False)_gfx\w+"
)
_PRESHUFFLE = re.compile(
    r"flydsl_bpreshuflle_(?P<tile_m>\d+)x(?P<tile_n>\d+)x(?P<tile_k>\d+)_(?P<a>F8|I8)_(?P<w>F8|I8)"
    r"_(?P<out>B16|F16)_(?P<numbers>\d+(?:x\d+)*)(?:_(?P<scheduler>[A-Za-z]\w*))?"
)
_EIGHT_WAVES = re.compile(
    r"flydsl_bpreshuffle_8w_(?P<block_m>\d+)x(?P<block_n>\d+)x(?P<block_k>\d+)_F8_F8_B16"
    r"_(?P<waves_per_eu>\d+)x(?P<xcd_swizzle>\d+)"
)
_PRESHUFFLE_NUMBERS = ("use_async_copy", "waves_per_eu", "xcd_swizzle", "lds_stage")
_FAMILIES = (
    ("flydsl_gemm", "flydsl_hgemm"),
    ("flydsl_bpreshuflle", "flydsl_bpreshuffle"),
    ("flydsl_bpreshuffle_8w", "flydsl_bpreshuffle_8w"),
    ("flydsl_bpreshuffle_wmma", "flydsl_bpreshuffle_wmma"),
    ("flydsl_mxfp8", "flydsl_mxfp8"),
    ("flydsl_mxmoe_g1", "flydsl_mxmoe_g1"),
    ("flydsl_mxmoe_g2", "flydsl_mxmoe_g2"),
    ("flydsl_moe2_layout", "flydsl_moe2_layout"),
    ("flydsl_moe1", "flydsl_moe1"),
    ("flydsl_moe2", "flydsl_moe2"),
)


def family_of(name: str) -> str:
    """The family of a kernel's name; the name itself if it is of none."""
    return next((family for begin, family in _FAMILIES if name.startswith(begin)), name)


def parse_name(name: str) -> Configuration:
    """Parses the name of a kernel of a tuning table.

    Raises:
        NoConfigurationError: The name is of a family that the harness does not launch, or aiter's
            dispatcher does not read it.
    """
    family = family_of(name)
    parse = _PARSERS.get(family)
    if parse is None:
        raise NoConfigurationError(f"the harness launches no kernels of {family}")
    return Configuration(family, parse(name))


def _hgemm(name: str) -> dict[str, Any]:
    stated = _matched(_HGEMM, name)
    if {stated["a"], stated["w"], stated["out"]} != {"bf16"}:
        raise NoConfigurationError("a product of 16-bit matrices other than bfloat16")
    numbers = ("stages", "tile_m", "tile_n", "tile_k", "split_k")
    waves = ("block_m_warps", "block_n_warps", "block_k_warps")
    flags = ("async_copy", "b_to_lds", "b_preshuffle", "c_to_lds")
    return {name: int(stated[name]) for name in numbers + waves} | {
        name: stated[name] == "True" for name in flags
    }


def _preshuffle(name: str) -> dict[str, Any]:
    stated = _matched(_PRESHUFFLE, name)
    numbers = [int(number) for number in stated["numbers"].split("x")]
    if not 2 <= len(numbers) <= len(_PRESHUFFLE_NUMBERS):
        raise NoConfigurationError(
            f"aiter's dispatcher does not read a name with {len(numbers)} numbers at its end"
        )
    if (stated["a"], stated["w"], stated["out"]) != ("F8", "F8", "B16"):
        raise NoConfigurationError("a product of 8-bit integers, or with another result")
    tiles = {name: int(stated[name]) for name in ("tile_m", "tile_n", "tile_k")}
    scheduled = (stated["scheduler"] or "default").lower() != "off"
    defaults = {"xcd_swizzle": 0, "lds_stage": 2}
    numbered = dict(zip(_PRESHUFFLE_NUMBERS, numbers, strict=False))
    return tiles | defaults | numbered | {"enable_scheduler": scheduled}


def _eight_waves(name: str) -> dict[str, Any]:
    stated = _matched(_EIGHT_WAVES, name)
    names = ("block_m", "block_n", "waves_per_eu", "xcd_swizzle")
    return {name: int(stated[name]) for name in names}


def _matched(pattern: re.Pattern[str], name: str) -> re.Match[str]:
    stated = pattern.fullmatch(name)
    if stated is None:
        raise NoConfigurationError("its name does not have the form of its family's names")
    return stated


def _moe1(name: str) -> dict[str, Any]:
    return flydsl_moe_names.stage_1(_matched(flydsl_moe_names.STAGE_1, name))


def _moe2(name: str) -> dict[str, Any]:
    return flydsl_moe_names.stage_2(_matched(flydsl_moe_names.STAGE_2, name))


_PARSERS = {
    "flydsl_moe1": _moe1,
    "flydsl_moe2": _moe2,
    "flydsl_hgemm": _hgemm,
    "flydsl_bpreshuffle": _preshuffle,
    "flydsl_bpreshuffle_8w": _eight_waves,
}

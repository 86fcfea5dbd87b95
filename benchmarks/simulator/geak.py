"""Launches behind the MI300X times of AMD-AGI/GEAK-eval, which publishes times and kernels.

Each function turns the shape, types and configuration of one record into launches. What a record
does not say (the grid, the order of arguments, fixed block sizes) was read in the repository's
programs. Kernels with a tuner have one launch for each number of waves that it tries.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.simulator.launches import Argument, Tensor, TritonLaunch

FLOOR_US = 6.1
"""The measured time of an empty launch: most of the smallest kernels read 6.0 to 6.2 us."""
OVERHEAD_US = 4.3
"""The time that a measurement adds to a kernel: 11.7 us less the 7.4 us that 16,384 workgroups of
block_copy take at 0.45 ns each. Shorter kernels hide behind the floor."""
TUNED_WARPS = (4, 8, 16)
_LONG = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
Record = dict[str, Any]


@dataclass(frozen=True)
class Known:
    """The meaning of a record: the family and group of its kernel and the launches."""

    family: str
    group: str
    launches: tuple[TritonLaunch, ...]


def interpret(raw: Record) -> Known | None:
    """The meaning of a record; None if its kernel is not one of the known ones."""
    name = Path(raw.get("kernel") or "").stem
    recipe = _RECIPES.get(name)
    if recipe is None:
        return None
    family = name.removeprefix("test_")
    problem = "softmax" if name in ("softmax", "naive_softmax") else family
    key = json.dumps([raw["shape"], raw["dtype"]], sort_keys=True)
    session = raw.get("session", "")
    return Known(family, f"{problem}|{session}|{key}", tuple(recipe(raw)))


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _power(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


def _kind(raw: Record) -> str:
    name = str(next(iter(raw["dtype"].values())))
    return _LONG.get(name, name)


def _item(kind: str) -> int:
    return Tensor((), kind).kind.itemsize


def _add(raw: Record) -> list[TritonLaunch]:
    n, block = raw["shape"]["SIZE"], raw["config"]["BLOCK_SIZE_RUNTIME"]
    x = Tensor((n,), _kind(raw))
    return [TritonLaunch("add_kernel", (_ceil(n, block),), (x, x, x, n), {"BLOCK_SIZE": block})]


def _block_copy(raw: Record) -> list[TritonLaunch]:
    n, config = raw["shape"]["N"], raw["config"]
    x = Tensor((n,), raw["dtype"]["src_dtype_str"])
    constants = {"BLOCK_SIZE": config["BLOCK_SIZE"], "padding_option": config["padding_option"]}
    grid = (_ceil(n, config["BLOCK_SIZE"]),)
    return [TritonLaunch("block_copy_kernel", grid, (x, x, n), constants)]


def _one_tile(function: str, kind: str, out: str, sizes: tuple[int, int, int]) -> TritonLaunch:
    m, n, k = sizes
    tensors = (Tensor((m, k), kind), Tensor((k, n), kind), Tensor((m, n), out))
    strides = (k, 1, n, 1, n, 1)
    return TritonLaunch(
        function, (1,), (*tensors, m, n, k, *strides), {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
    )


def _sizes(raw: Record) -> tuple[int, int, int]:
    return raw["shape"]["M"], raw["shape"]["N"], raw["shape"]["K"]


def _with(launch: TritonLaunch, options: dict[str, Any], **constants: Any) -> TritonLaunch:
    both = {**launch.constants, **constants}
    return TritonLaunch(launch.function, launch.grid, launch.arguments, both, options)


def _block_pointer_matmul(raw: Record) -> list[TritonLaunch]:
    kind = _kind(raw)
    launch = _one_tile("matmul_no_scf_with_advance_kernel", kind, kind, _sizes(raw))
    return [_with(launch, {"num_warps": raw["config"]["num_warps"]})]


def _gemm_no_scf(raw: Record) -> list[TritonLaunch]:
    out = raw["shape"]["OUTPUT_TYPE"]
    launch = _one_tile("matmul_no_scf_kernel", "float16", out, _sizes(raw))
    constants = {
        "FLOAT16_OUTPUT": out == "float16",
        "USE_TMA_EPILOGUE": raw["shape"]["USE_TMA_EPILOGUE"],
    }
    return [_with(launch, {"num_warps": raw["config"]["NUM_WARPS"]}, **constants)]


def _tma_store_gemm(raw: Record) -> list[TritonLaunch]:
    half = raw["shape"]["OUTPUT_F16"]
    out = "float16" if half else "float32"
    launch = _one_tile("matmul_tma_load_store", "float16", out, _sizes(raw))
    return [_with(launch, {"num_warps": raw["config"]["NUM_WARPS"]}, OUTPUT_F16=half)]


def _cast_matmul(raw: Record) -> list[TritonLaunch]:
    (m, n, k), config, kinds = _sizes(raw), raw["config"], raw["dtype"]
    a, b = Tensor((m, k), kinds["a_dtype_str"]), Tensor((k, n), kinds["b_dtype_str"])
    c = Tensor((m, n), kinds["c_dtype_str"])
    constants = {**config, "dot_out_dtype": "tl.float32"}
    grid = (_ceil(m, config["BLOCK_M"]) * _ceil(n, config["BLOCK_N"]),)
    arguments: tuple[Argument, ...] = (a, b, c, m, n, k, k, 1, n, 1, n, 1)
    return [TritonLaunch("matmul_kernel", grid, arguments, constants)]


def _flash(raw: Record) -> list[TritonLaunch]:
    z, h, n, d = (raw["shape"][name] for name in ("Z", "H", "N_CTX", "D_HEAD"))
    x, row = Tensor((z, h, n, d), "float16"), Tensor((z * h, n), "float32")
    strides = (h * n * d, n * d, d, 1)
    arguments: tuple[Argument, ...] = (
        *(x, x, x, float(raw["shape"]["sm_scale"]), row, row, x),
        *(4 * strides),
        *(z, h, n, z * h * n),
    )
    constants = {"BLOCK_M": 128, "BLOCK_DMODEL": d, "BLOCK_N": 128}
    options = {"num_warps": 4, "num_stages": 2}
    return [TritonLaunch("flash_fwd_kernel", (_ceil(n, 128), z * h), arguments, constants, options)]


def _kernel_dot(raw: Record) -> list[TritonLaunch]:
    options = {"num_warps": raw["config"]["num_warps"]}
    return [TritonLaunch("kernel_dot", (1,), (Tensor((16, 16), _kind(raw)),), {}, options)]


def _layernorm(raw: Record) -> list[TritonLaunch]:
    m, n, kind = raw["shape"]["M"], raw["shape"]["N"], _kind(raw)
    x, w, row = Tensor((m, n), kind), Tensor((n,), kind), Tensor((m,), "float32")
    block = min(65536 // _item(kind), _power(n))
    arguments = (x, x, w, w, row, row, n, n, m, n, float(raw["shape"]["eps"]))
    return [
        TritonLaunch(
            "layernorm_kernel",
            (m,),
            arguments,
            {"BLOCK_SIZE": block},
            {"num_warps": warps, "num_stages": 1},
        )
        for warps in TUNED_WARPS
    ]


def _load_reduce(raw: Record) -> list[TritonLaunch]:
    m, n, kind = raw["shape"]["M_dim"], raw["shape"]["N_dim"], _kind(raw)
    arguments = (Tensor((m, n), kind), Tensor((m,), kind), n, 1, 1)
    return [TritonLaunch("load_reduce_kernel", (1,), arguments, {"BLOCK_M": m, "BLOCK_N": n})]


def _multreduce(raw: Record) -> list[TritonLaunch]:
    (m, n, k), kind = _sizes(raw), _kind(raw)
    tensors = (Tensor((m, k), kind), Tensor((k, n), kind), Tensor((m, n), kind), Tensor((m,), kind))
    arguments: tuple[Argument, ...] = (*tensors, m, n, k, k, 1, n, 1, n, 1, 1)
    launches = []
    for block_n, block_k, pack, warps in itertools.product((16, 32), (128, 256, 512), (2,), (1, 2)):
        constants = {
            "BLOCK_SIZE_M": 16,
            "BLOCK_SIZE_N": block_n,
            "BLOCK_SIZE_K": block_k,
            "USE_BIAS": raw["shape"]["use_bias"],
            "EVEN_K": k % block_k == 0,
        }
        grid = (_ceil(m, 16) * _ceil(n, block_n),)
        options = {"num_warps": warps, "num_stages": 2, "matrix_instr_nonkdim": 16, "kpack": pack}
        launches.append(
            TritonLaunch("triton_dot_matmul_kernel", grid, arguments, constants, options)
        )
    return launches


def _naive_softmax(raw: Record) -> list[TritonLaunch]:
    m, n, kind = raw["shape"]["M"], raw["shape"]["N"], _kind(raw)
    x = Tensor((m, n), kind)
    return [TritonLaunch("softmax_kernel_naive", (m,), (x, x, n, n), {"BLOCK_SIZE": 256})]


def _softmax(raw: Record) -> list[TritonLaunch]:
    m, n, kind = raw["shape"]["M"], raw["shape"]["N"], _kind(raw)
    x = Tensor((m, n), kind)
    constants = {"BLOCK_SIZE": min(65536 // _item(kind), _power(n))}
    return [
        TritonLaunch(
            "softmax_kernel_online",
            (m,),
            (x, x, n, n, m, n),
            constants,
            {"num_warps": warps, "num_stages": 1},
        )
        for warps in TUNED_WARPS
    ]


def _random_int(raw: Record) -> list[TritonLaunch]:
    n, seed = raw["shape"]["N_elements"], raw["shape"]["seed"]
    x, fixed = Tensor((n,), _kind(raw)), raw["config"]["const_seed"]
    name = "randint_kernel_const_seed" if fixed else "randint_kernel_runtime_seed"
    arguments: tuple[Argument, ...] = (x, n) if fixed else (x, n, seed)
    constants = {"seed_val": seed} if fixed else {}
    options = {"num_warps": raw["config"]["num_warps"]}
    return [TritonLaunch(name, (_ceil(n, 1024),), arguments, constants, options)]


def _reverse_range(raw: Record) -> list[TritonLaunch]:
    x = Tensor((520,), _kind(raw))
    options = {"num_warps": raw["config"]["num_warps"]}
    return [TritonLaunch("reverse_range", (1,), (x, x), {}, options)]


def _rmsnorm(raw: Record) -> list[TritonLaunch]:
    m, n, kind, config = raw["shape"]["M"], raw["shape"]["N"], _kind(raw), raw["config"]
    x, g, row = Tensor((m, n), kind), Tensor((n,), kind), Tensor((m,), "float32")
    constants = {
        "ZERO_CENTERED_GAMMA": raw["shape"]["ZERO_CENTERED_GAMMA"],
        "BLOCK_SIZE": config["blk_size_fwd"],
        "USE_BLOCKED": config["USE_BLOCKED_fwd"],
        "NUM_PRGMS": config["NUM_PRGMS_fwd"],
    }
    arguments = (x, x, g, row, n, n, m, n, float(raw["shape"]["eps"]))
    grid = (config["NUM_PRGMS_fwd"],)
    return [
        TritonLaunch("rms_kernel", grid, arguments, constants, {"num_warps": warps})
        for warps in TUNED_WARPS
    ]


def _sort(raw: Record) -> list[TritonLaunch]:
    n, m = raw["shape"]["N_tile_rows"], raw["shape"]["M_tile_cols"]
    x = Tensor((n, m), _kind(raw))
    constants = {"N": n, "M": m, "descending": raw["shape"]["descending"]}
    return [
        TritonLaunch(
            "sort_kernel", (1,), (x, x), constants, {"num_warps": raw["config"]["num_warps"]}
        )
    ]


def _swizzle2d(raw: Record) -> list[TritonLaunch]:
    i, j = raw["shape"]["size_i_kernel"], raw["shape"]["size_j_kernel"]
    group, warps = raw["config"]["size_g_kernel"], raw["config"]["num_warps"]
    x = Tensor((i, j), _kind(raw))
    return [TritonLaunch("swizzle2d_kernel", (1,), (x, i, j, group), {}, {"num_warps": warps})]


_RECIPES: dict[str, Callable[[Record], list[TritonLaunch]]] = {
    "test_add_kernel": _add,
    "test_block_copy": _block_copy,
    "test_block_pointer_matmul": _block_pointer_matmul,
    "test_cast_matmul": _cast_matmul,
    "test_flashattention_fwd": _flash,
    "test_gemm_no_scf": _gemm_no_scf,
    "test_kernel_dot": _kernel_dot,
    "layernorm": _layernorm,
    "test_load_reduce": _load_reduce,
    "multreduce_matmul_dot_kernel": _multreduce,
    "naive_softmax": _naive_softmax,
    "test_random_int": _random_int,
    "test_reverse_range": _reverse_range,
    "rmsnorm_fwd": _rmsnorm,
    "softmax": _softmax,
    "test_tma_store_gemm": _tma_store_gemm,
    "test_triton_sort": _sort,
    "test_triton_swizzle2d": _swizzle2d,
}

"""A row of a tuning table, from its name to a modelled time, with a small stand-in for aiter."""

import json

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.clock.predictions import read_predictions

KERNELS = """
import flydsl.compiler as flyc
import flydsl.expr as fx
from aiter import logger
from aiter.jit.utils.chip_info import get_gfx
from aiter.utility import dtypes
from flydsl.utils.smem_allocator import SMEM_CAPACITY_MAP


@flyc.kernel
def copy_kernel(x: fx.Tensor, out: fx.Tensor):
    row, col = fx.block_idx.x, fx.thread_idx.x
    out[row, col] = x[row, col]


@flyc.jit
def launch(x: fx.Tensor, out: fx.Tensor):
    rows, cols = x.shape.unpack()
    copy_kernel(x, out).launch(grid=(rows, 1), block=(64,))


def flydsl_hgemm(a, b, out, bias, tile_m, **configuration):
    if tile_m == 32:
        raise ValueError("no such tile")
    assert (get_gfx(), bias is not None) == ("gfx950", tile_m == 64)
    assert a.dtype == dtypes.bf16
    assert SMEM_CAPACITY_MAP["gfx950"] == 163840
    launch(a, out)
    return out
"""
NAME = (
    "flydsl_gemm2_abf16_wbf16_bf16_t{}x64x64_split_k1_block_m_warp1_block_n_warp1_block_k_warp1"
    "_async_copyTrue_b_to_ldsTrue_b_preshuffleFalse_c_to_ldsFalse_gfx950"
)


def row(tile, **other):
    shape = {"M": "8", "N": "64", "K": "64", "bias": str(tile == 64), "solidx": "5"}
    fields = {"set": "model_", "gfx": "gfx950", "lib": "flydsl", "kernel": NAME.format(tile)}
    dtypes = {"dtype": "bfloat16", "outdtype": "bfloat16"}
    return {**fields, "shape": shape, "dtypes": dtypes, "us": 77.125, **other}


def test_rows_are_predicted_without_their_times_then_compared(tmp_path):
    pytest.importorskip("flydsl")
    folder = tmp_path / "aiter" / "aiter" / "ops" / "flydsl"
    folder.mkdir(parents=True)
    (folder / "gemm_kernels.py").write_text(KERNELS)
    rows = [row(16), row(64), row(32), row(16, gfx="gfx942"), row(16, lib="triton", kernel="auto")]
    points = tmp_path / "points.jsonl"
    points.write_text("".join(json.dumps(each) + "\n" for each in rows))
    out = tmp_path / "out.jsonl"
    arguments = ["--points", points, "--checkout", tmp_path / "aiter", "--out", out]
    command = ["clock", *map(str, arguments), "--device", "gfx950", "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["points"], report["compared"]) == (5, 2)
    assert sorted(reason.split(": ")[-1] for reason in report["not_compared"].values()) == [
        "a kernel in triton without a configuration",
        "measured on gfx942, not on gfx950",
        "no such tile",
    ]
    first, predictions = read_predictions(out)
    assert first["flydsl"]
    assert "77.1" not in out.read_text()
    times = [each for each in predictions.values() if "seconds" in each]
    assert all(2e-6 < each["seconds"] < 2e-5 for each in times)
    assert {each["uncalibrated"] for each in times} == {"no time of gfx950 was compared"}
    assert report["folds"]["all"]["uncalibrated"] == 1.0
    assert report["folds"]["all"]["modelled_over_measured"] < 0.5

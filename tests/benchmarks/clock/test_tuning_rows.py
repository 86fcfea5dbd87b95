"""Rows of tuning tables as points: what was launched, without what was measured."""

import json
from dataclasses import asdict

import pytest

from benchmarks.clock.points import read_measured, read_points
from benchmarks.clock.scores import as_measured, verdict_factor
from benchmarks.clock.tuning_rows import products


def row(kernel="flydsl_bpreshuflle_16x64x512_F8_F8_B16_0x3x0x1_default", **other):
    return {
        "set": "model_",
        "gfx": "gfx950",
        "cu": "256",
        "lib": "flydsl",
        "kernel": kernel,
        "shape": {"M": "64", "N": "192", "K": "1024", "kernelId": "989", "splitK": "0"},
        "dtypes": {"q_dtype_w": "float8_e4m3fn"},
        "us": 3.1725,
        **other,
    }


def written(tmp_path, *rows):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def test_a_row_is_a_point_with_its_launch_and_no_measured_time(tmp_path):
    path = written(tmp_path, row())
    (point,), refused = read_points(path)
    assert not refused
    assert point.family == "flydsl_bpreshuffle"
    assert point.kernel == row()["kernel"]
    assert point.launch["problem"] == {"M": 64, "N": 192, "K": 1024, "splitK": 0}
    assert point.floor == 0.0
    with_launch = as_measured(9e-6, point.floor, point.overhead)
    assert with_launch == pytest.approx(9.0)  # a profiler's time has the launch in it
    assert verdict_factor(18.0, 9e-6, point.overhead) == pytest.approx(2.0)
    sent = json.dumps(asdict(point))  # what the process that predicts gets
    assert "3.17" not in sent
    assert '"us"' not in sent
    assert read_measured(path)[point.identity].microseconds == 3.1725


def test_no_field_that_a_row_may_add_reaches_a_point(tmp_path):
    extra = row(us=7.75, tflops=123.5, bw=99.25, errRatio="0.0")
    (point,), _ = read_points(written(tmp_path, extra))
    sent = json.dumps(asdict(point))
    assert not any(figure in sent for figure in ("7.75", "123.5", "99.25"))


def test_rows_that_repeat_a_kernel_and_shape_stay_apart(tmp_path):
    path = written(tmp_path, row(us=3.0), row(us=4.0))
    points, refused = read_points(path)
    assert not refused
    assert len({point.identity for point in points}) == 2
    assert sorted(time.microseconds for time in read_measured(path).values()) == [3.0, 4.0]


def test_a_time_of_zero_is_no_measured_time(tmp_path):
    assert not read_measured(written(tmp_path, row(us=0.0)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"lib": "triton", "kernel": "auto"}, "in triton without a configuration"),
        ({"gfx": "gfx1250"}, "gfx1250 is not simulated"),
        ({"kernel": "flydsl_mxfp8_x"}, "no kernels of flydsl_mxfp8"),
        ({"shape": None}, "are objects"),
        ({"shape": 7}, "are objects"),
        ({"dtypes": {"dtype": "bfloat16", "outdtype": "float32"}}, "PyTorch converts"),
    ],
)
def test_a_row_that_cannot_be_launched_is_counted_with_its_reason(tmp_path, change, reason):
    points, refused = read_points(written(tmp_path, row(), row(**change)))
    assert len(points) == 1
    assert len(refused) == 1
    assert reason in next(iter(refused.values()))


def test_the_work_of_experts_counts_padded_rows_and_both_matrices():
    problem = {"token": 1, "topk": 2, "expert": 8, "block_m": 32, "model_dim": 64, "inter_dim": 16}
    assert products({"family": "flydsl_moe2", "problem": problem}) == 2 * 32 * 64 * 16
    assert products({"family": "flydsl_moe1", "problem": problem}) == 2 * 2 * 32 * 64 * 16
    full = problem | {"token": 1000}
    assert products({"family": "flydsl_moe2", "problem": full}) == 2000 * 64 * 16
    assert products({"family": "x", "problem": {"M": 2, "N": 3, "K": 5}}) == 30

"""A checkout with a kernel that measures itself, and points of it."""

import json

import pytest

KERNEL = """
import pytest
import torch
import triton
import triton.language as tl
from some_suite.perf.performance_utils_pytest import PytestBenchmarker, do_bench_config
from triton.backends.compiler import NameOfAnOlderTriton


@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@pytest.mark.parametrize("n", [1 << 12, 1 << 20])
@pytest.mark.parametrize("block, warps", [(256, 4), (64, 1), (1024, 4)])
def test_performance(n, block, warps, request):
    if block == 64:
        pytest.skip("too small")
    x = torch.randn(n, device="cuda")
    y = torch.empty_like(x)
    call = lambda: scale[(triton.cdiv(n, block),)](x, y, n, BLOCK=block, num_warps=warps)
    timer = PytestBenchmarker(call, op_name="scale", config=do_bench_config(warm_up=1))
    timer.run_benchmark(current_params_dict={"N": n, "block": block, "num_warps": warps})
"""


def point(n, block, microseconds, **other):
    return {
        "id": f"scale-{n}-{block}",
        "set": "geak",
        "group": f"scale|{n}",
        "kernel": "suite/test_scale.py",
        "shape": {"N": n},
        "dtype": {},
        "config": {"block": block, "num_warps": 4},
        "time_us": microseconds,
        **other,
    }


def launch(function="scale"):
    """A point that says its launch itself."""
    x = {"shape": [4096], "dtype": "float32"}
    data = {"function": function, "grid": [16], "arguments": [x, x, 4096]}
    data |= {"constants": {"BLOCK": 256}, "options": {"num_warps": 4}}
    fields = {"id": function, "group": "g", "kernel": "suite/test_scale.py", "time_us": 7.0}
    return fields | {"launch": data, "floor_us": 6.0}


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout" / "suite"
    folder.mkdir(parents=True)
    (folder / "test_scale.py").write_text(KERNEL)
    return tmp_path / "checkout"


@pytest.fixture
def points_file(tmp_path):
    rows = [point(1 << 12, 256, 6.5), point(1 << 20, 256, 14.0), point(1 << 20, 1024, 12.5)]
    rows += [point(1 << 20, 64, 20.0), launch(), launch("absent")]
    path = tmp_path / "points.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path

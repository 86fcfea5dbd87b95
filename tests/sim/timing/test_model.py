"""The timing model ranks kernels as the hardware would, and is the same everywhere."""

from __future__ import annotations

import pytest
import torch
import triton.language as tl

from kernel_gym.sim import constants as hw
from kernel_gym.sim import native
from kernel_gym.sim.engine.engine import Engine
from kernel_gym.sim.timing import model
from kernel_gym.sim.timing.model import combined, estimate_traffic, l1_sets
from kernel_gym.sim.timing.occupancy import occupancy
from kernel_gym.sim.timing.traffic import scratch_latency
from tests.sim import triton_kernels as kernels
from tests.sim.support import launch
from tests.sim.triton_kernels import compiled


def modelled(engine, text, shared, grid, values, warps=4):
    kernel = engine.load(text, shared=shared)
    result = launch(engine, kernel, grid, (64 * warps,), values, model_time=True)
    assert result.fault is None, result.fault.message
    return result


def copy_seconds(engine, stride):
    count = 1 << 19
    x, out = torch.randn(count), torch.empty(count)
    if stride == 1:
        text, shared = compiled(kernels.copy, ["*fp32", "*fp32", "i32"], BLOCK=1024)
        values = [x, out, count]
    else:
        text, shared = compiled(kernels.strided_copy, ["*fp32", "*fp32", "i32", "i32"], BLOCK=1024)
        values = [x, out, count, stride]
    result = modelled(engine, text, shared, (count // 1024,), values)
    assert torch.equal(out, x)
    return result.seconds


def test_coalesced_copy_is_faster_than_strided(engine):
    seconds = [copy_seconds(engine, stride) for stride in (1, 2, 64)]
    assert seconds[0] < seconds[1] < seconds[2]
    assert seconds[2] > 1.5 * seconds[0]


def test_a_compute_unit_waits_for_a_limited_number_of_lines(engine):
    """All loads of 64 KiB are issued at once, and all of its lines come from HBM."""
    count = 1 << 14
    text, shared = compiled(kernels.copy, ["*fp32", "*fp32", "i32"], BLOCK=count)
    values = [torch.randn(count), torch.empty(count), count]
    seconds = modelled(engine, text, shared, (1,), values).seconds - hw.LAUNCH_S
    cycles = seconds * hw.MI300X.clock_hz
    rounds = 4 * count / hw.LINE_BYTES / hw.MISS_LINES
    assert rounds == 8
    assert 8 * hw.MI300X.latencies.hbm <= cycles <= 12 * hw.MI300X.latencies.hbm


def test_scratch_leaves_the_l2_when_it_does_not_fit():
    fits = hw.MI300X.chiplets * hw.MI300X.l2_bytes
    idle = hw.MI300X.latencies
    assert scratch_latency(0, hw.MI300X) == scratch_latency(fits, hw.MI300X) == idle.l2
    assert scratch_latency(2 * fits, hw.MI300X) == (idle.l2 + idle.mall) / 2
    assert idle.l2 < scratch_latency(1 << 50, hw.MI300X) <= idle.mall


def transpose_seconds(engine, tile_m, tile_n):
    x = torch.randn(1024, 1024)
    out = torch.empty(1024, 1024)
    text, shared = compiled(
        kernels.transpose, ["*fp32", "*fp32", "i32", "i32"], TILE_M=tile_m, TILE_N=tile_n
    )
    grid = (1024 // tile_m, 1024 // tile_n)
    result = modelled(engine, text, shared, grid, [x, out, 1024, 1024])
    assert torch.equal(out, x.T)
    return result.seconds


def test_transpose_through_lds_is_faster_than_naive(engine):
    assert transpose_seconds(engine, 64, 64) < transpose_seconds(engine, 1, 1024)


def matmul_result(engine, tile, warps, stages=2, size=(1024, 1024, 256), tile_k=32):
    m, n, k = size
    a, b = torch.randn(m, k).half(), torch.randn(k, n).half()
    out = torch.empty(m, n).half()
    text, shared = compiled(
        kernels.matmul,
        ["*fp16"] * 3 + ["i32"] * 3,
        TILE_M=tile,
        TILE_N=tile,
        TILE_K=tile_k,
        TOTAL=tl.float32,
        warps=warps,
        stages=stages,
    )
    values = [a, b, out, m, n, k]
    return modelled(engine, text, shared, (m // tile, n // tile), values, warps)


def test_larger_matmul_tiles_are_faster(engine):
    size = (2048, 2048, 512)  # enough tiles of every size to fill the device
    shapes = ((16, 1, 32), (32, 2, 32), (64, 4, 32), (128, 8, 64))
    seconds = [
        matmul_result(engine, tile, warps, size=size, tile_k=tile_k).seconds
        for tile, warps, tile_k in shapes
    ]
    assert seconds == sorted(seconds, reverse=True)


def test_pipelined_matmul_is_faster(engine):
    one = matmul_result(engine, 128, 4, stages=1).seconds
    two = matmul_result(engine, 128, 4, stages=2).seconds
    assert two < one


def test_profile_says_what_bounds(engine):
    profile = matmul_result(engine, 64, 4).profile
    assert profile["bound_by"] == "latency"  # 256 workgroups leave units idle
    assert sum(profile["stalls"].values()) == pytest.approx(1, abs=0.02)
    assert profile["stalls"]["memory wait"] > 0.02
    assert profile["sampling"]["explained"] == 1
    assert profile["wave_instructions"]["matrix"] > 0
    assert 0 < profile["utilisation"]["matrix"] < 1
    assert profile["bytes"]["read"] >= 2 * 1024 * 256 * 2
    assert profile["bytes"]["written"] >= 1024 * 1024 * 2
    assert profile["hot"][0]["source"].split(":")[0].endswith("triton_kernels.py")
    lines = profile["lines"]
    assert [one["share"] for one in lines] == sorted((one["share"] for one in lines), reverse=True)
    assert sum(one["share"] for one in lines) > 0.5 > profile["hot"][0]["share"]
    by_line = {one["source"]: one["share"] for one in lines}
    for one in profile["hot"]:
        assert by_line.get(one["source"], 1) >= one["share"]
    assert profile["launch_us"] == pytest.approx(hw.LAUNCH_S * 1e6)


def test_time_is_the_same_on_every_host():
    text, shared = compiled(kernels.softmax, ["*fp32", "*fp32", "i32"], BLOCK=256)
    x, out = torch.randn(96, 256, generator=torch.Generator().manual_seed(1)), torch.empty(96, 256)
    seen = set()
    for isa in native.supported_isas():
        for threads in (1, 2, 5):
            engine = Engine(threads=threads, isa=isa)
            result = modelled(engine, text, shared, (96,), [x, out, 256])
            hot = tuple(entry["share"] for entry in result.profile["hot"])
            bits = tuple(out.view(torch.int32).flatten().tolist())
            seen.add((result.seconds, hot, result.wave_instructions, bits))
    assert len(seen) == 1


def test_more_work_takes_longer_and_repeats_exactly(engine):
    small = matmul_result(engine, 64, 4, size=(512, 512, 256)).seconds
    large = matmul_result(engine, 64, 4, size=(512, 512, 512)).seconds
    assert large > small
    assert matmul_result(engine, 64, 4, size=(512, 512, 256)).seconds == small


def test_traffic_of_streaming_and_reuse():
    streaming = estimate_traffic(1000, 0, 1000, 0)
    assert streaming.hbm == streaming.l2 == 1000 * hw.LINE_BYTES
    assert streaming.far_fraction == 1
    reuse = estimate_traffic(100_000, 0, 1000, 0)
    assert reuse.hbm == 1000 * hw.LINE_BYTES  # a cold miss counts once, whatever the reuse
    assert reuse.far_fraction == pytest.approx(0.08)


def test_a_line_that_one_workgroup_reads_is_fetched_by_one_chiplet():
    private = estimate_traffic(3000, 0, 1000, 0, fetches=1000)
    assert private.far_fraction == pytest.approx(1 / 3)
    assert estimate_traffic(3000, 0, 1000, 0).far_fraction == 1
    shared = estimate_traffic(100_000, 0, 1000, 0, fetches=100_000)
    assert shared.far_fraction == pytest.approx(0.08)  # each of eight chiplets once
    assert estimate_traffic(3000, 0, 1000, 0, fetches=10) == private  # no fewer than there are


def test_a_shortened_replay_agrees_with_the_whole_one(engine, monkeypatch):
    x, out = torch.randn(24, 16384), torch.empty(24, 16384)
    text, shared = compiled(kernels.three_passes, ["*fp32", "*fp32", "i32"], BLOCK=256)
    whole = modelled(engine, text, shared, (24,), [x, out, 16384])
    monkeypatch.setattr(model, "_REPLAY_MINIMUM", 20_000)
    monkeypatch.setattr(model, "_REPLAY_MAXIMUM", 20_000)
    part = modelled(engine, text, shared, (24,), [x, out, 16384])
    assert part.seconds != whole.seconds
    assert part.profile["sampling"]["explained"] > 0.99  # each of the passes ran
    assert part.seconds == pytest.approx(whole.seconds, rel=0.1)


def test_occupancy_names_its_limiter():
    assert occupancy(256, 0, 32).limiter == "wave slots"
    assert occupancy(256, 0, 32).workgroups_per_cu == 8
    assert occupancy(256, 32768, 32) == occupancy(256, 32768, 64)
    assert occupancy(256, 32768, 32).limiter == "LDS"
    assert occupancy(256, 0, 256).limiter == "vector registers"
    assert occupancy(256, 0, 256).workgroups_per_cu == 2
    assert occupancy(64, 0, 16).waves_per_simd == 8


def test_a_workgroup_that_does_not_fit_is_no_workgroup():
    assert occupancy(1024, 0, 128).workgroups_per_cu == 1
    assert occupancy(1024, 0, 136).workgroups_per_cu == 0
    assert occupancy(64, 0, 640).workgroups_per_cu == 0
    assert occupancy(64, 65 << 10, 8).workgroups_per_cu == 0


def uneven_text():
    return compiled(kernels.uneven, ["*fp32", "*fp32", "i32", "i32"], BLOCK=1024)


def uneven_seconds(engine, every, seed=0, full_trace=False):
    """A copy in which one workgroup out of `every` does a hundred times the work."""
    count = 1 << 20
    x, out = torch.randn(count), torch.empty(count)
    text, shared = uneven_text()
    kernel = engine.load(text, shared=shared)
    result = launch(
        engine,
        kernel,
        (count // 1024,),
        (256,),
        [x, out, count, every],
        model_time=True,
        sample_seed=seed,
        full_trace=full_trace,
        time_limit_s=60,
    )
    assert result.fault is None
    return result


def test_other_samples_change_the_time_little(engine):
    full = uneven_seconds(engine, 3, full_trace=True).seconds
    drawn = [uneven_seconds(engine, 3, seed).seconds for seed in range(6)]
    assert len(set(drawn)) > 1
    assert drawn == pytest.approx([full] * 6, rel=0.2)  # the units that the samples share differ


def test_work_that_no_sample_ran_is_not_free(engine, monkeypatch):
    monkeypatch.setattr("kernel_gym.sim.engine.launch_result.MAX_FURTHER_RUNS", 0)
    even = uneven_seconds(engine, 1 << 30).seconds
    rare = [uneven_seconds(engine, 128, seed) for seed in range(4)]
    missed = [r for r in rare if r.profile["sampling"]["explained"] < 1]
    assert missed, "the samples saw all the work by chance; choose other seeds"
    full = uneven_seconds(engine, 128, full_trace=True).seconds
    assert full > even
    assert all(r.seconds >= 0.99 * full for r in missed)


def test_sampling_agrees_with_a_full_trace(engine):
    x, out = torch.randn(512, 1000), torch.empty(512, 1000)
    text, shared = compiled(kernels.softmax, ["*fp32", "*fp32", "i32"], BLOCK=1024)
    values = [x, out, 1000]
    kernel = engine.load(text, shared=shared)
    times = [
        launch(engine, kernel, (512,), (256,), values, model_time=True, full_trace=full).seconds
        for full in (False, True)
    ]
    assert times[0] == pytest.approx(times[1], rel=0.03)


def test_latency_and_bandwidth_add_up_as_squares_where_waves_only_wait():
    terms = {"cu": 3.0, "matrix": 0.0, "hbm": 4.0, "mall": 0.0, "l2": 0.0, "atomics": 0.0}
    assert combined(terms, waiting=1) == pytest.approx(5)
    assert 4 < combined(terms, waiting=0) < 4.1
    assert combined({**terms, "cu": 0.0}, waiting=1) == 4
    assert combined(dict.fromkeys(terms, 0.0), waiting=0.5) == 0


def test_small_workgroups_wait_for_their_start(engine):
    x, out = torch.randn(1 << 19), torch.empty(1 << 19)
    seconds = []
    for block, warps in ((64, 1), (1024, 4)):
        text, shared = compiled(kernels.copy, ["*fp32", "*fp32", "i32"], warps=warps, BLOCK=block)
        grid = ((1 << 19) // block,)
        result = modelled(engine, text, shared, grid, [x, out, 1 << 19], warps)
        seconds.append(result.seconds)
    starts = 8192 / hw.WORKGROUP_STARTS_PER_CYCLE / hw.MI300X.clock_hz
    assert seconds[0] > starts
    assert seconds[0] > 1.3 * seconds[1]


def test_workgroups_share_the_first_cache():
    alone, crowded = occupancy(1024, 60 << 10, 32), occupancy(256, 0, 32)
    assert l1_sets(alone, 1000, hw.MI300X) == 64
    assert l1_sets(crowded, 100_000, hw.MI300X) == 8
    assert l1_sets(crowded, 304, hw.MI300X) == 64  # one on each compute unit
    assert l1_sets(alone, 1000, hw.FIGURES["gfx90a"]) == 32


def test_latencies_are_those_of_the_device():
    small = estimate_traffic(1000, 0, 1000, 0)
    huge = estimate_traffic(1e12, 0, 1 << 40, 0)
    for figures in hw.FIGURES.values():
        assert small.latencies(figures.latencies) == figures.latencies
        full = huge.latencies(figures.latencies)
        assert full.l2 == pytest.approx(figures.latencies.hbm, rel=0.01)
        assert full.mall == pytest.approx(figures.latencies.hbm, rel=0.01)


def test_work_that_does_not_wait_never_makes_memory_overlap_better():
    """With the same time of waiting, more work of another kind is never faster."""
    terms = {"cu": 0.0, "matrix": 0.0, "hbm": 10.0, "mall": 0.0, "l2": 0.0, "atomics": 0.0}
    for waited in (1.0, 4.0, 10.0):
        times = [
            combined({**terms, "cu": waited * more}, waiting=1 / more)
            for more in (1, 1.1, 1.5, 2, 4, 8)
        ]
        assert times == pytest.approx(sorted(times), rel=2e-3)

"""Handing data from one workgroup to another takes time: chains, tickets, atomics."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl

from kernel_gym.sim import constants as hw
from kernel_gym.triton_versions import numbers
from tests.sim.support import kernel_text, launch
from tests.sim.triton_kernels import compiled


def modelled(engine, kernel, grid, values, **constants):
    types = ["*fp32" if v.dtype == np.float32 else "*i32" for v in values]
    text, shared = compiled(kernel, types, **constants)
    loaded = engine.load(text, shared=shared)
    result = launch(engine, loaded, (grid,), (256,), values, model_time=True)
    assert result.fault is None, result.fault.message
    return result


def seconds(engine, kernel, grid, values, **constants):
    return modelled(engine, kernel, grid, values, **constants).seconds


@triton.jit
def by_atomics(flags, out, BACK: tl.constexpr):
    """Each program waits for the one before it."""
    me = tl.program_id(0)
    if me >= BACK:
        while tl.atomic_add(flags + me - BACK, 0, sem="acquire") == 0:
            pass
    tl.store(out + me, tl.load(out + me) + 1.0)
    tl.atomic_xchg(flags + me, 1, sem="release")


@triton.jit
def by_volatile_loads(flags, out, BACK: tl.constexpr):
    """The same with a flag that is read plainly."""
    me = tl.program_id(0)
    if me >= BACK:
        while tl.load(flags + me - BACK, volatile=True) == 0:
            pass
    tl.debug_barrier()
    tl.store(out + me, tl.load(out + me) + 1.0)
    tl.debug_barrier()
    tl.atomic_xchg(flags + me, 1, sem="release")


@triton.jit
def by_one_counter(flags, out, BACK: tl.constexpr):
    """The same with one counter for all, which the waiting operation changes as well."""
    me = tl.program_id(0)
    while tl.atomic_add(flags, 65536, sem="acquire") % 65536 < me - BACK + 1:
        pass
    tl.store(out + me, tl.load(out + me) + 1.0)
    tl.atomic_add(flags, 1, sem="release")


IGNORES_VOLATILE = pytest.mark.skipif(
    numbers(triton.__version__) < (3, 9), reason="Triton before 3.9 ignores volatile=True"
)


@pytest.mark.parametrize(
    "kernel",
    [by_atomics, pytest.param(by_volatile_loads, marks=IGNORES_VOLATILE), by_one_counter],
)
def test_a_chain_costs_by_its_length(engine, kernel):
    took = {}
    for count in (32, 64, 128):
        flags, out = np.zeros(count, np.int32), np.zeros(count, np.float32)
        took[count] = seconds(engine, kernel, count, [flags, out], BACK=1)
        assert (out == 1).all()
    link = (took[128] - took[64]) / 64
    assert link == pytest.approx((took[64] - took[32]) / 32, rel=0.1)
    assert link > 0.25e-6  # an operation on a warm L2 takes 208 cycles, not 300 as before


def test_chains_side_by_side_cost_as_one(engine):
    def took(back, count):
        flags, out = np.zeros(count, np.int32), np.zeros(count, np.float32)
        return seconds(engine, by_atomics, count, [flags, out], BACK=back)

    assert took(4, 128) == pytest.approx(took(1, 32), rel=0.1)


FENCES = """
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v4, 1
	s_lshl_b32 s3, s2, 2
	s_waitcnt lgkmcnt(0)
	s_add_u32 s4, s4, s3
	s_addc_u32 s5, s5, 0
	s_cmp_eq_u32 s2, 0
	s_cbranch_scc1 go
again:
	buffer_inv sc1
	{load}
	s_waitcnt vmcnt(0) lgkmcnt(0)
	v_readfirstlane_b32 s8, v2
	{result}
	s_cmp_eq_u32 s8, 0
	s_cbranch_scc1 again
go:
	global_store_dword v1, v4, s[4:5] offset:4
	s_waitcnt vmcnt(0)
	buffer_wbl2 sc1
	s_waitcnt vmcnt(0)
"""


@pytest.mark.parametrize(
    ("load", "result"),
    [
        ("global_load_dword v2, v1, s[4:5]", "s_nop 0"),
        ("s_load_dword s9, s[4:5], 0x0", "s_mov_b32 s8, s9"),
    ],
)
def test_a_chain_of_plain_accesses_between_fences_costs_by_its_length(engine, load, result):
    text = kernel_text(FENCES.format(load=load, result=result), arguments=2)
    kernel = engine.load(text)
    took = [
        launch(
            engine,
            kernel,
            (count,),
            (64,),
            [np.zeros(count + 1, np.int32), np.zeros(1, np.int32)],
            model_time=True,
        ).seconds
        for count in (32, 64, 128)
    ]
    assert took[2] - took[1] == pytest.approx(2 * (took[1] - took[0]), rel=0.1)
    assert took[1] - took[0] > 32 * 0.9 * hw.HANDOVER_S


@triton.jit
def partial_sums(x, sums, done, out, BLOCK: tl.constexpr, LAST: tl.constexpr, COUNT: tl.constexpr):
    """The program that ends last adds the sums of all."""
    me = tl.program_id(0)
    tl.store(sums + me, tl.sum(tl.load(x + me * BLOCK + tl.arange(0, BLOCK))))
    if LAST:
        tl.debug_barrier()
        if tl.atomic_add(done, 1, sem="acq_rel") == COUNT - 1:
            tl.store(out, tl.sum(tl.load(sums + tl.arange(0, COUNT), volatile=True)))


def test_the_last_one_waits_for_all_and_nobody_else_does(engine):
    count, block = 256, 4096
    x = np.ones(count * block, np.float32)

    def took(last):
        values = [x, np.zeros(count, np.float32), np.zeros(1, np.int32), np.zeros(1, np.float32)]
        spent = seconds(engine, partial_sums, count, values, BLOCK=block, LAST=last, COUNT=count)
        assert not last or values[3][0] == count * block
        return spent

    alone, together = took(False), took(True)
    assert alone < together < alone + 10 * hw.HANDOVER_S


@triton.jit
def add_ones(keys, bins, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins + tl.load(keys + at), 1, sem="relaxed")


def test_contended_atomics_take_what_was_measured(engine):
    """67,108,864 keys, 4,096 bins, 12.5 % of them in one: 86.4 ms on an MI300X."""
    count = 1 << 20
    random = np.random.default_rng(0)
    keys = random.integers(0, 4096, count).astype(np.int32)
    keys[random.random(count) < 0.125] = 0
    bins = np.zeros(4096, np.int32)
    took = seconds(engine, add_ones, count // 1024, [keys, bins], BLOCK=1024)
    assert bins.sum() == count
    assert took == pytest.approx(86.39e-3 * count / 67_108_864, rel=0.15)


def test_atomics_on_many_lines_hardly_wait_for_each_other(engine):
    count = 1 << 18
    keys = np.random.default_rng(0).permutation(count).astype(np.int32)

    def needed(keys, bins):
        values = [keys, np.zeros(bins, np.int32)]
        result = modelled(engine, add_ones, count // 1024, values, BLOCK=1024)
        return result.profile["atomics_us"]

    assert needed(keys % 4096, 4096) > 20 * needed(keys, count)


VARIABLE = """
	s_getpc_b64 s[4:5]
	s_add_u32 s4, s4, table@rel32@lo+4
	s_addc_u32 s5, s5, table@rel32@hi+12
	s_load_dwordx2 s[6:7], s[0:1], 0x0
	s_lshl_b32 s3, s2, 8
	v_lshl_add_u32 v1, v0, 2, s3
	s_waitcnt lgkmcnt(0)
	global_load_dword v2, v1, {source}
	s_waitcnt vmcnt(0)
	global_store_dword v1, v2, {target}
	s_branch over
	s_getpc_b64 s[4:5]
over:
"""
ZEROS = """\t.type\ttable,@object
	.section	.bss,"aw",@nobits
	.protected	table
	.p2align	8
table:
	.zero	65536
"""


def test_traffic_to_the_variables_of_a_module_counts(engine):
    def moved(source, target):
        body = VARIABLE.format(source=source, target=target)
        text = kernel_text(body).replace("\t.section\t.rodata", ZEROS + "\t.section\t.rodata")
        kernel = engine.load(text)
        values = [np.zeros(256 * 64, np.int32)]
        for _ in range(300):  # more than the marks of one launch can count
            result = launch(engine, kernel, (256,), (64,), values, model_time=True)
        assert result.fault is None, result.fault.message
        return result.profile["bytes"], result.seconds

    variable, argument = "s[4:5]", "s[6:7]"
    assert moved(variable, argument) == moved(argument, variable) == moved(argument, argument)

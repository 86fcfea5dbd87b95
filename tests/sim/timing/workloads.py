"""Launches of small assembler kernels with work in some waves and something else in the others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernel_gym.sim.engine.engine import Engine
from tests.sim.support import kernel_text, launch

WORDS = 1 << 23
LDS_BYTES = 16384
IDLE = ("end", "spin", "one line", "few rounds", "same lines")
_HEAD = """
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshrrev_b32_e32 v5, 6, v0
	v_readfirstlane_b32 s9, v5
	v_and_b32_e32 v0, 63, v0
	{lanes}
	v_lshlrev_b32_e32 v1, 2, v0
	v_mov_b32_e32 v4, {lds}
	v_mul_lo_u32 v4, v4, v0
	s_mov_b32 s8, s2
	{number}
	s_movk_i32 s10, {rounds}
	s_cmp_ge_u32 s8, {workgroups}
	s_cbranch_scc1 .LIDLE
	s_cmp_ge_u32 s9, {waves}
	s_cbranch_scc1 .LIDLE
	s_mul_i32 s13, s8, {waves}
	s_add_u32 s13, s13, s9
	s_mul_i32 s14, s13, {uneven}
	s_and_b32 s14, s14, 63
	s_add_u32 s10, s10, s14
	s_mul_i32 s13, s13, {apart}
	s_and_b32 s13, s13, 0x3fffff
	s_movk_i32 s11, {step}
	s_branch .LBEGIN
.LIDLE:
	{idle}
.LBEGIN:
	s_waitcnt lgkmcnt(0)
	v_add_u32_e32 v1, s13, v1
	s_add_u32 s4, s4, s13
	s_addc_u32 s5, s5, 0
.LROUND:
"""
_TAIL = """
	v_add_u32_e32 v1, s11, v1
	s_add_u32 s4, s4, s11
	s_addc_u32 s5, s5, 0
	s_sub_u32 s10, s10, 1
	s_cmp_lg_u32 s10, 0
	s_cbranch_scc1 .LROUND
.LEND:
"""
_IDLE = {
    "end": "s_branch .LEND",
    "spin": "s_movk_i32 s12, {rounds}\n.LSPIN:\n\ts_sub_u32 s12, s12, 1\n\ts_cmp_lg_u32 s12, 0\n"
    "\ts_cbranch_scc1 .LSPIN\n\ts_branch .LEND",
    "one line": "s_mov_b32 s11, 0\n\ts_mov_b32 s13, 0x600000",
    "few rounds": "s_mov_b32 s10, 1\n\ts_mov_b32 s11, 0\n\ts_mov_b32 s13, 0x600000",
    "same lines": "s_movk_i32 s11, {step}\n\ts_mov_b32 s13, 0",  # as the first wave
}
_PARTS = {
    "load": "global_load_dword v3, v1, s[6:7]\n\ts_waitcnt vmcnt(0)",
    "two loads": "v_add_u32_e32 v6, 0x800000, v1\n\tglobal_load_dword v3, v1, s[6:7]\n"
    "\tglobal_load_dword v6, v6, s[6:7]\n\ts_waitcnt vmcnt(0)",  # no line of another round
    "load past the L1": "global_load_dword v3, v1, s[6:7] sc0 sc1\n\ts_waitcnt vmcnt(0)",
    "wide load": "global_load_dwordx4 v[8:11], v1, s[6:7]\n\ts_waitcnt vmcnt(0)",
    "scalar load": "s_load_dword s15, s[4:5], 0x0\n\ts_waitcnt lgkmcnt(0)",
    "store": "global_store_dword v1, v0, s[6:7]",
    "atomic": "global_atomic_add v1, v0, s[6:7]",
    "LDS read": "ds_read_b32 v7, v4\n\ts_waitcnt lgkmcnt(0)",
    "LDS atomic": "ds_add_u32 v4, v0\n\ts_waitcnt lgkmcnt(0)",
    "vector": "v_add_u32_e32 v2, v2, v0\n\tv_add_u32_e32 v2, v2, v0\n\tv_exp_f32_e32 v2, v2",
    "matrix": "v_mfma_f32_32x32x8_f16 v[16:31], v[12:13], v[12:13], v[16:31]",
}
PARTS = tuple(_PARTS)


@dataclass(frozen=True)
class Workload:
    """A launch: some waves work, others are idle.

    Attributes:
        parts: What a working wave does in each round, by name.
        rounds: Rounds of a wave.
        uneven: How much the rounds differ from wave to wave; 0: not at all.
        step: Bytes between the rounds of a wave.
        apart: Bytes between the waves.
        lds: Bytes between the lanes in LDS.
        workgroups: Workgroups that work.
        waves: Waves that work in each of them.
        idle_workgroups: Further workgroups.
        idle_waves: Further waves in each workgroup.
        idle: What further waves do.
        idle_first: Whether the further workgroups come first.
        reverse: Whether the workgroups come in reverse order.
        dead_blocks: Blocks behind the end.
        half: Whether only the lower half of the lanes works.
        idle_lanes: Whether the other half takes part and accesses what the lower one does.
    """

    parts: tuple[str, ...]
    rounds: int = 20
    uneven: int = 0
    step: int = 256
    apart: int = 8192
    lds: int = 4
    workgroups: int = 1
    waves: int = 1
    idle_workgroups: int = 0
    idle_waves: int = 0
    idle: str = "end"
    idle_first: bool = False
    reverse: bool = False
    dead_blocks: int = 0
    half: bool = False
    idle_lanes: bool = False

    @property
    def grid(self) -> int:
        """All workgroups."""
        return self.workgroups + self.idle_workgroups

    def plain(self) -> Workload:
        """The same work without anything added."""
        return replace(
            self,
            **dict.fromkeys(("idle_workgroups", "idle_waves", "dead_blocks"), 0),
            **dict.fromkeys(("reverse", "idle_first", "idle_lanes"), False),
        )

    def text(self) -> str:
        """The assembler text."""
        number = "s_nop 0"
        if self.reverse:
            number = f"s_sub_u32 s8, {self.grid - 1}, s2"
        elif self.idle_first:
            number = f"s_sub_u32 s8, s2, {self.idle_workgroups}"  # wraps below zero: idle
        lanes = "v_and_b32_e32 v0, 31, v0" if self.idle_lanes else "s_mov_b32 exec_hi, 0"
        head = _HEAD.format(
            lanes=lanes if self.half else "s_nop 0",
            lds=self.lds,
            number=number,
            rounds=self.rounds,
            workgroups=self.workgroups,
            waves=self.waves,
            uneven=self.uneven,
            apart=self.apart,
            step=self.step,
            idle=_IDLE[self.idle].format(rounds=self.rounds, step=self.step),
        )
        body = "".join(f"\t{_PARTS[part]}\n" for part in self.parts)
        text = kernel_text(head + body + _TAIL, arguments=2, lds=LDS_BYTES)
        dead = "".join(f".LD{i}:\n\ts_nop 0\n\ts_branch .LD{i}\n" for i in range(self.dead_blocks))
        return text.replace("\ts_endpgm\n", "\ts_endpgm\n" + dead, 1)

    def seconds(self, engine: Engine, seed: int = 0, full_trace: bool = False) -> float:
        """The modelled time. With `full_trace` all workgroups are recorded."""
        kernel = engine.load(self.text())
        words = np.zeros(WORDS, np.int32)
        result = launch(
            engine,
            kernel,
            (self.grid,),
            (64 * (self.waves + self.idle_waves),),
            [words[: WORDS // 2], words[WORDS // 2 :]],
            model_time=True,
            sample_seed=seed,
            full_trace=full_trace,
        )
        assert result.fault is None, result.fault.message
        assert result.seconds is not None
        return result.seconds

"""Launches that continue although something was found: audits, and accesses just outside."""

import numpy as np
import pytest

from kernel_gym.sim.engine.engine import Engine, pack_kernarg
from kernel_gym.sim.engine.faults import AUDIT_KINDS, COMPILER_KINDS
from tests.sim.support import kernel_text

GUARD = 4096
WRITE = """
	s_load_dwordx2 s[2:3], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v0, s[2:3]
"""
RACE = """
	s_load_dwordx2 s[2:3], s[0:1], 0x0
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, s8
	s_waitcnt lgkmcnt(0)
	global_load_dword v3, v1, s[2:3] offset:4
	s_waitcnt vmcnt(0)
	v_add_u32_e32 v3, 1, v3
	global_store_dword v1, v3, s[2:3] offset:4
	global_store_dword v1, v0, s[2:3]
"""


class Memory:
    """An arena of an engine, with one allocation in the middle of nobody's memory."""

    def __init__(self, size: int) -> None:
        self.engine = Engine(threads=1)
        self.words = np.zeros(4 * GUARD, np.uint32)
        base = self.words.ctypes.data
        self.engine.set_memory(base, self.words.nbytes)
        self.start = base + 4 * GUARD
        self.engine.set_allocations([(self.start, size, "x")])

    def launch(self, body: str, grid: int = 1, shift: int = 0, lds: int = 0, **options):
        """Launches a kernel of 64 threads on the allocation, `shift` bytes into it."""
        kernel = self.engine.load(kernel_text(body, lds=lds))
        pointer = (self.start + shift).to_bytes(8, "little")
        packed = pack_kernarg(kernel, [pointer], (grid, 1, 1), (64, 1, 1))
        return self.engine.launch(kernel, (grid, 1, 1), (64, 1, 1), packed, **options)


def test_an_access_in_the_margin_is_made_and_becomes_a_finding():
    memory = Memory(size=128)
    strict = memory.launch(WRITE)
    assert strict.fault.kind == "out_of_bounds_write"
    result = memory.launch(WRITE, margin=GUARD)
    assert result.fault is None
    assert result.seconds is not None
    (finding,) = result.findings
    assert (finding.kind, finding.lane, finding.size) == ("out_of_bounds_write", 32, 4)
    assert "0 bytes past the end of x (128 bytes)" in finding.message
    at = memory.words[GUARD : GUARD + 64]
    assert at.tolist() == list(range(64))


@pytest.mark.parametrize("shift", [-GUARD - 256, 128 + GUARD])
def test_an_access_behind_the_margin_faults(shift):
    result = Memory(size=128).launch(WRITE, shift=shift, margin=GUARD)
    assert result.fault.kind == "out_of_bounds_write"
    assert result.findings == ()


def test_memory_of_the_host_has_no_margin():
    memory = Memory(size=128)
    other = np.zeros(64, np.uint32)
    memory.engine.set_allocations([(other.ctypes.data, 128, "a device variable")])
    shift = other.ctypes.data - memory.start
    result = memory.launch(WRITE, shift=shift, margin=GUARD)
    assert result.fault.kind == "out_of_bounds_write"


WAIT = "\ts_waitcnt lgkmcnt(0)\n"
SETUP = "\n".join(WRITE.splitlines()[:-1])


@pytest.mark.parametrize(
    ("write", "read", "inside"),
    [
        ("ds_write_b32 v1, v0", "ds_read_b32 v2, v1", 32),
        ("ds_write_b8 v1, v0", "ds_read_u8 v2, v1", 32),
        ("ds_write2_b32 v1, v0, v0 offset1:32", "ds_read_b32 v2, v1", 32),
        ("ds_write_b32 v1, v0", "ds_read_b64 v[2:3], v1", 31),
        ("ds_write_b32 v1, v0", "ds_read2_b32 v[2:3], v1 offset1:1", 32),
    ],
)
def test_outside_lds_reads_are_zero_and_writes_dropped_with_a_margin(write, read, inside):
    """Each lane writes its number to its word, of which there are 32, and reads it."""
    body = f"{SETUP}\n\tv_mov_b32_e32 v2, 7\n\t{write}\n{WAIT}\t{read}\n{WAIT}"
    body += "\tglobal_store_dword v1, v2, s[2:3]"
    memory = Memory(size=256)
    assert memory.launch(body, lds=128).fault.kind == "lds_out_of_bounds"
    result = memory.launch(body, lds=128, margin=GUARD)
    assert result.fault is None
    assert result.seconds is not None
    (finding,) = result.findings
    assert (finding.kind, finding.lane, finding.address) == ("lds_out_of_bounds", 32, 128)
    stored = memory.words[GUARD : GUARD + 64]
    assert stored.tolist() == [*range(inside), *[0] * (64 - inside)]


def test_atomics_outside_lds_fault_with_a_margin():
    body = f"{SETUP}\n\tds_add_u32 v1, v0"
    result = Memory(size=256).launch(body, lds=128, margin=GUARD)
    assert result.fault.kind == "lds_out_of_bounds"


def test_a_launch_within_bounds_has_no_finding():
    assert Memory(size=256).launch(WRITE, margin=GUARD).findings == ()


def test_after_a_finding_of_an_audit_the_launch_runs_once_from_its_start():
    memory = Memory(size=256)
    result = memory.launch(RACE, grid=2, audit=True, go_on=AUDIT_KINDS)
    assert result.fault is None
    assert result.seconds is not None
    assert next(iter(result.findings)).kind in ("global_race", "lost_write")
    plain = Memory(size=256)
    plain.launch(RACE, grid=2)
    assert memory.words.tolist() == plain.words.tolist()


def test_without_go_on_the_finding_is_the_fault():
    result = Memory(size=256).launch(RACE, grid=2, audit=True)
    assert result.fault.kind in ("global_race", "lost_write")
    assert result.findings == ()


def test_kinds_that_are_not_named_stop_the_launch():
    result = Memory(size=4096).launch(RACE, grid=2, audit=True, go_on=COMPILER_KINDS)
    assert result.fault.kind in AUDIT_KINDS - COMPILER_KINDS
    assert result.findings == ()

"""Reading code, and refusing what is not understood."""

from __future__ import annotations

import pytest

from kernel_gym.sim.asm.operands import literal32, literal64, parse_operand
from kernel_gym.sim.asm.text import parse_instruction, split_operands
from kernel_gym.sim.compiler.memory_ops import swizzle_pattern
from kernel_gym.sim.engine.engine import AsmError, Engine, UnsupportedInstruction, pack_kernarg
from tests.sim.support import kernel_text, parse


def test_operands_are_split_outside_brackets():
    assert split_operands("v[0:1], s[2:3], 0") == ["v[0:1]", "s[2:3]", "0"]
    assert split_operands("v0, v1 quad_perm:[0,1,2,3]") == ["v0", "v1 quad_perm:[0,1,2,3]"]


def test_instruction_parts():
    parsed = parse_instruction("v_add_f32_dpp v1, -v2, |v3| row_shr:1 row_mask:0xf", 7)
    assert (parsed.mnemonic, parsed.encoding, parsed.line) == ("v_add_f32", "dpp", 7)
    assert parsed.operands == ("v1", "-v2", "|v3|")
    assert parsed.modifiers == {"row_shr": "1", "row_mask": "0xf"}
    flags = parse_instruction("global_load_dword v1, v2, s[0:1] offset:-16 sc0 nt", 1).modifiers
    assert flags == {"offset": "-16", "sc0": "", "nt": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v7", ("v", 7, 1)),
        ("a[4:7]", ("a", 4, 4)),
        ("s[2:3]", ("s", 2, 2)),
        ("vcc", ("s", 106, 2)),
        ("exec_hi", ("s", 127, 1)),
        ("ttmp9", ("s", 117, 1)),
        ("m0", ("s", 124, 1)),
        ("-16", ("i", 0, 1)),
        ("0x3f800000", ("i", 0, 1)),
        ("-0.5", ("f", 0, 1)),
        ("off", ("off", 0, 1)),
    ],
)
def test_operand_kinds(text, expected):
    operand = parse_operand(text)
    assert (operand.kind, operand.index, operand.count) == expected
    assert not operand.neg


def test_operand_modifiers():
    assert parse_operand("-v3").neg
    assert parse_operand("-|v3|").abs
    assert parse_operand("-|v3|").neg
    assert parse_operand("neg(0.5)").neg
    assert parse_operand("sext(v3)").sext


def test_literals_depend_on_the_operation():
    assert literal32(parse_operand("1.0"), "f32") == 0x3F800000
    assert literal32(parse_operand("1.0"), "f16") == 0x3C00
    assert literal32(parse_operand("-1"), "b32") == 0xFFFFFFFF
    assert literal64(parse_operand("1.0"), "f64") == 0x3FF0000000000000
    assert literal64(parse_operand("-1"), "b64") == 0xFFFFFFFFFFFFFFFF
    assert literal64(parse_operand("0x40000000"), "f64") == 0x40000000 << 32
    assert literal64(parse_operand("0x40000000"), "b64") == 0x40000000


def test_swizzle_modes():
    assert swizzle_pattern("swizzle(SWAP,16)") == 0x401F
    assert swizzle_pattern("swizzle(QUAD_PERM,1,0,3,2)") == 0x80B1
    assert swizzle_pattern('swizzle(BITMASK_PERM,"00p11")') == 0x64
    with pytest.raises(UnsupportedInstruction):
        swizzle_pattern("swizzle(FFT,1)")


def test_module_has_descriptor_arguments_and_source_lines():
    body = '\t.file\t1 "/src" "k.py"\n\t.loc\t1 42 0\n\ts_nop 0\n.LBB0_1:\n\ts_branch .LBB0_1'
    module = parse(kernel_text(body, arguments=2, lds=256))
    assert module.kernel_names == ["k"]
    assert module.descriptors["k"]["group_segment_fixed_size"] == 256
    assert [arg.offset for arg in module.metadata["k"].args] == [0, 8]
    assert module.files == {1: "/src/k.py"}
    instructions = module.functions["k"].instructions
    assert instructions[0].location == (1, 42)
    assert list(module.functions["k"].labels.values()) == [1]
    assert instructions[1].operands == tuple(module.functions["k"].labels)


def test_preload_header_that_only_traps_is_skipped():
    body = "\ts_trap 2\n\t.fill 63, 4, 0xbf800000\n\ts_nop 7"
    text = kernel_text(body).replace("_user_sgpr_count 2", "_user_sgpr_count 4")
    preload = "\t\t.amdhsa_user_sgpr_kernarg_preload_length 2\n\t.end_amdhsa_kernel"
    module = parse(text.replace("\t.end_amdhsa_kernel", preload))
    assert [i.text for i in module.functions["k"].instructions] == ["s_nop 7", "s_endpgm"]
    assert module.functions["k"].instructions[0].line == text.split("\n").index("\ts_nop 7") + 1


@pytest.fixture(scope="module")
def loader():
    return Engine(threads=1)


NOT_OF_THE_TARGET = [
    "v_made_up_f32 v0, v1",
    "s_made_up_b32 s0, s1",
    "global_atomic_made_up v0, v1, s[0:1]",
    "ds_made_up_b32 v0, v1",
    "v_mfma_f32_5x5x5_f16 v[0:3], v[4:5], v[6:7], 0",
    "v_add_f32_e32 v0, some_symbol(, v1",
    "v_mov_b32_dpp v0, v1 row_sideways:1",
    "v_add_f32_e32 v0",
]
NOT_IN_THE_SIMULATOR = ["buffer_load_format_x v0, v1, s[0:3], 0 offen"]


@pytest.mark.parametrize("line", NOT_OF_THE_TARGET + NOT_IN_THE_SIMULATOR)
def test_unknown_instructions_are_refused_with_their_line(loader, line):
    text = kernel_text(f"\ts_nop 0\n\t{line}")
    kind = UnsupportedInstruction if line in NOT_IN_THE_SIMULATOR else AsmError
    with pytest.raises(kind) as caught:
        loader.load(text)
    assert caught.value.line == text.split("\n").index(f"\t{line}") + 1
    assert line in str(caught.value)


def test_other_errors(loader):
    with pytest.raises(AsmError, match="no kernel found"):
        loader.load("\ts_endpgm\n")
    with pytest.raises(AsmError, match="no kernel named other, found: k"):
        loader.load(kernel_text("\ts_nop 0"), "other")
    with pytest.raises(AsmError, match=r"undefined label '\.LBB9'"):
        loader.load(kernel_text("\ts_branch .LBB9"))
    assert issubclass(UnsupportedInstruction, AsmError)
    assert issubclass(AsmError, ValueError)


def test_kernel_facts_and_cache(loader):
    text = kernel_text("\ts_nop 0", arguments=3, lds=1024, scratch=16)
    kernel = loader.load(text)
    assert loader.load(text) is kernel
    assert (kernel.name, kernel.arch, kernel.kernarg_size) == ("k", "gfx942", 24)
    assert (kernel.lds_bytes, kernel.scratch_bytes, kernel.vgprs) == (1024, 16, 64)
    assert kernel.instructions == 2
    assert loader.load(text, shared=4096).lds_bytes == 4096
    assert loader.kernel_names(text) == ["k"]


def test_arguments_are_checked(loader):
    kernel = loader.load(kernel_text("\ts_nop 0", arguments=2))
    packed = pack_kernarg(kernel, [b"\1" * 8], (1,), (64,))
    assert packed == b"\1" * 8 + bytes(8)
    with pytest.raises(ValueError, match="found 3 arguments, expected 2"):
        pack_kernarg(kernel, [bytes(8)] * 3, (1,), (64,))
    with pytest.raises(ValueError, match="has 4 bytes, expected 8"):
        pack_kernarg(kernel, [bytes(4)], (1,), (64,))


def test_launch_shapes_are_checked(loader):
    kernel = loader.load(kernel_text("\ts_nop 0", lds=1024))
    with pytest.raises(ValueError, match="a workgroup has 2048 threads"):
        loader.launch(kernel, (1,), (2048,), bytes(8))
    with pytest.raises(ValueError, match="LDS of 66560 bytes"):
        loader.launch(kernel, (1,), (64,), bytes(8), dynamic_lds=65536)
    assert loader.launch(kernel, (0,), (64,), bytes(8)).wave_instructions == 0

"""Code that a target lacks does not compile, and only bytes decide what runs."""

from __future__ import annotations

import pytest

from kernel_gym.hardware import SIMULATED
from kernel_gym.sim.asm import disassembler
from kernel_gym.sim.asm.code import encoded_bytes
from kernel_gym.sim.asm.errors import AsmError
from kernel_gym.sim.asm.module import read_module
from tests.sim import triton_kernels as kernels
from tests.sim.support import ASSEMBLER, kernel_text, parse
from tests.sim.triton_kernels import compiled

CONTROL = "v_fma_f32 v4, v5, v6, v7"
OF_GFX950 = [
    "v_mfma_f32_16x16x32_f16 v[20:23], v[4:7], v[8:11], v[20:23]",
    "v_mfma_f32_32x32x16_bf16 v[20:35], v[4:7], v[8:11], v[20:35]",
    "v_permlane32_swap_b32 v4, v5",
    "v_cvt_pk_bf16_f32 v4, v5, v6",
    "v_bitop3_b32 v4, v5, v6, v7 bitop3:0x27",
    "v_prng_b32 v4, v5",
    "ds_read_b64_tr_b16 v[4:5], v6",
    "global_load_lds_dwordx4 v[4:5], off",
    "v_ashr_pk_i8_i32 v4, v5, v6, v7",
    "v_minimum3_f32 v4, v5, v6, v7",
]
OF_NO_TARGET = [
    "v_fma_f32 v4, 0x40490fdb, v5, 0x3fb8aa3b",  # two literals
    "v_fma_f32 v4, s4, s5, s6",  # three scalar registers
    "v_pk_add_f32 v[5:6], v[8:9], v[10:11]",  # an odd pair
    "v_mfma_f32_16x16x16_f16 v[21:24], v[4:5], v[8:9], v[21:24]",  # an odd tuple
    "global_load_dword v4, v5, s[4:5] offset:8192",
    "ds_read_b32 v4, v5 offset:65536",
    "v_fma_f32_e32 v4, v5, v6, v7",
    "flat_load_dword v4, v[6:7], s[4:5]",
    "v_add_f32_e32 v300, v599, v4",
]


def kernel(line, arch="gfx942"):
    return kernel_text(f"\ts_nop 0\n\t{line}").replace("gfx942", arch)


def refusal(text):
    with pytest.raises(AsmError) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize("line", OF_GFX950 + OF_NO_TARGET)
def test_what_a_gfx942_lacks_does_not_compile(line):
    text = kernel(line)
    error = refusal(text)
    assert (error.line, error.text) == (text.split("\n").index(f"\t{line}") + 1, line)


def test_what_a_gfx942_has_compiles():
    assert parse(kernel(CONTROL)).functions["k"].instructions[1].text == CONTROL


@pytest.mark.parametrize("line", OF_GFX950)
def test_a_gfx950_has_its_own_instructions(line):
    instruction = parse(kernel(line, "gfx950")).functions["k"].instructions[1]
    assert instruction.mnemonic in line
    assert instruction.size == (4 if "swap" in line or "prng" in line else 8)


@pytest.mark.parametrize("line", OF_NO_TARGET)
@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
def test_no_target_takes_them(line, arch):
    assert refusal(kernel(line, arch)).text == line


@pytest.mark.parametrize("line", OF_GFX950)
def test_a_gfx90a_lacks_them_too(line):
    assert refusal(kernel(line, "gfx90a")).text == line


def test_registers_have_an_upper_bound():
    text = kernel("s_nop 1").replace("_next_free_vgpr 64", "_next_free_vgpr 640")
    assert "_next_free_vgpr 640" in text
    assert refusal(text.replace("vgpr_count:     64", "vgpr_count:     640"))
    assert refusal(kernel("s_mov_b32 s104, 0"))


@pytest.mark.parametrize("arch", SIMULATED)
def test_the_assembler_and_the_flags_name_the_target(arch):
    assert parse(kernel(CONTROL, arch)).target == arch
    other = kernel(CONTROL, arch).replace("\t.text", '\t.amdgcn_target "amdgcn-amd-amdhsa--gfx90c"')
    assert "does not match" in str(refusal(other))


FACTS = [
    ("\t\t.amdhsa_group_segment_fixed_size 0", "\t\t.amdhsa_group_segment_fixed_size 64"),
    ("\t\t.amdhsa_private_segment_fixed_size 0", "\t\t.amdhsa_private_segment_fixed_size 64"),
    ("\t\t.amdhsa_kernarg_size 8", "\t\t.amdhsa_kernarg_size 16"),
    (".wavefront_size: 64", ".wavefront_size: 32"),
    (".group_segment_fixed_size: 0", ".group_segment_fixed_size: 1024"),
    (".vgpr_count:     64", ".vgpr_count:     72"),
]


@pytest.mark.parametrize(("stated", "other"), FACTS)
def test_metadata_and_descriptor_must_agree(stated, other):
    text = kernel(CONTROL)
    assert stated in text
    assert "state" in str(refusal(text.replace(stated, other))) or "wave" in other


def test_a_descriptor_need_not_state_the_bytes_of_arguments():
    text = kernel(CONTROL)
    silent = text.replace("\t\t.amdhsa_kernarg_size 8", "\t\t.amdhsa_kernarg_size 0")
    assert silent != text
    assert parse(silent).descriptors["k"] == parse(text).descriptors["k"]


def test_a_descriptor_may_allocate_more_registers_than_the_kernel_has():
    text = kernel(CONTROL)  # as the compiler does for a limit on the waves of a SIMD
    more = text.replace("_next_free_vgpr 64", "_next_free_vgpr 128")
    assert parse(more).descriptors["k"]["next_free_vgpr"] == 128
    fewer = text.replace("vgpr_count:     64", "vgpr_count:     8")
    assert parse(fewer).descriptors["k"]["next_free_vgpr"] == 64


def test_files_of_the_machine_cannot_be_read():
    for directive in ('.include "/etc/hostname"', '.incbin "/etc/hostname"'):
        assert "Could not find" in str(refusal(kernel(directive)))


def test_an_assembler_that_ends_is_the_fault_of_its_text():
    assert "asks for too much" in str(refusal(kernel(".zero 1 << 44")))
    assert parse(kernel(CONTROL))


LONG_BRANCH = """
	s_cbranch_scc0 .Lnear
	s_getpc_b64 s[98:99]
.Lpc:
	s_add_u32 s98, s98, (.Lfar-.Lpc)&4294967295
	s_addc_u32 s99, s99, (.Lfar-.Lpc)>>32
	s_setpc_b64 s[98:99]
.Lnear:
	s_nop 1
	.fill 40000, 4, 0xbf800000
.Lfar:
	s_nop 2
"""


def test_a_long_branch_ends_at_a_label():
    function = parse(kernel_text(LONG_BRANCH)).functions["k"]
    labels = {function.instructions[at].text: name for name, at in function.labels.items()}
    assert set(labels) == {"s_nop 1", "s_nop 2"}
    low, high = function.instructions[2:4]
    assert low.operands[2] == f"{labels['s_nop 2']}@rel32@lo+4"
    assert high.operands[2] == f"{labels['s_nop 2']}@rel32@hi+12"


def test_a_branch_into_an_instruction_is_refused():
    error = refusal(kernel("s_branch 1\n\tv_mov_b32_e32 v4, 0x12345678"))
    assert "is no instruction" in str(error)


def test_bytes_that_are_no_instruction_are_refused():
    assert "is no instruction of gfx942" in str(refusal(kernel(".long 0xffffffff")))


def test_a_code_object_is_decoded_as_its_text():
    text = kernel(CONTROL)
    module, linked = parse(text), read_module(ASSEMBLER.code_object(text), ASSEMBLER)
    assert linked.descriptors == module.descriptors
    assert linked.metadata == module.metadata
    for name, function in module.functions.items():
        texts = [(i.text, i.size) for i in function.instructions]
        assert [(i.text, i.size) for i in linked.functions[name].instructions] == texts


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("02080d05", "02090d05"),  # v_add_f32_e32 with another register: no fault
        ("d3b14008", "d3b14009"),  # v_pk_mul_f32 of an odd pair
    ],
)
def test_a_code_object_of_somebody_else_is_what_the_assembler_makes(word, other):
    lines = "v_add_f32_e32 v4, v5, v6\n\tv_pk_mul_f32 v[8:9], v[10:11], v[12:13]"
    code = ASSEMBLER.code_object(kernel(lines))
    before = int(word, 16).to_bytes(4, "little")
    assert code.count(before) == 1
    changed = code.replace(before, int(other, 16).to_bytes(4, "little"))
    if word.startswith("02"):
        assert read_module(changed, ASSEMBLER)
    else:
        with pytest.raises(AsmError):
            read_module(changed, ASSEMBLER)


@pytest.mark.skipif(not disassembler.knows("gfx950"), reason="needs LLVM 20 or newer")
@pytest.mark.parametrize(("bits", "runs"), [(0x6000, True), (0x4000, True), (0x8000, False)])
def test_a_scaled_product_may_set_the_bits_of_an_operand_that_it_lacks(bits, runs):
    """Kernels of AMD set bits 13 and 14 of the part with the scales; LLVM's assembler does not."""
    line = "v_mfma_scale_f32_16x16x128_f8f6f4 a[0:3], v[4:7], v[8:11], a[0:3], v12, v13"
    text = kernel(f"{line} op_sel_hi:[0,0,0] cbsz:4 blgp:4", "gfx950")
    code = ASSEMBLER.code_object(text)
    before = (0xD3AC0000).to_bytes(4, "little")
    assert code.count(before) == 1
    changed = code.replace(before, (0xD3AC0000 | bits).to_bytes(4, "little"))
    if runs:
        assert read_module(changed, ASSEMBLER).functions["k"].instructions[1].size == 16
    else:
        with pytest.raises(AsmError):
            read_module(changed, ASSEMBLER)


@pytest.mark.parametrize("cut", [4, 40, 64, 200, 1000])
def test_damaged_code_objects_are_refused(cut):
    code = ASSEMBLER.code_object(kernel(CONTROL))
    for damaged in (code[:cut], code[:cut] + bytes(len(code) - cut)):
        with pytest.raises(AsmError):
            read_module(damaged, ASSEMBLER)


@pytest.mark.parametrize("line", [CONTROL, *OF_GFX950, "s_add_u32 s4, s5, 0x12345678"])
def test_lengths_by_the_first_word_are_those_of_the_assembler(line):
    section = parse_section(line)
    place = 0
    while place < len(section):
        place += encoded_bytes(section[place : place + 4])
    assert place == len(section)


def parse_section(line):
    from kernel_gym.sim.asm.elf import CodeObject

    return CodeObject(ASSEMBLER.relocatable(f"\t{line}\n", "gfx950")).code_sections[0].content


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_a_machine_without_a_disassembler_decodes_the_same(arch, monkeypatch):
    types = ["*fp16", "*fp16", "*fp16", "*fp16", "fp32", "i32"]
    text, _ = compiled(kernels.causal_attention, types, arch=arch, D=64, TILE=32)
    known = parse(text)
    monkeypatch.setattr(disassembler, "knows", lambda arch: False)
    read = parse(text)
    assert read.functions.keys() == known.functions.keys()
    for name, function in known.functions.items():
        assert read.functions[name].labels == function.labels
        for line, code in zip(
            read.functions[name].instructions, function.instructions, strict=True
        ):
            assert (line.mnemonic, line.encoding, line.operands) == (
                code.mnemonic,
                code.encoding,
                code.operands,
            )
            assert (line.modifiers, line.size) == (code.modifiers, code.size)


def test_lines_that_say_less_than_the_bytes_are_refused(monkeypatch):
    monkeypatch.setattr(disassembler, "knows", lambda arch: False)
    assert parse(kernel("s_nop 3"))
    for lines in (".rept 2\n\ts_nop 3\n.endr", ".set three, 3\n\ts_nop three", ".long 0xbf800003"):
        refusal(kernel(lines))

"""Names of kernels, from the symbols of clang and from ones that no compiler makes."""

import pytest

from kernel_gym.symbols import MAX_NAME, plain_name


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("softmax_kernel", "softmax_kernel"),
        ("_Z14softmax_kernelPK6__halfPS_l", "softmax_kernel"),
        ("_Z6reduceIfLi256ELb1EEvPKT_PS0_l", "reduce<float, 256, true>"),
        ("_ZN2ns6kernelIDF16_Lb0EEEvPT_", "ns::kernel<_Float16, false>"),
        ("_ZN12_GLOBAL__N_13barEPKf", "(anonymous namespace)::bar"),
        ("_ZL6kernelPf", "kernel"),
        ("_Z9mm_kernelILi64ELin1EEvPK12hip_bfloat16S2_PS0_iii", "mm_kernel<64, -1>"),
        ("_ZN2ns4tileIXadL_Z1fvEEEEvv", "ns::tile"),  # an expression: the arguments are left out
    ],
)
def test_symbols_of_a_compiler(symbol, name):
    assert plain_name(symbol) == name


@pytest.mark.parametrize(
    "symbol",
    [
        "",
        "_Z",
        "_Z0",
        "_Z999999999999999999999x",
        "_ZN1a",
        "_Z" + "N" * 5000,
        "_Z" + "I" * 5000 + "E",
        "_Z1f" + "P" * 290,
        "_Z3\N{SNOWMAN}",
        "_Z1k" + "N1AIiE1BI" * 20,
    ],
)
def test_hostile_symbols_get_some_short_name(symbol):
    assert len(plain_name(symbol)) <= max(len(symbol), MAX_NAME)


def test_a_name_that_doubles_with_each_reference_is_not_written_out():
    doubling = "".join(f"1AIS{digit}_S{digit}_E" for digit in "0123456789ABCDEFGHIJKLMNOP")
    assert plain_name(f"_Z1kI1AIiiE{doubling}Evv") == "k"
